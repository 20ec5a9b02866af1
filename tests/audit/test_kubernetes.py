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
from hypothesis import given, settings
from hypothesis import strategies as st

from optgap.models.errors import InputError
from optgap.models.placement.kubernetes import KubernetesReading, read_kubernetes
from optgap.models.placement.kubernetes.demands import Demand, shares
from optgap.models.placement.kubernetes.devices import Pool
from optgap.models.placement.kubernetes.quantities import mebibytes, milli, quantity
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


def task(reading: KubernetesReading, name: str) -> tuple[int, int, int, int]:
    """(CPU milli, MiB, GPUs, milli each) of a pod."""
    tasks = reading.migration.problem.tasks
    k = tasks.names.index(name)
    found = tasks.task_class(k)
    return found.cpu_milli, found.memory_mib, found.num_gpu, found.gpu_milli


def gpus_of(reading: KubernetesReading, node: str) -> tuple[int, str]:
    """How many devices a node has, and as what, groups left out."""
    cluster = reading.migration.problem.cluster
    n = cluster.index[node]
    return int(cluster.gpus[n]), cluster.models[n].partition(" #")[0]


def seat(reading: KubernetesReading, name: str) -> tuple[int, ...]:
    return reading.migration.current.gpus(reading.migration.problem.tasks.names.index(name))


def may(reading: KubernetesReading, name: str) -> set[str]:
    """The nodes that a pod may be on, by its GPU models and node set."""
    migration = reading.migration
    problem = migration.problem
    k = problem.tasks.names.index(name)
    group = int(migration.node_set_of[k])
    return {
        problem.cluster.names[n]
        for n in range(len(problem.cluster))
        if problem.fits_empty(
            problem.tasks.task_class(k), problem.cluster.types[problem.cluster.type_of[n]]
        )
        and (group < 0 or migration.node_sets[group][n])
    }


def by_name(document: Objects, name: str) -> Objects:
    return next(item for item in document["items"] if item["metadata"]["name"] == name)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500m", "1/2"),
        ("1536Mi", 1536 * 2**20),
        ("1e3", 1000),
        ("2e0", 2),
        ("123456789m", "123456789/1000"),
        ("100k", 100_000),
        ("1056270636Ki", 1056270636 * 1024),
        ("5n", "5/1000000000"),
        ("1E", 10**18),
        ("12E2", 1200),
        (2, 2),
    ],
)
def test_quantities_are_what_the_api_server_means(text: str, number: Any) -> None:
    assert quantity(text) == Fraction(number)


def test_requests_are_rounded_up_to_milli_and_mebibytes() -> None:
    assert (milli(quantity("100u")), mebibytes(quantity("1"))) == (1, 1)
    for wrong in ("1 Gi", "", "abc", "1.5.2", "1Gib"):
        with pytest.raises(ValueError, match="no quantity"):
            quantity(wrong)


def test_rewritten_quantities_and_containers_add_up(real: KubernetesReading) -> None:
    # 500m + 2e0 + 250m; 1536Mi + 123456.789 + 100k + 1M bytes; 1e0 GPUs
    assert task(real, "vendor/rewritten") == (2750, 1538, 1, 1000)
    assert task(real, "ml/two-containers")[2:] == (3, 1000)


def test_a_limit_without_a_request_counts(read: Read, objects: Objects) -> None:
    pod = by_name(objects, "train-8")
    del pod["spec"]["containers"][0]["resources"]["requests"]
    assert task(read(objects), "ml/train-8") == (64_000, 512 * 1024, 8, 1000)


def test_init_containers_count_by_their_maximum_sidecars_add_up_overhead_is_added(
    real: KubernetesReading, read: Read, objects: Objects
) -> None:
    assert task(real, "ml/init-max") == (4000, 8192, 2, 1000)
    assert task(real, "ml/kata") == (2250, 4096 + 160, 1, 1000)
    inits = by_name(objects, "init-max")["spec"]["initContainers"]
    inits.insert(0, {**deepcopy(inits[1]), "name": "proxy", "restartPolicy": "Always"})
    assert task(read(objects), "ml/init-max")[0] == 4100


