"""Meanings of the methods' parameters; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter
from optgap.solvers.formulation import BACKEND

PARAMETERS = {
    "backend": BACKEND,
    "tolerance": Parameter(
        "stop once the bound is within this share of the LP over the patterns found so far",
        "share",
    ),
    "patience": Parameter(
        "coarse rounds that bring little, after which prices are made fine; 0 for all there are",
        "rounds",
    ),
    "first_nodes": Parameter("nodes of the search tree for the first integer program", "nodes"),
    "rounds": Parameter("neighbourhoods of nodes that are solved again"),
    "moves": Parameter("that annealing tries; 0 for one per task, 1,000 to 20,000"),
    "placed": Parameter("a file with a solution: what it places stays where it is", "path"),
}
