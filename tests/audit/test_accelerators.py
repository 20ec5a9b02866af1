"""What an audit may take for known of accelerators, and moves that a cluster would accept."""

from __future__ import annotations

import json
from collections import Counter
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optgap
from optgap.auditing import Audit
from optgap.models.placement.kubernetes import read_kubernetes
from optgap.models.placement.kubernetes.requests import requested
from optgap.models.reading import Held

DATA = Path(__file__).parent / "data"
Objects = dict[str, Any]


def node(name: str, resources: dict[str, Any], **more: Any) -> Objects:
    """A node of 64 vCPU; `allocatable` replaces amounts of the capacity."""
    labels = {"kubernetes.io/hostname": name, **more.get("labels", {})}
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "110", **resources}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": more.get("notes", {})},
        "spec": {},
        "status": {
            "capacity": capacity,
            "allocatable": {**capacity, **more.get("allocatable", {})},
        },
    }


def pod(name: str, at: str, resources: dict[str, Any], **more: Any) -> Objects:
    """A pod of 4 vCPU that a controller owns."""
    owner = {"kind": more.get("owner", "ReplicaSet"), "name": "o", "controller": True}
    requests = {"cpu": "4", "memory": "1Gi", **resources}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "ownerReferences": [owner],
            "annotations": more.get("notes", {}),
            "labels": more.get("labels", {}),
        },
        "spec": {
            **({"nodeName": at} if at else {}),
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            **more.get("spec", {}),
        },
        "status": {"phase": "Running" if at else "Pending"},
    }


def held(*items: Objects) -> Held:
    return Held("cluster.json", json.dumps({"kind": "List", "items": list(items)}))


def moves_of(audit: Audit, most: int = 9) -> set[tuple[str, str]]:
    return {(m["task"], m["to_node"]) for m in audit.moves(most).to_json()["moves"]}


def test_a_card_that_a_node_does_not_have_is_named_with_what_there_is() -> None:
    kind = "alibabacloud.com/gpu-"
    one = node("n1", {f"{kind}count": "2", f"{kind}milli": "2000"})
    sixth = pod("p", "n1", {}, notes={f"{kind}milli": "4", f"{kind}index": "5"})
    found = read_kubernetes(held(one, sixth))
    assert [str(over) for over in found.violations] == ["a card of n1: 4 held, 0 allocatable"]
    assert found.stays == {"on a node that has fewer cards than are held": 1}


@pytest.mark.parametrize(
    ("file", "now", "best", "moves", "said"),
    [
        ("thirds-two-nodes", 410, 245, 1, "40.2 %"),
        ("gke-time-sharing", 380, 215, 2, "43.4 %"),
        ("mig-mixed-two-nodes", 490, 385, 1, "21.4 %"),
        ("card-lost", 2420, 2420, 0, "4 of 8 cards are not advertised"),
        ("overfull-phantom-card", 270, 270, 0, "volcano.sh/vgpu-number 10 (n1)"),
        ("move-needs-rdma", 3705, 3495, 2, "5.7 %"),
        ("move-of-a-claim", 2820, 2715, 1, "1 a claim that may be bound to a zone or node"),
        ("unknown-accelerators", 270, 270, 0, "aws.amazon.com/neuron 16 (trn), google.com/tpu 4"),
        ("kai-gpu-memory", 270, 270, 0, "gpu-memory 20000 (gpu-a, default/a)"),
    ],
)
def test_small_clusters_with_answers_by_hand(
    file: str, now: float, best: float, moves: int, said: str
) -> None:
    audit = optgap.audit("kubernetes", DATA / "doors" / f"k8s-{file}.json", moves=3)
    assert audit.now.objective == pytest.approx(now)
    assert audit.best_known == pytest.approx(best)
    assert audit.best_bound == pytest.approx(best)
    assert len(audit.moves(3)) == moves
    assert said in " ".join(str(audit).split())
    wrong = [str(violation) for violation in audit.violations]
    assert wrong == (["cards of n1: 4 held, 3 allocatable"] if file == "card-lost" else [])
    refused_by = {"move-needs-rdma": "b", "card-lost": "n1"}.get(file)
    assert not any(to == refused_by for _, to in moves_of(audit))


