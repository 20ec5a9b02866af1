"""Which GPUs a node offers, and as what: whole, in slices, by memory, in MIG instances.

`nvidia.com/gpu` is not always a number of cards: with time slicing or MPS it counts replicas,
with MIG's single strategy instances, with HAMi shares. A node's devices of one kind are a `Pool`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from optgap.models.placement.kubernetes.objects import Object
from optgap.models.placement.kubernetes.power import product_power
from optgap.models.placement.kubernetes.quantities import quantity

Kind = Literal["whole", "slices", "mig", "hami", "memory", "milli"]

GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915",
                 "gpu.intel.com/xe", "habana.ai/gaudi")  # fmt: skip
"""Resources that count cards, or shares of cards."""
MIG = re.compile(r"nvidia\.com/mig-((\d+)g\.\d+gb(?:\.me)?)")
MIG_PRODUCT = re.compile(r"-MIG-(\d+)g\.\d+gb")
PRODUCT_LABELS = (
    "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name", "alibabacloud.com/gpu-card-model",
    "aliyun.accelerator/nvidia_name", "amd.com/gpu.product-name", "gpu.intel.com/product",
    "accelerator", "kubernetes.azure.com/accelerator",
)  # fmt: skip
INSTANCES = (
    ("standard_nc24s_v3|standard_nc12s_v3|standard_nc6s_v3|standard_nd40", "V100"),
    ("standard_nc.*t4", "T4"), ("standard_nc.*a100|standard_nd.*a100", "A100"),
    ("standard_nd.*h100|standard_nc.*h100", "H100"), ("standard_nv.*a10", "A10"),
    ("p5", "H100"), ("p4d|p4de|a2-", "A100"), ("p3", "V100"), ("g4dn", "T4"), ("g5", "A10G"),
    ("g6|g2-", "L4"), ("a3-", "H100"),
)  # fmt: skip
"""Instance types whose nodes say only "nvidia" of their GPUs (AKS), or nothing."""
MIG_SLICES = 7
"""Compute slices of a card that can be divided."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The devices of one kind that a node offers.

    Parameters
    ----------
    resources: what pods ask for to get them.
    kind: how a request is a share of a card: ``whole`` cards, ``slices`` of which `split` are a
        card, ``mig`` instances (each a device of its own), ``hami`` (memory and cores),
        ``memory`` or ``milli``.
    product: the GPU.
    gpus: devices that can be allocated.
    split: shares per card, for ``slices``.
    memory_mib: memory of a card in the unit that requests use, where that is how they are made.
    uuids: the cards' ids, by index, where the node tells.
    watts: (idle, full) power of a device; `known` whether the product has figures.
    """

    resources: tuple[str, ...]
    kind: Kind
    product: str
    gpus: int
    split: int = 1
    memory_mib: int = 0
    uuids: tuple[str, ...] = ()
    watts: tuple[float, float] = (0.0, 0.0)
    known: bool = True

    @property
    def model(self) -> str:
        """What the problem calls the device: the product and how it is shared."""
        name = self.product.replace("|", "/")
        if self.kind == "slices":
            return f"{name} in {self.split}"
        if self.kind in ("hami", "memory"):
            return f"{name} of {self.memory_mib}"
        return f"{name} by milli" if self.kind == "milli" else name

    @property
    def offer(self) -> tuple[str, Kind, int, int]:
        """Nodes with the same can take the same requests, as far as GPUs go."""
        return self.resources[0], self.kind, self.split, self.memory_mib


def pools(node: Object) -> list[Pool]:
    """The GPUs of a node by kind; empty for one without."""
    meta, status = node["metadata"], node.get("status") or {}
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    offered = status.get("allocatable") or status.get("capacity") or {}
    counts = {name: _count(value) for name, value in offered.items() if "/" in name}
    product = _product(labels)
    found: list[Pool] = []
    hami = _hami(notes)
    if hami is not None:
        found.append(hami)
    elif "volcano.sh/vgpu-number" in counts:
        cards = counts.get("volcano.sh/vgpu-cores", 0) // 100 or 1
        memory = counts.get("volcano.sh/vgpu-memory", 0) // cards
        found.append(_pool(("volcano.sh/vgpu-number",), "hami", product, cards, memory=memory))
    else:
        for name in GPU_RESOURCES:
            if counts.get(name, 0) > 0:
                found.append(_counted(name, counts[name], labels, product))
    if counts.get("volcano.sh/gpu-memory"):
        cards = counts.get("volcano.sh/gpu-number", 0) or 1
        names = ("volcano.sh/gpu-memory", "volcano.sh/gpu-number")
        memory = counts[names[0]] // cards
        found.append(_pool(names, "memory", product, cards, memory=memory))
    if counts.get("aliyun.com/gpu-mem"):
        cards = counts.get("aliyun.com/gpu-count", 0) or 1
        names = ("aliyun.com/gpu-mem", "aliyun.com/gpu-count")
        found.append(_pool(names, "memory", product, cards, memory=counts[names[0]] // cards))
    if counts.get("alibabacloud.com/gpu-count"):
        names = ("alibabacloud.com/gpu-milli", "alibabacloud.com/gpu-count")
        found.append(_pool(names, "milli", product, counts[names[1]]))
    for name, count in counts.items():
        mig = MIG.fullmatch(name)
        if mig and count > 0:
            found.append(
                _pool((name,), "mig", f"{product} {mig[1]}", count, of=product, slices=int(mig[2]))
            )
    return [pool for pool in found if pool.gpus > 0]


def _count(value: Any) -> int:
    try:
        return int(quantity(value))
    except (ValueError, TypeError):
        return 0


def _counted(name: str, count: int, labels: Object, product: str) -> Pool:
    """Cards, unless the labels say that they are shared or divided."""
    mig = MIG_PRODUCT.search(product)
    if mig:
        return _pool((name,), "mig", product, count, of=product[: mig.start()], slices=int(mig[1]))
    replicas = _count(labels.get("nvidia.com/gpu.replicas", "1"))
    shared = labels.get("nvidia.com/gpu.sharing-strategy", "none") != "none"
    if replicas > 1 and (shared or name.endswith(".shared") or product.endswith("-SHARED")):
        cards = -(-count // replicas)
        return _pool((name,), "slices", product, cards, split=replicas)
    return _pool((name,), "whole", product, count)


def _pool(
    resources: tuple[str, ...],
    kind: Kind,
    product: str,
    gpus: int,
    *,
    split: int = 1,
    memory: int = 0,
    uuids: tuple[str, ...] = (),
    of: str = "",
    slices: int = MIG_SLICES,
) -> Pool:
    """A pool with its power: an instance of `slices` draws its part of the card `of`."""
    idle, full, known = product_power(of or product)
    part = slices / MIG_SLICES
    watts = (idle * part, full * part)
    return Pool(resources, kind, product, gpus, split, memory, uuids, watts, known)


def _product(labels: Object) -> str:
    """The GPU product by the usual labels, else by the instance type."""
    for label in PRODUCT_LABELS:
        value = str(labels.get(label, ""))
        if value and value.lower() not in ("nvidia", "amd", "true", "gpu"):
            return value
    instance = str(labels.get("node.kubernetes.io/instance-type", "")).lower()
    for pattern, product in INSTANCES:
        if re.match(pattern, instance):
            return product
    return "GPU"


def _hami(notes: Object) -> Pool | None:
    """The cards that HAMi registers: ``uuid,shares,MiB,cores,type,numa,healthy,index,mode:``."""
    for key, text in notes.items():
        if not re.fullmatch(r"hami\.io/node-[a-z-]*register", key) or not str(text).strip():
            continue
        cards = _hami_cards(str(text))
        if cards:
            name = re.sub(r"^NVIDIA-", "", cards[0][2])
            return _pool(
                ("nvidia.com/gpu",),
                "hami",
                name,
                len(cards),
                memory=min(card[1] for card in cards),
                uuids=tuple(card[0] for card in cards),
            )
    return None


def _hami_cards(text: str) -> list[tuple[str, int, str]]:
    """(uuid, MiB, product) of the healthy cards, by index."""
    cards: list[tuple[int, str, int, str]] = []
    try:
        if text.lstrip().startswith("["):  # HAMi 2.5 and later
            for k, item in enumerate(json.loads(text)):
                if item.get("health", True):
                    name = str(item.get("type", "GPU"))
                    order = int(item.get("index", k))
                    cards.append((order, str(item["id"]), int(item["devmem"]), name))
        else:
            for k, part in enumerate(filter(None, text.split(":"))):
                fields = part.split(",")
                if len(fields) < 7 or fields[6].lower() == "true":
                    order = int(fields[7]) if len(fields) > 7 and fields[7].isdigit() else k
                    cards.append((order, fields[0], int(fields[2]), fields[4]))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return []
    return [(uuid, memory, product) for _order, uuid, memory, product in sorted(cards)]
