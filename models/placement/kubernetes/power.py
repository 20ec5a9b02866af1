"""Power of GPU products, by their names in node labels."""

from __future__ import annotations

import re

from optgap.models.placement.openb import DeviceTable
from optgap.models.placement.power import GPU_FULL_W, GPU_IDLE_W

IDLE_SHARE = 0.125
"""Assumed ratio of idle to full power; T4, A100 and P100 of Table II have ratios from 0.1 to
0.14."""
UNKNOWN_W = 300.0
"""Assumed full power of an unknown product; always with a warning."""

# A model of Table II, or the thermal design power from the makers' data sheets, W; the first that
# fits, form factors first.
_PRODUCTS: tuple[tuple[str, str | float], ...] = (
    ("v100", "V100M16"), ("p100", "P100"), ("t4", "T4"), ("a100.*sxm|a100$", "A100"),
    ("gb200|b200", 1000.0), ("gh200|gh-200", 900.0), ("h200", 700.0), ("h20$|h20[^0]", 400.0),
    ("h100.*pcie|h800.*pcie", 350.0), ("h100|h800", 700.0), ("l40s", 350.0), ("l40", 300.0),
    ("l20", 275.0), ("l4$|l4[^0]", 72.0), ("a800|a100", 400.0), ("a10g", 300.0), ("a40", 300.0),
    ("a30", 165.0), ("a16", 250.0), ("a10$|a10[^0]", 150.0), ("a2$|a2[^0]", 60.0),
    ("rtx.*6000.*ada", 300.0), ("rtx.*a6000", 300.0), ("rtx.*4090", 450.0), ("rtx.*3090", 350.0),
    ("titan.*rtx", 280.0), ("k80", 300.0), ("p40", 250.0), ("p4$|p4[^0]", 75.0),
)  # fmt: skip


class Figures:
    """Watts of products, and the products whose figures are assumed.

    Parameters
    ----------
    devices: table that takes precedence over the built-in figures.
    """

    def __init__(self, devices: DeviceTable | None) -> None:
        self.devices = devices
        self.assumed: dict[str, None] = {}

    def watts(self, product: str) -> tuple[float, float]:
        """Return (idle W, full W) of a card: as given, from Table II, or by the maker's name."""
        if self.devices is not None and product in self.devices.full_w:
            return self.devices.idle_w[product], self.devices.full_w[product]
        found: str | float | None = product if product in GPU_FULL_W else None
        for pattern, known in _PRODUCTS if found is None else ():
            if re.search(rf"(?<![a-z0-9])(?:{pattern})", product.lower()):
                found = known
                break
        if isinstance(found, str):
            return GPU_IDLE_W[found], GPU_FULL_W[found]
        if found is None:
            self.assumed[product] = None
            found = UNKNOWN_W
        return IDLE_SHARE * found, found
