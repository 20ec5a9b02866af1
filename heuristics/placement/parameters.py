"""What the parameters of the policies mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "score": Parameter(
        "scores as the simulators compute them, or unrounded as the paper prints them",
        source="PWR+FGD, Alg. 1 and Eq. 5; FGD",
        choices=("implemented", "exact"),
    ),
    "strict_fraction": Parameter(
        "shares of a GPU go only to GPUs that are in use, D <= u - floor(u)",
        source="PWR+FGD, Cond. 3",
    ),
    "alpha": Parameter("weight α of power; 1 - α is fragmentation's", source="PWR+FGD, Eq. 5"),
}
