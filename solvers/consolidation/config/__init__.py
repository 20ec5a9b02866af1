"""Everything that tunes the methods of this family, with units; nothing else does.

Tolerances that proofs are stated with are in `numerics`. Times called "per 100 tasks" grow with the
number of tasks. A method takes a `Params` of its own where the defaults do not suit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from optgap.solvers.consolidation.config.branch_and_price import (
    CheapestCoverParams,
    FeasibilityParams,
    TreeParams,
)
from optgap.solvers.consolidation.config.column_generation import (
    BoundParams,
    EnumerationParams,
    MasterParams,
    PricingParams,
)
from optgap.solvers.consolidation.config.methods import (
    ExactParams,
    LargeScaleParams,
    RepackParams,
)
from optgap.solvers.consolidation.config.primal import (
    AnnealingParams,
    ConstructionParams,
    DivingParams,
    GangLayoutParams,
    LnsParams,
    OverloadParams,
)

__all__ = [
    "DEFAULT",
    "AnnealingParams",
    "BoundParams",
    "CheapestCoverParams",
    "ConstructionParams",
    "DivingParams",
    "EnumerationParams",
    "ExactParams",
    "FeasibilityParams",
    "GangLayoutParams",
    "LargeScaleParams",
    "LnsParams",
    "MasterParams",
    "OverloadParams",
    "Params",
    "PricingParams",
    "RepackParams",
    "TreeParams",
]


@dataclass(frozen=True)
class Params:
    """All of them."""

    bounds: BoundParams = field(default_factory=BoundParams)
    pricing: PricingParams = field(default_factory=PricingParams)
    master: MasterParams = field(default_factory=MasterParams)
    enumeration: EnumerationParams = field(default_factory=EnumerationParams)
    feasibility: FeasibilityParams = field(default_factory=FeasibilityParams)
    cheapest_cover: CheapestCoverParams = field(default_factory=CheapestCoverParams)
    tree: TreeParams = field(default_factory=TreeParams)
    construction: ConstructionParams = field(default_factory=ConstructionParams)
    annealing: AnnealingParams = field(default_factory=AnnealingParams)
    overload: OverloadParams = field(default_factory=OverloadParams)
    diving: DivingParams = field(default_factory=DivingParams)
    gang_layout: GangLayoutParams = field(default_factory=GangLayoutParams)
    lns: LnsParams = field(default_factory=LnsParams)
    large_scale: LargeScaleParams = field(default_factory=LargeScaleParams)
    exact: ExactParams = field(default_factory=ExactParams)
    repack: RepackParams = field(default_factory=RepackParams)


DEFAULT = Params()
