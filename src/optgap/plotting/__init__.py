"""Pictures of gaps, explanations and overviews; those of solutions are in `optgap.views`."""
