"""Tables made from publishers' files: pure functions from bytes to bytes, by name.

What they make is checked against the catalogue's hash like any download.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


def zeus_windows(original: bytes) -> bytes:
    """Zeus's power-limit sweeps with their windows named as at commit 75b0960."""
    return original.replace(b"__ZeusDataLoader_power_limit_", b"__GlobalPowerLimitOptimizer_")


CONVERSIONS: Mapping[str, Callable[[bytes], bytes]] = {"zeus-windows": zeus_windows}
