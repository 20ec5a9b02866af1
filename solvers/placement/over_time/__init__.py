"""Placement over time: bounds on energy and on means over a horizon."""
