"""Fair means: over the runs that all policies and methods in a comparison have."""

from __future__ import annotations

from collections.abc import Hashable, Mapping


def in_common(values: Mapping[str, Mapping[Hashable, float]]) -> tuple[dict[str, list[float]], str]:
    """Return each one's values on the runs that all have, and a line if some have more.

    A name without any values does not count. If no run is common to all, return the own values
    of each, with a line that they are not to be compared.

    Parameters
    ----------
    values: values by name, then by run.
    """
    sets = [set(own) for own in values.values() if own]
    shared = set.intersection(*sets) if sets else set()
    whole = set().union(*sets)
    if not shared:
        own = {name: list(found.values()) for name, found in values.items()}
        differ = "means are over different runs, as none is common to all: not to be compared"
        return own, differ if whole else ""
    kept = {
        name: [value for run, value in found.items() if run in shared]
        for name, found in values.items()
    }
    if shared == whole:
        return kept, ""
    return kept, f"means over the {len(shared)} of {len(whole)} runs on which all have a gap"
