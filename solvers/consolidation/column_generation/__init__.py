"""Column generation: a column is a set of tasks that may share a GPU."""
