"""The five papers, run again: a script per paper, its claims as data, and what came out.

``make reproduce PAPER=cats`` (or ``python -m reproduction cats``) runs a paper's script, prints
*claim | paper | ours*, keeps the verdicts in ``reproduction/results`` and writes
``docs/reproduction.md`` from them.
"""
