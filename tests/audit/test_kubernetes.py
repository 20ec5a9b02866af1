"""What a real kube-apiserver printed, trap by trap, and objects as other vendors write them."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli, refused
from hypothesis import given
from hypothesis import strategies as st
from trust.agreement import examples

from optgap.models.errors import InputError
from optgap.models.placement.kubernetes import KubernetesReading, read_kubernetes
from optgap.models.placement.kubernetes.requests import quantity, whole
from optgap.models.placement.openb import read_devices
from optgap.models.reading import Held

DATA = Path(__file__).parent / "data" / "kubernetes.json.gz"
Objects = dict[str, Any]
Read = Callable[[Objects], KubernetesReading]


@pytest.fixture(scope="module")
def real() -> KubernetesReading:
    """The cluster that a real API server printed."""
    return read_kubernetes(DATA)


@pytest.fixture
def objects() -> Objects:
    """Its document, to be changed."""
    document: Objects = json.loads(gzip.decompress(DATA.read_bytes()))
    return document


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a changed document."""

    def from_file(document: Objects) -> KubernetesReading:
        (tmp_path / "cluster.json").write_text(json.dumps(document))
        return read_kubernetes(tmp_path / "cluster.json")

    return from_file


def asks(reading: KubernetesReading, name: str) -> tuple[int, int, int]:
    """(CPU milli, bytes, GPUs) of a pod."""
    found = next(pod.asks for node in reading.nodes for pod in node.pods if pod.name == name)
    return found.get("cpu", 0), found.get("memory", 0), found.get("nvidia.com/gpu", 0)


def understood(document: Objects) -> Objects:
    """Without the pods whose GPUs nobody can tell, and one that has no room beside another."""
    odd = ("runai-fraction", "env-visible", "rewritten")
    document["items"] = [i for i in document["items"] if i["metadata"]["name"] not in odd]
    return document


def gpus_of(reading: KubernetesReading, node: str) -> tuple[int, str]:
    """How many devices a node has, and as what, groups left out."""
    cluster = reading.migration.problem.cluster
    n = cluster.index[node]
    return int(cluster.gpus[n]), cluster.models[n].partition(" #")[0]


def may(reading: KubernetesReading, name: str) -> set[str]:
    """The other nodes that a pod may move to."""
    migration = reading.migration
    allowed = migration.allowed[migration.problem.tasks.names.index(name)]
    return {migration.problem.cluster.names[n] for n in np.flatnonzero(allowed)}


def by_name(document: Objects, name: str) -> Objects:
    return next(item for item in document["items"] if item["metadata"]["name"] == name)


QUANTITIES = {
    "500m": "1/2", "1536Mi": 1536 * 2**20, "1e3": 1000, "2e0": 2, "100k": 100_000, "1E": 10**18,
    "123456789m": "123456789/1000", "1056270636Ki": 1056270636 * 1024, "5n": "5/1000000000",
    "12E2": 1200, 2: 2,
}  # fmt: skip


def test_quantities_are_what_the_api_server_means() -> None:
    for text, number in QUANTITIES.items():
        assert quantity(text) == Fraction(number), text


def test_requests_are_rounded_up_to_milli_and_bytes() -> None:
    assert (whole("cpu", quantity("100u")), whole("memory", quantity("1m"))) == (1, 1)
    for wrong in ("1 Gi", "", "abc", "1.5.2", "1Gib"):
        with pytest.raises(ValueError, match="no quantity"):
            quantity(wrong)


def test_requests_of_containers_add_up(
    real: KubernetesReading, read: Read, objects: Objects
) -> None:
    """Test rewritten quantities, lone limits, init containers, sidecars and overhead."""
    # 500m + 2e0 + 250m; 1536Mi + 123456.789 + 100k + 1M bytes; 1e0 GPUs
    memory = 1536 * 2**20 + 123_457 + 100_000 + 1_000_000
    assert asks(real, "vendor/rewritten") == (2750, memory, 1)
    assert asks(real, "ml/two-containers")[2] == 3
    assert asks(real, "ml/init-max") == (4000, 8 * 2**30, 2)
    assert asks(real, "ml/kata") == (2250, (4096 + 160) * 2**20, 1)
    inits = by_name(objects, "init-max")["spec"]["initContainers"]
    inits.insert(0, {**deepcopy(inits[1]), "name": "proxy", "restartPolicy": "Always"})
    del by_name(objects, "train-8")["spec"]["containers"][0]["resources"]["requests"]
    changed = read(objects)
    assert asks(changed, "ml/init-max")[0] == 4100
    assert asks(changed, "ml/train-8") == (64_000, 512 * 2**30, 8)


def test_finished_and_pending_pods_are_left_out_with_the_reason(real: KubernetesReading) -> None:
    assert real.reasons["finished"] == 3
    assert real.reasons["pending (Unschedulable)"] == 3
    assert real.reasons["pending (no scheduler has looked at it)"] == 1
    assert not {"ml/done", "ml/evicted", "ml/gang-0"} & set(real.pods)
    assert real.records == real.used + sum(real.reasons.values())


