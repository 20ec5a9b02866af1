"""Branch-and-price on counts of GPUs by level, then on the servers of tasks of several GPUs."""