def test_every_node_of_a_real_server_has_its_verdict() -> None:
    reading = read_kubernetes(DATA / "kubernetes.json.gz")
    found: dict[str, set[str]] = {}
    for one in reading.nodes:
        found.setdefault(one.devices.verdict, set()).add(one.name)
    assert found == {
        "none": {"cpu-1"},
        "exact": {
            "a100-degraded", "a100-cordoned", "a100-mig-mixed", "a100-mig-single", "aks-v100",
            "eks-v100", "gke-l4",
        },
        "unknown": {
            "a100-1", "a100-2", "ali-1", "amd-mi250", "hami-1", "opensim-1", "t4-timeslice",
            "t4-timeslice-samename", "volcano-1", "volcano-vgpu",
        },
    }  # fmt: skip
    mixed = next(n.devices for n in reading.nodes if n.name == "a100-mig-mixed")
    assert (mixed.cards, mixed.fixed) == (6, (1, 2))  # 1 + 6 of 14 slices are held
    assert not reading.violations
    said = "\n".join(reading.warnings)
    for told in ("gpu-fraction 0.5", "NVIDIA_VISIBLE_DEVICES 0,3", "amd.com/gpu 8", "gpu-milli"):
        assert told in said


SEVERAL = {"alibabacloud.com/gpu-milli": "500", "alibabacloud.com/gpu-count": "2"}
UNKNOWN: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"nvidia.com/gpu": 8}, {"labels": {"nvidia.com/gpu.count": "4"}}, {}),
    ({"nvidia.com/gpu": 2, "amd.com/gpu": 2}, {}, {}),
    ({"nvidia.com/gpu.shared": 8}, {"labels": {"nvidia.com/gpu.count": "2"}}, {}),
    ({"nvidia.com/gpu": 9}, {"labels": {"nvidia.com/gpu.replicas": "2"}}, {}),
    ({"nvidia.com/mig-1c.3g.20gb": 2}, {}, {}),
    ({"nvidia.com/mig-1g.5gb.shared": 2}, {}, {}),
    ({"nvidia.com/mig-1g.5gb": 2}, {"labels": {"nvidia.com/mig-1g.5gb.replicas": "2"}}, {}),
    ({"nvidia.com/gpu": 2}, {"labels": {"nvidia.com/gpu.product": "A100-MIG-INVALID"}}, {}),
    ({"nvidia.com/gpu": 2}, {"labels": {"nvidia.com/vgpu.present": "true"}}, {}),
    ({"nvidia.com/hostdev": 2}, {}, {}),
    ({"aliyun.com/gpu-mem": 32, "aliyun.com/gpu-count": 2}, {}, {}),
    ({"alibabacloud.com/gpu-count": 2}, {}, {"notes": SEVERAL}),
    ({"gpu.intel.com/i915": 4}, {"labels": {"gpu.intel.com/device.count": "1"}}, {}),
    ({"habana.ai/gaudi": 8}, {}, {}),
    ({"amd.com/gpu": 8}, {"labels": {"amd.com/gpu.compute-memory-partition": "spx_nps1"}}, {}),
    ({"nvidia.com/gpu": 20}, {"labels": {"nvidia.com/gpu.replicas": "10"}}, {}),
    ({"nvidia.com/gpu": 10}, {"notes": {"hami.io/node-nvidia-register": "[{}]"}}, {}),
    ({"nvidia.com/gpu": 2}, {}, {"labels": {"runai-gpu-group": "g1"}}),
    ({"example.com/npu": 1}, {}, {}),
    ({}, {}, {"resources": {"nvidia.com/gpu": 1}}),
    ({}, {}, {"spec": {"resourceClaims": [{"name": "gpu"}]}}),
    ({"nvidia.com/gpu": 1}, {}, {"resources": {"nvidia.com/gpumem": 1000}}),
]


@pytest.mark.parametrize(("resources", "told", "asks"), UNKNOWN)
def test_what_is_not_understood_is_named_and_stays(
    resources: dict[str, Any], told: dict[str, Any], asks: dict[str, Any]
) -> None:
    audit = optgap.audit(
        "kubernetes",
        held(
            node("a", resources, **told), node("b", {}),
            pod("p", "a", **{"resources": {}, **asks}), pod("q", "b", {}),
        ),
    )  # fmt: skip
    assert audit.now.objective == pytest.approx(270)
    assert "accelerators that are not understood" in "\n".join(audit.warnings)
    assert "excludes the accelerators of 1 of 2 nodes" in audit.sentence
    assert not audit.curve or not audit.curve.points[-1].moves
    if "nvidia.com/hostdev" in resources:  # a network card
        plain = read_kubernetes(
            held(node("a", resources), pod("p", "a", {})), None, list(resources)
        )
        assert plain.nodes[0].devices.verdict == "none"