def test_allocatable_counts_cordoned_nodes_take_nobody_and_lost_ones_are_left_out(
    real: KubernetesReading,
) -> None:
    cluster = real.migration.problem.cluster
    assert gpus_of(real, "a100-degraded") == (8, "NVIDIA-A100-SXM4-80GB")
    degraded = cluster.index["a100-degraded"]
    assert real.nodes[degraded].allocatable["nvidia.com/gpu"] == 7
    assert real.nodes[cluster.index["a100-cordoned"]].closed
    assert not real.nodes[degraded].closed
    assert "a100-notready" not in cluster.names
    assert real.reasons["on a node that is not ready"] == 1
    assert "a100-notready" in "\n".join(real.warnings)


def test_vendors_products_and_their_power(real: KubernetesReading) -> None:
    power = real.migration.problem.power.gpu_full_w
    for node, watts in {
        "gke-l4": 72, "eks-v100": 300, "aks-v100": 300, "a100-degraded": 400,
    }.items():  # fmt: skip
        cluster = real.migration.problem.cluster
        assert power[cluster.models[cluster.index[node]]] == watts


def test_a_pod_goes_where_taints_selectors_and_devices_let_it(read: Read, objects: Objects) -> None:
    for name in ("aks", "eks", "gke", "cpu-only"):
        owned(by_name(objects, name))
    real = read(understood(objects))
    assert may(real, "infer/aks") == {"aks-v100"}
    assert may(real, "infer/eks") == {"eks-v100"}
    assert may(real, "infer/gke") == {"gke-l4"}
    assert may(real, "ml/train-8") == {"a100-1", "a100-2"}
    assert len(may(real, "infer/cpu-only")) == 1


def owned(pod: Objects, kind: str = "ReplicaSet") -> Objects:
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "1", "controller": True}
    ]
    return pod


def test_pods_that_may_not_move_stay_and_the_reason_is_counted(
    read: Read, objects: Objects
) -> None:
    changes: dict[str, Callable[[Objects], Any]] = {
        "cpu-only": lambda p: None,
        "gke": lambda p: p["spec"].update(volumes=[{"name": "v", "emptyDir": {}}]),
        "eks": lambda p: p["metadata"].update(labels={"app": "web"}),
        "aks": lambda p: p["metadata"].update(
            annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
        ),
        "kata": lambda p: p["spec"].update(
            affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}
        ),
    }
    for name, change in changes.items():
        change(owned(by_name(understood(objects), name)))
    objects["items"].append(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "infer"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 0},
        }
    )
    found = read(objects)
    names = found.migration.problem.tasks.names
    assert {names[k] for k in np.flatnonzero(found.migration.movable)} == {
        "ml/train-8", "infer/cpu-only",
    }  # fmt: skip
    for why in (
        "local storage",
        "disruption budget",
        "annotated to stay",
        "affinity to other pods",
    ):
        assert found.stays[why] == 1
    objects["items"][-1]["status"]["disruptionsAllowed"] = 1
    assert "disruption budget" not in read(objects).stays


def test_daemons_and_static_pods_are_part_of_their_nodes(
    read: Read, objects: Objects, real: KubernetesReading
) -> None:
    owned(by_name(objects, "cpu-only"), "DaemonSet")
    by_name(objects, "env-visible")["metadata"]["annotations"] = {
        "kubernetes.io/config.mirror": "hash"
    }
    found = read(objects)
    assert found.stays["part of its node"] == 2
    problem = found.migration.problem
    assert int(problem.cluster.cpu_milli[problem.cluster.index["cpu-1"]]) == 16_000
    part = problem.tasks.names.index("part of its node cpu-1")
    assert int(problem.tasks.cpu_milli[part]) == 1500
    assert not found.migration.movable[part]


