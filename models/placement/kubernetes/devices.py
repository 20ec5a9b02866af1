"""Verdicts on a node's accelerators, by one table of rules: ``exact`` or ``unknown``.

``exact``: the number of real cards, what fits on them and the number of busy cards after a move
follow from the file. ``unknown``: anything else; no figure counts it, and its pods stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from optgap.models.placement.cluster import MAX_GPUS_PER_NODE
from optgap.models.placement.kubernetes.objects import Object
from optgap.models.placement.kubernetes.requests import Amounts, Key, Pod, quantity, whole
from optgap.models.placement.power import GPU_FULL_W, GPU_IDLE_W, PowerModel

Verdict = Literal["none", "exact", "unknown"]
Items = Sequence[tuple[str, Any]]

CARD, WHOLE = "nvidia.com/gpu", 1000
COUNT_LABELS = (
    "nvidia.com/gpu.count", "cloud.google.com/gke-accelerator-count",
    "karpenter.k8s.aws/instance-gpu-count", "karpenter.azure.com/sku-gpu-count",
    "aliyun.accelerator/nvidia_count",
)  # fmt: skip
PRODUCT_LABELS = (
    "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name", "alibabacloud.com/gpu-card-model",
    "aliyun.accelerator/nvidia_name", "accelerator",
)  # fmt: skip
FAMILIES = (
    ((r"cpu|memory|pods|ephemeral-storage|hugepages-.*|attachable-volumes-.*|rdma/.*|"
     r"vpc\.amazonaws\.com/.*|devices\.kubevirt\.io/.*|smarter-devices/.*|"
     r"gpu\.intel\.com/.*_monitoring"), "plain"),
    (r"nvidia\.com/gpu(\.shared)?", "nvidia"),
    (r"nvidia\.com/mig-\d+g\.\d+gb(\.me(\.all)?|\.gfx|\.all)?", "mig"),
    (r"aliyun\.com/gpu-(mem|count)", "aliyun"),
    (r"alibabacloud\.com/gpu-(milli|count)", "milli"),
    ((r"(nvidia|amd|gpu\.intel|aliyun)\.com/.*|(volcano\.sh|hami\.io|habana\.ai)/.*|"
     r"huawei\.com/.*|google\.com/tpu|.*(gpu|npu|xpu|mlu|dcu|gcu|ipu|hpu|neuron|accel).*"),
     "unknown"),
)  # fmt: skip
"""Kinds of resources by name; the first that fits. Any other name is ``other``."""
PARTS = re.compile(r"gpu-fraction|gpu-memory|gpu-fraction-num-devices|runai-gpu-group(/.*)?")
"""Annotations and labels of KAI and Run:ai for parts of cards."""
REGISTERS = re.compile(r"(hami\.io|volcano\.sh)/node-[\w-]*register")
"""Annotations in which programs register cards that they share."""
MILLI, VISIBLE = "alibabacloud.com/gpu-milli", "NVIDIA_VISIBLE_DEVICES"
SHARING = ("time-slicing", "mps", "time-sharing")
FOUR_SLICES = re.compile(r"(?<![a-z0-9])a30|rtx.*pro.*6000", re.IGNORECASE)
UNTOLD = "nothing says that these nodes' GPUs are not shared"


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
    power: figures of the models that it names, which take precedence.
    """

    def __init__(self, power: PowerModel) -> None:
        self.power = power
        self.assumed: dict[str, None] = {}

    def watts(self, product: str) -> tuple[float, float]:
        """Return (idle W, full W) of a card: as given, from Table II, or by the maker's name."""
        if product in self.power.gpu_full_w:
            return self.power.gpu_idle_w[product], self.power.gpu_full_w[product]
        found: str | float | None = None
        for pattern, known in _PRODUCTS:
            if re.search(rf"(?<![a-z0-9])(?:{pattern})", product.lower()):
                found = known
                break
        if isinstance(found, str):
            return GPU_IDLE_W[found], GPU_FULL_W[found]
        if found is None:
            self.assumed[product] = None
            found = UNKNOWN_W
        return IDLE_SHARE * found, found


