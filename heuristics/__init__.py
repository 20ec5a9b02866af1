"""Online policies by problem family; each family lists its own in `POLICIES`."""
