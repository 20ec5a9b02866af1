"""Thousands of tasks: GPUs filled one after another, with the level counts as their bound."""