def test_overfull_nodes_take_nothing_and_have_no_more_cards_than_there_are() -> None:
    two = {"nvidia.com/gpu": 2}
    label = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "2"}
    cluster = (
        node("n1", two, labels=label, allocatable={"nvidia.com/gpu": 1}),
        node("n2", two, labels=label),
        *(pod(f"p{k}", at, {"nvidia.com/gpu": 1}) for k, at in enumerate(("n1", "n1", "n2"))),
    )
    audit = optgap.audit("kubernetes", held(*cluster))
    (violation,) = audit.violations
    assert str(violation) == "cards of n1: 2 held, 1 allocatable"
    assert (violation.found, violation.limit) == (2, 1)
    assert audit.now.metrics["power_gpu_w"] == pytest.approx(220)
    assert not any(to == "n1" for _, to in moves_of(audit))


def test_daemons_are_load_of_their_nodes() -> None:
    audit = optgap.audit(
        "kubernetes",
        held(
            node("a", {}),
            pod("d", "a", {"cpu": "2"}, owner="DaemonSet"),
            pod("p", "a", {"cpu": "31"}),
        ),
    )
    assert audit.now.objective == pytest.approx(240)


@pytest.mark.parametrize(("key", "may"), [("kubernetes.io/hostname", {"a", "c"}), ("zone", {"a"})])
def test_anti_affinity_keeps_others_out_too(key: str, may: set[str]) -> None:
    term = {"labelSelector": {"matchLabels": {"team": "x"}}, "topologyKey": key}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    reading = read_kubernetes(
        held(
            node("a", {}), node("b", {}, labels={"zone": "z"}), node("c", {}, labels={"zone": "z"}),
            pod("guard", "b", {}, spec={"affinity": rule}), pod("p", "a", {}, labels={"team": "x"}),
        )
    )  # fmt: skip
    migration = reading.migration
    k = reading.pods.index("default/p")
    assert {n for i, n in enumerate("abc") if migration.may_go(k, i)} == may


def test_requests_add_up_as_the_scheduler_adds_them() -> None:
    def container(cpu: str, **more: Any) -> Objects:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec: Objects = {
        "containers": [container("2", name="c"), container("3")],
        "initContainers": [container("1", restartPolicy="Always"), container("8")],
        "overhead": {"cpu": "250m"},
    }
    assert requested({"spec": spec}) == {"cpu": 9250}
    resized = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "6"}}]}
    assert requested({"spec": spec, "status": resized}) == {"cpu": 10_250}
    spec["resources"] = {"requests": {"cpu": "40", "nvidia.com/gpu": "3"}}
    assert requested({"spec": spec}) == {"cpu": 40_250}


def test_pending_pods_that_may_take_the_room_of_a_plan_are_counted() -> None:
    labels = {"nvidia.com/gpu.product": "A100", "nvidia.com/gpu.count": "8"}
    eight = {"nvidia.com/gpu": 8}
    audit = optgap.audit(
        "kubernetes",
        held(
            node("a", eight, labels=labels), node("b", eight, labels=labels),
            pod("p", "a", {"nvidia.com/gpu": 7}), pod("q", "b", {"nvidia.com/gpu": 1}),
            pod("waits", "", {"nvidia.com/gpu": 1}),
        ),
    )  # fmt: skip
    assert (audit.now.objective, audit.best_known) == (3870, 3765)
    assert "1 pending pod may take the room that a plan makes first." in audit.warnings


# -- every move of small clusters, from the JSON alone -----------------------------------------

WATTS = {"T4": (10, 70), "A100": (50, 400)}
Place = tuple[int, int]
"""A node, and the card of a share; -1 without one."""