@dataclass
class Devices:
    """Accelerators of a node.

    Parameters
    ----------
    verdict: ``exact``, ``unknown``, or ``none`` for a node without accelerators.
    product: product of the problem's cards.
    cards, units: number of these cards, and the units of each card that pods share.
    watts: (idle, full) W of such a card.
    keys: kinds of devices; pods go only to nodes that have the same.
    fixed_w: W of all devices that are no cards of the problem; these do not change.
    fixed: (busy, all) counts of the real cards among these.
    why, items: for ``unknown`` the reason, and resources, annotations or claims with amounts.
    notes: remarks about odd values.
    """

    verdict: Verdict = "none"
    product: str = ""
    cards: int = 0
    units: int = WHOLE
    watts: tuple[float, float] = (0.0, 0.0)
    keys: set[Key] = field(default_factory=set)
    fixed_w: float = 0.0
    fixed: tuple[int, int] = (0, 0)
    why: str = ""
    items: Items = ()
    notes: list[str] = field(default_factory=list)

    @property
    def model(self) -> str:
        """Name of the cards in the problem: product and kind."""
        kinds = " ".join(part for key in sorted(self.keys) for part in key if part != self.product)
        name = self.product if kinds == CARD else f"{self.product} ({kinds})"
        return (name if self.units == WHOLE else f"{name} of {self.units}").replace("|", "/")


class Unclear(Exception):
    """Error for accelerators that are not understood; its arguments are `why` and `items`."""


@dataclass
class Node:
    """Node that is ready.

    Parameters
    ----------
    name, object: name of the node, and the object of the API.
    capacity, allocatable: amounts that the node has, and that pods can have.
    figures: power of products.
    closed: whether the node takes no pod, because it is cordoned, overfull or not understood.
    devices: accelerators of the node.
    pods: unfinished pods on the node.
    """

    name: str
    object: Object
    capacity: Amounts
    allocatable: Amounts
    figures: Figures
    closed: bool = False
    devices: Devices = field(default_factory=Devices)
    pods: list[Pod] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.labels: Object = self.object["metadata"].get("labels") or {}
        self.notes: Object = self.object["metadata"].get("annotations") or {}

    def has(self, name: str) -> int:
        """Return the capacity of a resource, or what pods can have if it is unknown."""
        return self.capacity.get(name) or self.allocatable.get(name, 0)

    def held(self, name: str) -> int:
        """Return the amount that the pods hold."""
        return sum(pod.asks.get(name, 0) for pod in self.pods)

    def number(self, label: str) -> int:
        """Return the number in a label; 0 without one."""
        text = str(self.labels.get(label, ""))
        return int(text) if text.isdigit() else 0

    @property
    def product(self) -> str:
        """GPU product by the usual labels."""
        for label in PRODUCT_LABELS:
            value = str(self.labels.get(label, ""))
            if value and value.lower() not in ("nvidia", "amd", "true", "gpu"):
                return value
        return "GPU"

    def cards(self, product: str, cards: int, key: Key, **more: Any) -> Devices:
        """Return cards with the verdict ``exact``."""
        if cards > MAX_GPUS_PER_NODE:
            raise Unclear(f"more than {MAX_GPUS_PER_NODE} cards on a node", [(key[0], cards)])
        watts = self.figures.watts(product)
        return Devices("exact", product, cards, watts=watts, keys={key}, **more)


def family(name: str, plain: Collection[str] = ()) -> str:
    """Return the kind of resource that a name stands for."""
    if name in plain:
        return "plain"
    return next((kind for like, kind in FAMILIES if re.fullmatch(like, name)), "other")


def examine(node: Node, plain: Collection[str]) -> Devices:
    """Return the verdict on a node, with the cards that its pods hold."""
    try:
        return _examined(node, plain)
    except Unclear as unclear:
        for pod in node.pods:
            pod.cell = (0, 0, 0)
        why, items = unclear.args
        return Devices("unknown", why=why, items=items)


def amounts(texts: Any) -> Amounts:
    """Return the amounts that a node has.

    Raises
    ------
    ValueError: for a text that is no quantity, or a negative one.
    """
    found = {name: whole(name, quantity(text)) for name, text in (texts or {}).items()}
    return {name: value for name, value in found.items() if value > 0}


