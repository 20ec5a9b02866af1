"""Formulations to other solvers, and their solutions back."""