@st.composite
def clusters(draw: st.DrawFn) -> list[Objects]:
    """Two or three nodes of one kind of device, and up to four pods that fit."""
    kind = draw(st.sampled_from(["cards", "memory", "percent", "mig", "slots"]))
    count, size = draw(st.integers(2, 3)), draw(st.sampled_from([15, 36, 40960]))
    nodes, room = [], []
    for n in range(count):
        cards = draw(st.integers(1, 2))
        labels = {"nvidia.com/gpu.product": draw(st.sampled_from(["T4", "A100"]))}
        labels["nvidia.com/gpu.count"] = str(cards)
        less = {"cpu": draw(st.sampled_from(["32", "31", "20"]))}
        have: dict[str, Any] = {"cpu": "32"}
        if draw(st.booleans()):
            have["rdma/x"] = draw(st.integers(1, 2))
        if kind == "cards":
            have["nvidia.com/gpu"] = cards
        elif kind == "memory":
            labels["nvidia.com/gpu.count"] = "1"
            have |= {"aliyun.com/gpu-mem": size, "aliyun.com/gpu-count": 1}
        elif kind == "percent":
            have |= {"alibabacloud.com/gpu-count": cards, "alibabacloud.com/gpu-milli": 1000}
        elif kind == "mig":
            labels |= {"nvidia.com/gpu.product": "A100", "nvidia.com/gpu.count": "1"}
            have |= {"nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-2g.10gb": draw(st.integers(0, 2))}
        else:
            labels |= {"nvidia.com/gpu.replicas": str(size), "nvidia.com/gpu.count": "1"}
            have["nvidia.com/gpu"] = min(size, 100)
            labels["nvidia.com/gpu.replicas"] = str(min(size, 100))
        nodes.append(node(f"n{n}", have, labels=labels, allocatable=less))
        room.append(cards)
    start = Brute(nodes)
    for k in range(draw(st.integers(2, 4))):
        asks: dict[str, Any] = {"cpu": draw(st.sampled_from(["1", "6", "14"]))}
        part = 0
        if draw(st.integers(0, 4)):
            if kind in ("cards", "slots"):
                asks["nvidia.com/gpu"] = 1
            elif kind == "memory":
                some = st.sampled_from([size, size // 2, size // 3, size // 2000])
                asks["aliyun.com/gpu-mem"] = max(1, draw(some))
            elif kind == "percent":
                part = draw(st.sampled_from([1000, 500, 340, 330, 1]))
            else:
                asks[draw(st.sampled_from(["nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb"]))] = 1
        if not draw(st.integers(0, 4)):
            asks["rdma/x"] = 1
        owner = "DaemonSet" if not (part or len(asks) > 1 or draw(st.integers(0, 3))) else "Job"
        item = pod(f"p{k}", "", asks, owner=owner)
        if kind == "percent" and part:
            item["metadata"]["annotations"]["alibabacloud.com/gpu-milli"] = str(part)
        places = start.places([*start.pods, item], (*start.now, (-1, -1)), len(start.pods))
        if places:
            n, card = draw(st.sampled_from(places))
            item["spec"]["nodeName"], item["status"]["phase"] = f"n{n}", "Running"
            if card >= 0:
                item["metadata"]["annotations"]["alibabacloud.com/gpu-index"] = str(card)
            start.pods.append(item)
            start.now += ((n, card),)
    return [*nodes, *start.pods]


class Brute:
    """All that single moves reach, by the rules as they are printed and nothing of ours."""

    def __init__(self, items: list[Objects]) -> None:
        self.nodes = [item for item in items if item["kind"] == "Node"]
        self.pods = [item for item in items if item["kind"] == "Pod"]
        self.now: tuple[Place, ...] = ()
        for item in self.pods:
            card = item["metadata"]["annotations"].get("alibabacloud.com/gpu-index", -1)
            self.now += ((int(item["spec"]["nodeName"][1:]), int(card)),)

    @staticmethod
    def asks(item: Objects) -> dict[str, int]:
        found = item["spec"]["containers"][0]["resources"]["requests"]
        return {name: int(amount) for name, amount in found.items() if name != "memory"}

    @staticmethod
    def part(item: Objects) -> int:
        return int(item["metadata"]["annotations"].get("alibabacloud.com/gpu-milli", 0))

    def places(self, pods: list[Objects], at: tuple[Place, ...], k: int) -> list[Place]:
        """Where pod `k` of `pods` could go while the others are where they are."""
        found = []
        for n, one in enumerate(self.nodes):
            there, have = one["status"]["allocatable"], one["status"]["capacity"]
            others = [i for i in range(len(pods)) if i != k and at[i][0] == n]
            used: Counter[str] = Counter()
            for i in others:
                used.update(self.asks(pods[i]))
            asks = self.asks(pods[k])
            if any(used[name] + a > int(there.get(name, 0)) for name, a in asks.items()):
                continue
            part = self.part(pods[k])
            if not part:
                found.append((n, -1))
                continue
            for c in range(int(have["alibabacloud.com/gpu-count"])):
                load = sum(self.part(pods[i]) for i in others if at[i][1] == c)
                found += [(n, c)] if load + part <= 1000 else []
        return found

    def power(self, at: tuple[Place, ...]) -> float:
        total = 0.0
        for n, one in enumerate(self.nodes):
            have = {name: a for name, a in one["status"]["capacity"].items() if "i" not in str(a)}
            here = [i for i in range(len(self.pods)) if at[i][0] == n]
            used: Counter[str] = Counter()
            for i in here:
                used.update(self.asks(self.pods[i]))
            packages, busy = (ceil(ceil(c / 2) / 16) for c in (int(have["cpu"]), used["cpu"]))
            total += 120 * busy + 15 * (packages - busy)
            idle, full = WATTS[one["metadata"]["labels"]["nvidia.com/gpu.product"]]
            for g in (1, 2):
                name = f"nvidia.com/mig-{g}g.{5 * g}gb"
                total += g * (int(have.get(name, 0)) * idle + used[name] * (full - idle)) / 7
            cards = int(have.get("aliyun.com/gpu-count", have.get("alibabacloud.com/gpu-count", 0)))
            on = len({at[i][1] for i in here if at[i][1] >= 0}) + (used["aliyun.com/gpu-mem"] > 0)
            if "nvidia.com/gpu" in have:
                slots = "nvidia.com/gpu.replicas" in one["metadata"]["labels"]
                cards = 1 if slots else int(have["nvidia.com/gpu"])
                on = min(used["nvidia.com/gpu"], cards)
            total += on * full + (cards - on) * idle
        return total

    def reached(self) -> list[float]:
        """The least power after at most 0, 1, 2, … moves, until more moves reach nothing new."""
        known, edge = {self.now}, {self.now}
        least: list[float] = []
        while edge:
            least.append(min([*least[-1:], *map(self.power, edge)]))
            beyond = set()
            for at in edge:
                for k, item in enumerate(self.pods):
                    if item["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet":
                        continue
                    for place in self.places(self.pods, at, k):
                        beyond.add((*at[:k], place, *at[k + 1 :]))
            edge = beyond - known
            known |= edge
        return least


def wrong_about(items: list[Objects]) -> str:
    """What an audit says that enumeration finds false; "" for nothing."""
    brute = Brute(items)
    least = brute.reached()
    audit = optgap.audit("kubernetes", held(*items))
    if abs(audit.now.objective - brute.power(brute.now)) > 1e-6:
        return f"{audit.now.objective} W now, not {brute.power(brute.now)}"
    assert audit.curve is not None
    names = {f"default/{p['metadata']['name']}": k for k, p in enumerate(brute.pods)}
    for point in audit.curve.points:
        best = least[min(point.most, len(least) - 1)]
        if point.bound_w > best + 1e-6 or point.power_w < best - 1e-6:
            return f"{point.most} moves: {point.bound_w} to {point.power_w} W, but {best} is best"
        at = brute.now
        for step in audit.moves(point.most).to_json()["moves"]:
            k, n = names[step["task"]], int(step["to_node"][1:])
            card = step["gpu_index"][0] if brute.part(brute.pods[k]) else -1
            if (n, card) not in brute.places(brute.pods, at, k):
                return f"{step} is refused"
            at = (*at[:k], (n, card), *at[k + 1 :])
        if abs(brute.power(at) - point.power_w) > 1e-6:
            return f"{point.power_w} W after {point.most} moves, not {brute.power(at)}"
    return ""


@given(clusters())
def test_audits_of_small_clusters_say_what_enumeration_finds(items: list[Objects]) -> None:
    if any(item["kind"] == "Pod" for item in items):
        assert wrong_about(items) == ""