def test_lists_of_the_raw_api_and_managed_fields_read_the_same(
    read: Read, objects: Objects, real: KubernetesReading, tmp_path: Path
) -> None:
    parts = []
    for kind in ("Node", "Pod"):
        items = [deepcopy(item) for item in objects["items"] if item["kind"] == kind]
        for item in items:
            del item["kind"], item["apiVersion"]
            item["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]
        parts.append({"kind": f"{kind}List", "apiVersion": "v1", "items": items})
    (tmp_path / "two.json").write_text("\n".join(json.dumps(part) for part in parts))
    found = read_kubernetes(tmp_path / "two.json")  # one document behind another
    assert found.pods == real.pods
    assert found.migration.current == real.migration.current


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
    assert gpus_of(real, "a100-degraded") == (7, "NVIDIA-A100-SXM4-80GB")
    assert real.migration.closed.tolist() == [name == "a100-cordoned" for name in cluster.names]
    assert "a100-notready" not in cluster.names
    assert real.reasons["on a node that is not ready"] == 1
    assert "a100-notready" in "\n".join(real.warnings)


def test_gpus_are_cards_shares_or_instances_as_the_node_says(real: KubernetesReading) -> None:
    assert gpus_of(real, "t4-timeslice") == (4, "Tesla-T4-SHARED in 4")
    assert gpus_of(real, "t4-timeslice-samename") == (4, "Tesla-T4-SHARED in 4")
    assert gpus_of(real, "a100-mig-single") == (56, "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb")
    assert gpus_of(real, "hami-1") == (2, "Tesla V100-PCIE-32GB of 32768")
    assert task(real, "infer/slice")[2:] == (1, 250)
    assert task(real, "infer/slice-2")[2:] == (1, 500)
    assert task(real, "infer/slice-samename")[2:] == (1, 750)
    assert task(real, "infer/mig-single")[2:] == (5, 1000)


def test_mig_instances_beside_whole_cards_are_devices_of_their_own(
    real: KubernetesReading,
) -> None:
    cluster = real.migration.problem.cluster
    parts = [n for n, name in enumerate(real.real_node) if name == "a100-mig-mixed"]
    assert [int(cluster.gpus[n]) for n in parts] == [6, 7, 2]
    assert sum(int(cluster.cpu_milli[n]) for n in parts) <= 96_000
    full = real.migration.problem.power.gpu_full_w
    assert full[cluster.models[parts[1]]] == pytest.approx(400 / 7)
    assert may(real, "infer/mig3") == {cluster.names[parts[2]]}


def test_vendors_products_and_their_power(real: KubernetesReading) -> None:
    power = real.migration.problem.power.gpu_full_w
    for node, watts in {
        "gke-l4": 72, "eks-v100": 300, "aks-v100": 300, "amd-mi250": 560, "ali-1": 70,
        "a100-1": 400, "opensim-1": 300,
    }.items():  # fmt: skip
        cluster = real.migration.problem.cluster
        assert power[cluster.models[cluster.index[node]]] == watts
    assert any("no power figures for 'GPU'" in warning for warning in real.warnings)


def test_fractions_are_read_as_each_vendor_writes_them(real: KubernetesReading) -> None:
    assert task(real, "vendor/hami-a[0]")[2:] == (1, 300)  # 30 cores are more than 3000 of 32768
    assert task(real, "vendor/hami-a[1]")[2:] == (1, 500)
    assert (seat(real, "vendor/hami-a[0]"), seat(real, "vendor/hami-a[1]")) == ((0,), (1,))
    assert task(real, "vendor/volcano-mem")[2:] == (1, 250)
    assert task(real, "vendor/volcano-vgpu")[2:] == (1, 500)
    assert task(real, "vendor/ali-mem")[2:] == (1, 500)
    assert seat(real, "vendor/ali-mem") == (2,)
    assert task(real, "vendor/opensim[1]")[2:] == (1, 500)  # per GPU, on 0-1
    assert seat(real, "vendor/opensim[1]") == (1,)
    assert task(real, "vendor/runai-fraction")[2:] == (1, 500)


@pytest.mark.parametrize(
    ("text", "cards"), [("0", (0,)), ("0,2", (0, 2)), ("0-1-2-3", (0, 1, 2, 3)), ("", None)]
)
def test_cards_are_named_in_every_vendors_way(text: str, cards: tuple[int, ...] | None) -> None:
    pod = {"metadata": {"name": "p", "annotations": {"volcano.sh/gpu-index": text}}}
    pool = Pool(("volcano.sh/gpu-memory", "volcano.sh/gpu-number"), "memory", "T4", 4)
    asked = Demand(0, 0, "volcano.sh/gpu-number", len(cards or (0,)), {})
    found = shares(pod, asked, pool)
    assert [share.gpus for share in found] in ([cards], [(g,) for g in cards or ()])


def test_hami_without_its_annotation_goes_by_the_limits(read: Read, objects: Objects) -> None:
    del by_name(objects, "hami-a")["metadata"]["annotations"]
    found = read(objects)
    assert task(found, "vendor/hami-a[0]")[2:] == (1, 300)
    assert task(found, "vendor/hami-a[1]")[2:] == (1, 500)


def test_pods_that_take_gpus_unasked_stay(real: KubernetesReading) -> None:
    assert task(real, "ml/env-visible")[2:] == (0, 0)
    assert real.stays["GPUs without a request"] == 1


def test_what_does_not_fit_is_listed_and_given_room(real: KubernetesReading) -> None:
    said = "\n".join(map(str, real.violations))
    assert "volcano-1 GPU 0: GPU capacity" in said  # a quarter beside a whole card
    assert "ml/train-8 on a100-1" in said  # eight cards, and half of card 3
    assert not real.migration.check(real.migration.current)


def test_a_pod_goes_where_taints_selectors_and_devices_let_it(real: KubernetesReading) -> None:
    assert may(real, "infer/aks") == {"aks-v100"}
    assert may(real, "infer/eks") == {"eks-v100"}
    assert may(real, "infer/gke") == {"gke-l4"}
    assert may(real, "ml/train-8") == {"a100-1", "a100-2", "a100-cordoned"}
    assert may(real, "infer/slice") == {"t4-timeslice"}
    cpu = real.migration.problem.tasks.names.index("infer/cpu-only")
    group = real.migration.node_set_of[cpu]
    assert real.migration.node_sets[group].sum() == 1


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
        "amd": lambda p: p["spec"].update(
            affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}
        ),
    }
    for name, change in changes.items():
        change(owned(by_name(objects, name)))
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
    assert found.reasons["part of its node"] == 2
    cluster = found.migration.problem.cluster
    assert int(cluster.cpu_milli[cluster.index["cpu-1"]]) == 16_000 - 1500


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
    assert "is reachable with 1 moves" in answer.out
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
    assert "is reachable with 1 moves" in text


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text[: len(text) // 2], "valid JSON"),
        (lambda text: "", "valid JSON"),
        (lambda text: "[]", "no nodes"),
        (lambda text: '{"kind": "List", "items": null}', "no nodes"),
        (lambda text: '{"kind": "Pod", "metadata": 3}', "metadata.name"),
        (lambda text: text.replace('"cpu": "24"', '"cpu": "24 cores"'), "no quantity"),
        (lambda text: text.replace('"Running"', '"Succeeded"'), "no running pods"),
        (lambda text: text + "{", "JSON documents one behind another"),
        (lambda text: text + text.replace('"uid": "', '"uid": "9'), "two clusters in one file"),
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


def test_a_table_of_devices_comes_before_the_built_in_figures(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "devices.csv").write_text("model,idle_w,full_w\nGPU,20,200\n")
    answer = cli(
        "audit", "kubernetes", str(DATA), "--devices", str(tmp_path / "devices.csv"), "--json", "-"
    )
    document = json.loads(answer.out)
    assert not any("no power figures" in warning for warning in document["warnings"])


def leaves(item: Any) -> list[tuple[Any, Any]]:
    """Every place of a document, as a container and a key."""
    keys = item.keys() if isinstance(item, dict) else range(len(item))
    found = []
    for key in keys:
        found.append((item, key))
        if isinstance(item[key], (dict, list)):
            found += leaves(item[key])
    return found


@settings(max_examples=30)
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
