"""Models for general solvers, and brute force."""
