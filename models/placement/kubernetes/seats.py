"""Which GPUs of its node each pod has, where nobody has written it down."""

from __future__ import annotations

from collections.abc import Sequence

from optgap.models.placement.kubernetes.demands import Share


def seats(parts: Sequence[Share], gpus: int, trust: bool) -> tuple[list[int], int]:
    """GPUs (bits) for every share on a node of `gpus` cards, and the cards that this takes.

    With `trust`, cards that annotations name are taken as they are. The rest goes where the
    fewest cards are in use: whole cards first, then the largest shares onto the fullest card that
    has room, so that what could be saved is never overstated. Cards that are not there are
    counted on: more than `gpus` are taken when the node is oversubscribed.
    """
    load: list[int] = [0] * gpus
    masks = [0] * len(parts)

    def put(i: int, chosen: Sequence[int]) -> None:
        for g in chosen:
            load.extend([0] * (g + 1 - len(load)))
            load[g] += parts[i].gpu_milli
            masks[i] |= 1 << g

    rest = []
    for i, part in enumerate(parts):
        if trust and part.gpus is not None and len(set(part.gpus)) == part.num_gpu:
            put(i, part.gpus)
        elif part.num_gpu:
            rest.append(i)
    rest.sort(key=lambda i: (-parts[i].num_gpu, -parts[i].gpu_milli))
    for i in rest:
        part = parts[i]
        room = [g for g, used in enumerate(load) if used + part.gpu_milli <= 1000]
        room.sort(key=lambda g: (-load[g], g))
        beyond = range(len(load), len(load) + part.num_gpu)
        put(i, [*room, *beyond][: part.num_gpu])
    return masks, max([gpus, *(m.bit_length() for m in masks)])
