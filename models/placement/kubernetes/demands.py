"""What a pod asks for: CPU, memory, and its GPUs as shares of cards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optgap.models.placement.kubernetes.devices import GPU_RESOURCES, MIG, Pool
from optgap.models.placement.kubernetes.objects import Object
from optgap.models.placement.kubernetes.quantities import mebibytes, milli, quantity

Request = dict[str, Fraction]

VENDOR_RESOURCES = (
    "volcano.sh/vgpu-number", "volcano.sh/gpu-memory", "volcano.sh/gpu-number",
    "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "alibabacloud.com/gpu-milli",
)  # fmt: skip
OPEN_SIMULATOR = "alibabacloud.com/gpu-milli"
RUNAI = "gpu-fraction"


@dataclass(frozen=True, slots=True)
class Share:
    """`num_gpu` cards at `gpu_milli` each, on the cards `gpus` where that is written."""

    num_gpu: int
    gpu_milli: int
    gpus: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """A pod's requests, in the units of placement tasks; `resource` is its GPU resource or ""."""

    cpu_milli: int
    memory_mib: int
    resource: str
    amount: int
    requests: Request


def demand(pod: Object) -> Demand:
    """What a pod asks for.

    Containers add up; init containers run one after another and count by their maximum, those
    that stay (``restartPolicy: Always``) add up with what comes after them; the RuntimeClass's
    overhead is added. A limit without a request is one.

    Raises
    ------
    ValueError: for a quantity that is none.
    """
    spec = pod.get("spec") or {}
    total: Request = {}
    for container in spec.get("containers") or []:
        _add(total, _requests(container))
    staying: Request = {}
    peaks: Request = {}
    for container in spec.get("initContainers") or []:
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(staying, own)
            own = {}
        together = dict(staying)
        _add(together, own)
        for name, value in together.items():
            peaks[name] = max(peaks.get(name, Fraction(0)), value)
    _add(total, staying)
    for name, value in peaks.items():
        total[name] = max(total.get(name, Fraction(0)), value)
    _add(total, {name: quantity(v) for name, v in (spec.get("overhead") or {}).items()})
    resource, amount = _gpu_resource(pod, total)
    return Demand(
        milli(total.get("cpu", Fraction(0))),
        mebibytes(total.get("memory", Fraction(0))),
        resource,
        amount,
        total,
    )


def _requests(container: Object) -> Request:
    asked = container.get("resources") or {}
    merged = {**(asked.get("limits") or {}), **(asked.get("requests") or {})}
    return {name: quantity(value) for name, value in merged.items()}


def _add(total: Request, more: Request) -> None:
    for name, value in more.items():
        total[name] = total.get(name, Fraction(0)) + value


def _gpu_resource(pod: Object, total: Request) -> tuple[str, int]:
    """The resource that a pod gets its GPUs by, and how much of it; "" for none."""
    for name in (*VENDOR_RESOURCES, *GPU_RESOURCES):
        if total.get(name, 0) > 0:
            return name, int(total[name])
    for name, value in total.items():
        if MIG.fullmatch(name) and value > 0:
            return name, int(value)
    notes = (pod.get("metadata") or {}).get("annotations") or {}
    if _number(notes.get(OPEN_SIMULATOR)):
        return OPEN_SIMULATOR, int(_number(notes.get("alibabacloud.com/gpu-count")) or 1)
    if _number(notes.get(RUNAI)):
        return RUNAI, 1
    return "", 0


def offers(pool: Pool, resource: str) -> bool:
    """Whether a node's devices are what this resource stands for."""
    if resource == RUNAI:
        return pool.kind == "whole"
    return resource in pool.resources