def _examined(host: Node, plain: Collection[str]) -> Devices:
    offered = {**host.allocatable, **host.capacity}
    kinds = {name: family(name, plain) for name in offered}
    unknown: list[tuple[str, Any]] = [
        (name, offered[name]) for name, kind in kinds.items() if kind == "unknown"
    ]
    if str(host.labels.get("nvidia.com/vgpu.present")).lower() == "true":
        unknown.append(("nvidia.com/vgpu.present", "true"))
    unknown += [
        (key, "")
        for key, text in host.notes.items()
        if REGISTERS.fullmatch(key) and str(text).strip(" []")
    ]
    unknown += _seen_in_pods(host, kinds, plain)
    if unknown:
        raise Unclear("", unknown)
    found = {kind for kind in kinds.values() if kind not in ("plain", "other")}
    cards = found - {"mig"}
    if len(cards) > 1 or ("mig" in found and cards - {"nvidia"}):
        raise Unclear("two kinds of card on a node", [(n, offered[n]) for n in kinds if "/" in n])
    devices = READERS[cards.pop()](host) if cards else Devices()
    if "mig" in found:
        devices = _beside(host, devices, [name for name in offered if kinds[name] == "mig"])
    return devices


def _seen_in_pods(host: Node, kinds: Mapping[str, str], plain: Collection[str]) -> Items:
    """Return resources that pods hold but the node does not list."""
    found: list[tuple[str, Any]] = []
    for pod in host.pods:
        asked = [name for name in pod.asks if family(name, plain) not in ("plain", "other")]
        said = [f"{name} {pod.asks[name]}" for name in asked if name not in kinds]
        spec, status = pod.object.get("spec") or {}, pod.object.get("status") or {}
        claims = spec.get("resourceClaims") or status.get("extendedResourceClaimStatus") or []
        names = [c.get("name", "claim") for c in claims] if isinstance(claims, list) else [""]
        said += [f"resourceClaim {name}".rstrip() for name in names]
        notes = {**pod.part("labels"), **pod.part("annotations")}
        said += [f"{key} {text}" for key, text in notes.items() if PARTS.fullmatch(key)]
        seen = [entry for c in spec.get("containers") or [] for entry in c.get("env") or []]
        for entry in seen if not (asked or said or pod.on_every_node) else ():
            value = "of a reference" if "valueFrom" in entry else str(entry.get("value") or "")
            if entry.get("name") == VISIBLE and value.lower() not in ("", "none", "void"):
                said.append(f"{VISIBLE} {value}")
        if MILLI in notes and "milli" not in kinds.values():
            said.append(f"{MILLI} {notes[MILLI]}")
        found += [(what, pod.name) for what in said]
    return found


# -- rows 1 to 5: NVIDIA's own plugin and GKE's -----------------------------------------------


def _nvidia(host: Node) -> Devices:
    """Read cards, slots of cards, or instances (rows 1 to 5)."""
    names = [name for name in (CARD, f"{CARD}.shared") if host.has(name)]
    name, product, count = names[0], host.product, host.has(names[0])
    if len(names) > 1:
        raise Unclear("cards and shares of cards on a node", [(n, host.has(n)) for n in names])
    clients = host.number("cloud.google.com/gke-max-shared-clients-per-gpu")
    replicas = host.number("nvidia.com/gpu.replicas")
    strategies = {
        str(host.labels.get(key, "")).lower()
        for key in ("nvidia.com/gpu.sharing-strategy", "cloud.google.com/gke-gpu-sharing-strategy")
    }
    each = max(clients, replicas)
    shared = each > 1 or strategies & {*SHARING} or product.endswith("-SHARED") or name != CARD
    partition = str(host.labels.get("cloud.google.com/gke-gpu-partition-size", ""))
    profile = partition or product.partition("-MIG-")[2]
    if profile:
        if shared or not re.fullmatch(r"\d+g\.\d+gb[.+\w]*", profile) or "SHARED" in profile:
            raise Unclear("shared MIG instances", [(f"{name} of {profile}", count)])
        return _instances(host, {name: profile}, product.partition("-MIG-")[0])
    product = product.removesuffix("-SHARED")
    if not shared:
        return _whole_cards(host, product)
    if each != count or _told(host) not in (None, 1):
        raise Unclear("shares of cards whose number is not clear", [(name, count)])
    for pod in host.pods:
        if pod.asks.get(name, 0) > 1:
            pod.stays = "more than one slot of a shared card"
    return _shared_card(host, name, each, product, key=(name, f"in {each}"))


