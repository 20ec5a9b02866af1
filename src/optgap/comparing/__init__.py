"""Gap tables: of one problem, over a parameter, under the uncertainty of fits, of every family."""