def shares(pod: Object, asked: Demand, pool: Pool) -> list[Share]:
    """A pod's GPUs on a node with this pool; several shares of cards are an entry each."""
    notes = (pod.get("metadata") or {}).get("annotations") or {}
    if asked.resource == RUNAI:
        part = min(1000, max(1, milli(Fraction(_number(notes[RUNAI]) or 1))))
        return [Share(1, part, _indices(notes.get("runai-gpu")))]
    if pool.kind == "milli":
        return _open_simulator(asked, notes)
    if pool.kind == "memory":
        return _by_memory(asked, pool, notes)
    if pool.kind == "hami":
        return _hami(pod, pool, notes)
    if pool.kind == "slices":
        if asked.amount < pool.split:
            return [Share(1, asked.amount * (1000 // pool.split))]
        return [Share(-(-asked.amount // pool.split), 1000)]
    return [Share(asked.amount, 1000)]


def _open_simulator(asked: Demand, notes: Object) -> list[Share]:
    """``gpu-milli`` is per GPU, ``gpu-index`` is ``0-1``."""
    count = asked.amount if OPEN_SIMULATOR not in asked.requests else 1
    part = _number(notes.get(OPEN_SIMULATOR)) or float(asked.requests.get(OPEN_SIMULATOR, 1000))
    if OPEN_SIMULATOR in asked.requests and part >= 1000:
        count = int(part // 1000)
    return _split(count, int(part), _indices(notes.get("alibabacloud.com/gpu-index")))


def _by_memory(asked: Demand, pool: Pool, notes: Object) -> list[Share]:
    index = notes.get("volcano.sh/gpu-index", notes.get("ALIYUN_COM_GPU_MEM_IDX"))
    if asked.resource in ("volcano.sh/gpu-number", "aliyun.com/gpu-count"):
        return _split(asked.amount, 1000, _indices(index))
    return _split(1, _of_card(asked.amount, pool), _indices(index))


def _of_card(memory: float, pool: Pool) -> int:
    """So much memory as a share of a card in milli, rounded up."""
    if not pool.memory_mib:
        return 1000
    return min(1000, max(1, -int(-memory * 1000 // pool.memory_mib)))


def _hami(pod: Object, pool: Pool, notes: Object) -> list[Share]:
    """By the annotation of the allocation where it is there, else by the containers' limits."""
    for key in ("hami.io/vgpu-devices-allocated", "hami.io/vgpu-devices-to-allocate",
                "volcano.sh/vgpu-ids-new"):  # fmt: skip
        entries = re.findall(r"([^,;:]+),[^,;:]*,(\d+),(\d+)(?=[:;]|$)", str(notes.get(key, "")))
        if entries:
            return _joined([
                Share(1, max(_of_card(float(memory), pool), min(1000, 10 * int(cores))),
                      (pool.uuids.index(uuid),) if uuid in pool.uuids else None)
                for uuid, memory, cores in entries
            ])  # fmt: skip
    found: list[Share] = []
    for container in (pod.get("spec") or {}).get("containers") or []:
        asked = _requests(container)
        number = int(asked.get("nvidia.com/gpu", asked.get("volcano.sh/vgpu-number", 0)))
        memory = asked.get("nvidia.com/gpumem", asked.get("volcano.sh/vgpu-memory"))
        cores = asked.get("nvidia.com/gpucores", asked.get("volcano.sh/vgpu-cores", 0))
        percent = asked.get("nvidia.com/gpumem-percentage")
        part = 1000 if memory is None else _of_card(float(memory), pool)
        if memory is None and percent is not None:
            part = min(1000, 10 * int(percent))
        found += [Share(1, max(part, min(1000, 10 * int(cores))))] * number
    return _joined(found)


def _joined(parts: list[Share]) -> list[Share]:
    """Whole cards as one request; anything else stays in parts."""
    if len(parts) > 1 and all(part.gpu_milli == 1000 for part in parts):
        known = [part.gpus[0] for part in parts if part.gpus]
        return [Share(len(parts), 1000, tuple(known) if len(known) == len(parts) else None)]
    return parts


def _split(count: int, part: int, gpus: tuple[int, ...] | None) -> list[Share]:
    """`count` cards at `part` milli each: one request of whole cards, or one for each share."""
    part = min(1000, max(1, part))
    known = gpus if gpus is not None and len(gpus) == count else None
    if count <= 1 or part == 1000:
        return [Share(max(1, count), part, known)]
    return [Share(1, part, (known[k],) if known else None) for k in range(count)]


def _indices(text: Any) -> tuple[int, ...] | None:
    """``"0"``, ``"0,2"`` or ``"0-1-2-3"``: the GPUs that an annotation names."""
    found = re.split(r"[,-]", str(text)) if text not in (None, "") else []
    if not found or not all(part.strip().isdigit() for part in found):
        return None
    return tuple(int(part) for part in found)


def _number(text: Any) -> float:
    try:
        return float(quantity(text)) if text is not None else 0.0
    except (ValueError, TypeError):
        return 0.0