def _shared_card(host: Node, name: str, units: int, product: str, *, key: Key) -> Devices:
    """Read a node's only card, of which pods hold units; moves check these as a resource."""
    devices = host.cards(product, 1, key, units=units)
    for pod in host.pods:
        if name in pod.asks:
            pod.cell = (1, pod.asks[name], 1)
            pod.keys |= devices.keys
    return devices


def _whole_cards(host: Node, product: str) -> Devices:
    """Read cards that pods hold whole (row 1)."""
    cards, free = host.has(CARD), 0
    devices = host.cards(product, cards, (CARD,))
    for pod in host.pods:
        count = min(pod.asks.get(CARD, 0), cards + 1)  # more than there are is one too many
        if count:
            pod.cell = (count, WHOLE, ((1 << count) - 1) << free)
            pod.keys |= devices.keys
            free += count
    if _told(host) is None:
        devices.notes.append(UNTOLD)
    elif not any(family(name) == "mig" for name in host.capacity):
        _advertised(host, devices, cards)
    return devices


def _told(host: Node) -> int | None:
    """Return the number of cards by the labels, or None."""
    return next((host.number(label) for label in COUNT_LABELS if label in host.labels), None)


def _advertised(host: Node, devices: Devices, real: int) -> None:
    """Compare the cards with those of the labels."""
    told = _told(host)
    if told is not None and real > told:
        raise Unclear("more cards than the labels tell of", [(f"{told} told", real)])
    if told is not None and real < told:
        devices.notes.append(f"{told - real} of {told} cards are not advertised")


