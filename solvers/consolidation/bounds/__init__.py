"""Proven bounds, each valid by itself: docs/consolidation-bounds.md has the proofs."""