def test_the_audit_drains_a_node_and_its_moves_can_be_applied(
    read: Read, objects: Objects, tmp_path: Path, cli: Cli
) -> None:
    """Two half-used cards on two nodes: one move frees the second."""
    nodes = [item for item in objects["items"] if item["metadata"]["name"] in ("opensim-1",)]
    second = deepcopy(nodes[0])
    second["metadata"] |= {"name": "opensim-2", "uid": "another"}
    second["metadata"]["labels"]["kubernetes.io/hostname"] = "opensim-2"
    pods = []
    for k, node in enumerate(("opensim-1", "opensim-2")):
        pod = owned(deepcopy(by_name(objects, "opensim")))
        pod["metadata"] |= {"name": f"half-{k}", "uid": f"half-{k}"}
        pod["metadata"]["annotations"] = {
            "alibabacloud.com/gpu-count": "1", "alibabacloud.com/gpu-milli": "500",
            "alibabacloud.com/gpu-index": "0",
        }  # fmt: skip
        pod["spec"]["nodeName"] = node
        pods.append(pod)
    path = tmp_path / "<b>.json"
    path.write_text(json.dumps({"kind": "List", "items": [*nodes, second, *pods]}))
    page = tmp_path / "a.html"
    answer = cli(
        "audit", "kubernetes", str(path), "--moves", "1", "--report", str(page),
        "--json", str(tmp_path / "audit.json"),
        "--plot", str(tmp_path / "a.png"),
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "is reachable with 1 migration" in " ".join(answer.out.split())
    document = json.loads((tmp_path / "audit.json").read_text())
    # one V100 (300 - 30 W) and one package (120 - 15 W) fewer
    assert document["now"]["objective"] - document["best_known"] == pytest.approx(270 + 105)
    assert document["best_bound"] == pytest.approx(document["best_known"])
    assert [point["moves"] for point in document["moves_curve"]][:2] == [0, 1]
    moves = document["moves"]
    assert moves["schema"] == "optgap.moves/1"
    (move,) = moves["moves"]
    assert {move["from_node"], move["to_node"]} == {"opensim-1", "opensim-2"}
    assert move["gpu_index"] == [0]
    text = page.read_text()
    assert "&lt;b&gt;.json" in text
    assert "<b>.json" not in text
    assert "is reachable with 1 migration" in text


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text[: len(text) // 2], "valid JSON"),
        (lambda text: "", "valid JSON"),
        (lambda text: "[]", "no list of items"),
        (lambda text: '{"kind": "List", "items": null}', "no list of items"),
        (lambda text: '{"kind": "List", "items": []}', "no nodes"),
        (lambda text: '{"items": [{"kind": "Pod", "metadata": 3}]}', "metadata.name"),
        (lambda text: text.replace('"cpu": "24"', '"cpu": "24 cores"'), "no quantity"),
        (lambda text: text.replace('"Running"', '"Succeeded"'), "no running pods"),
        (lambda text: text + "{", "nothing behind the end of the document"),
        (
            lambda text: "apiVersion: v1\nitems:\n- kind: Node\n",
            "found YAML, expected JSON: kubectl get",
        ),
        (lambda text: "Name:  n1\nRoles:  <none>\n", "found output of kubectl describe"),
        (
            lambda text: json.dumps(
                {
                    "items": [
                        i
                        for part in (text, text.replace('"uid": "', '"uid": "9'))
                        for i in json.loads(part)["items"]
                    ]
                }
            ),
            "two clusters in one file",
        ),
    ],
)
def test_broken_files_are_one_clear_line(
    change: Callable[[str], str], expected: str, objects: Objects, tmp_path: Path, cli: Cli
) -> None:
    (tmp_path / "broken.json").write_text(change(json.dumps(objects)))
    refused(cli("audit", "kubernetes", str(tmp_path / "broken.json")), expected, "broken.json")


def test_a_pod_on_a_node_that_is_not_there_is_a_listed_warning(
    read: Read, objects: Objects
) -> None:
    objects["items"] = [i for i in objects["items"] if i["metadata"]["name"] != "eks-v100"]
    found = read(objects)
    assert found.reasons["on a node that is not in the file"] == 1
    assert any("eks-v100" in warning for warning in found.warnings)


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, real: KubernetesReading) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(DATA.read_bytes())))
    assert read_kubernetes("-").pods == real.pods


def test_a_table_of_devices_comes_before_the_built_in_figures(
    read: Read, objects: Objects, tmp_path: Path
) -> None:
    del by_name(objects, "a100-degraded")["metadata"]["labels"]["nvidia.com/gpu.product"]
    assert any("no power figures for 'GPU'" in warning for warning in read(objects).warnings)
    (tmp_path / "devices.csv").write_text("model,idle_w,full_w\nGPU,20,200\n")
    found = read_kubernetes(tmp_path / "cluster.json", read_devices(tmp_path / "devices.csv"))
    assert not found.assumed


def leaves(item: Any) -> list[tuple[Any, Any]]:
    """Every place of a document, as a container and a key."""
    keys = item.keys() if isinstance(item, dict) else range(len(item))
    found = []
    for key in keys:
        found.append((item, key))
        if isinstance(item[key], (dict, list)):
            found += leaves(item[key])
    return found


@examples(10)
@given(st.data())
def test_a_document_that_is_damaged_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    document = json.loads(gzip.decompress(DATA.read_bytes()))
    places = leaves(document["items"])
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places))
        odd: list[Any] = [None, "", "x", 0, -1, 1e30, [], {}, [None], {"a": None}, "1e99", True]
        container[key] = data.draw(st.sampled_from(odd))
    said = ""
    try:
        found = read_kubernetes(Held("cluster.json", json.dumps(document)))
        assert not found.migration.check(found.migration.current)
    except InputError as error:
        said = str(error)
    assert not said or "cluster.json" in said