def _instances(host: Node, profiles: Mapping[str, str], product: str) -> Devices:
    """Read MIG instances (row 4); their watts are linear in slices and so never change."""
    size = 4 if FOUR_SLICES.search(product) else 7
    idle, full = host.figures.watts(product)
    slices = busy = 0
    keys: set[Key] = set()
    for name, profile in profiles.items():
        each = int(profile.partition("g")[0])
        slices += each * host.has(name)
        busy += each * min(host.held(name), host.has(name))
        keys.add((name, product, profile))
        if host.number(f"{name}.replicas") > 1:
            raise Unclear("shared MIG instances", [(name, host.has(name))])
        for pod in host.pods:
            if name in pod.asks:
                pod.keys |= {(name, product, profile)}
    cards = -(-slices // size)
    power = (slices * idle + busy * (full - idle)) / size
    return Devices("exact", product, keys=keys, fixed_w=power, fixed=(-(-busy // size), cards))


def _beside(host: Node, cards: Devices, names: Sequence[str]) -> Devices:
    """Read MIG instances (row 4), alone or beside whole cards (row 1)."""
    if cards.keys not in (set(), {(CARD,)}):
        raise Unclear("two kinds of card on a node", [(n, host.has(n)) for n in (CARD, *names)])
    product = cards.product or host.product
    mig = _instances(host, {n: n.removeprefix("nvidia.com/mig-") for n in names}, product)
    _advertised(host, mig, mig.fixed[1] + cards.cards)
    mig.cards, mig.watts, mig.notes = cards.cards, cards.watts, mig.notes + cards.notes
    mig.keys |= cards.keys
    return mig


# -- rows 8 and 11: memory of one card, and cards that are written down -----------------------


def _indices(pod: Pod, cards: int, count: int) -> list[int]:
    """Return the GPUs that an annotation names: ``"0"`` or ``"0-1-2-3"``."""
    note = "alibabacloud.com/gpu-index"
    text = str(pod.part("annotations").get(note, "")) if cards > 1 else "0"
    parts = [part.strip() for part in re.split(r"[,-]", text)]
    found = {int(part) if part.isdigit() else MAX_GPUS_PER_NODE for part in parts}
    if len(found) != count or max(found) >= MAX_GPUS_PER_NODE:
        raise Unclear("cards that no annotation names", [(f"{note} {text}".strip(), pod.name)])
    return sorted(found)


def _aliyun(host: Node) -> Devices:
    """Read memory of a node's only card (row 8); of several, an extender picks the card."""
    memory, number = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
    cards, total = host.has(number), host.has(memory)
    whole_pods = [(f"{number} {p.asks[number]}", p.name) for p in host.pods if number in p.asks]
    if whole_pods or cards != 1 or not total:
        raise Unclear("memory of other than one card", whole_pods or [(number, cards)])
    devices = _shared_card(host, memory, total, host.product, key=(memory,))
    _advertised(host, devices, cards)
    return devices


def _milli(host: Node) -> Devices:
    """Read thousandths of cards, as simulators write them (row 11)."""
    number = "alibabacloud.com/gpu-count"
    cards = host.has(number)
    if not cards:
        raise Unclear("no number of cards", [(MILLI, host.has(MILLI))])
    devices = host.cards(host.product, cards, (MILLI,))
    for pod in host.pods:
        told = {**pod.asks, **pod.part("annotations")}
        if MILLI not in told:
            continue
        part, count = str(told[MILLI]), str(told.get(number) or 1)
        least = 1 if count == "1" else WHOLE  # of several cards whole ones
        if not part.isdigit() or not count.isdigit() or not least <= int(part) <= WHOLE:
            what = f"{MILLI} {part} × {count}"
            raise Unclear("shares that are not understood", [(what, pod.name)])
        gpus = _indices(pod, cards, int(count))
        pod.keys |= devices.keys
        pod.cell = (len(gpus), int(part), sum(1 << g for g in gpus))
    return devices


READERS: Mapping[str, Callable[[Node], Devices]] = {
    "nvidia": _nvidia,
    "aliyun": _aliyun,
    "milli": _milli,
}
"""Readers of a node's devices, by kind."""


def overheld(node: Node) -> list[tuple[int, int]]:
    """Return the held and the available amount of the first card of which pods hold too much.

    The cards of such a node are no cards of the problem, and all its pods stay.
    """
    devices, load = node.devices, Counter[int]()
    for pod in node.pods:
        _, share, bits = pod.cell
        load.update({g: share for g in range(bits.bit_length()) if bits >> g & 1})
    real = range(devices.cards)
    over = [(held, devices.units if g in real else 0) for g, held in sorted(load.items())]
    over = [(held, there) for held, there in over if held > there][:1]
    if over:
        (idle, full), busy = devices.watts, sum(g in load for g in real)
        devices.fixed_w += busy * full + (devices.cards - busy) * idle
        devices.fixed = devices.fixed[0] + busy, devices.fixed[1] + devices.cards
        devices.cards = 0
        for pod in node.pods:
            pod.stays = "on a node that has fewer cards than are held"
    return over


def notes(nodes: Sequence[Node]) -> list[str]:
    """Return a note for each reason not to understand nodes, and for each odd value of others."""
    lines: list[str] = []
    unclear = [node for node in nodes if node.devices.verdict == "unknown"]
    for why in dict.fromkeys(node.devices.why for node in unclear):
        there = [node for node in unclear if node.devices.why == why]
        items = ", ".join(
            f"{what} ({n.name}, {amount})" if "/" in str(amount) else f"{what} {amount} ({n.name})"
            for n in there
            for what, amount in n.devices.items
        )
        count = sum(len(node.pods) for node in there)
        have = "nodes have" if len(there) > 1 else "node has"
        lines.append(
            f"{len(there):,} {have} accelerators that are not understood"
            f"{f' ({why})' if why else ''}: {items}. "
            f"Their {count:,} {'pod stays' if count == 1 else 'pods stay'}."
        )
    told: dict[str, list[str]] = {}
    for node in nodes:
        for note in node.devices.notes:
            told.setdefault(note, []).append(node.name)
    for note, (first, *more) in told.items():
        where = f" ({first}{f' and {len(more):,} more' if more else ''})"
        lines.append(note if note == UNTOLD else note + where)
    return lines
