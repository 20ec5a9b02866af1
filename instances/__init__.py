"""optgap-lib: fixed problems, the best solutions known and the best bounds."""
