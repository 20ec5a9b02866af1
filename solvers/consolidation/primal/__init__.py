"""Primal heuristics: where incumbents come from. Nothing here is part of a proof."""
