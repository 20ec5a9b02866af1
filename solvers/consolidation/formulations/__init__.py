"""Models for general solvers."""
