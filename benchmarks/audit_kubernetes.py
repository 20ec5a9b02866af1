"""How long it takes to read and to audit a Kubernetes cluster of the Alibaba trace's size.

    python benchmarks/audit_kubernetes.py [--size 1213] [--load 0.95] [--policy random] [--seed 0]
        [--write cluster.json] [--moves 14]

The cluster is written as Kubernetes objects: nodes with their card model, pods with requests,
owners and the GPU share's annotations, and a DaemonSet's pod on every node. Pods are where the
policy put them. Bars: 1,213 nodes and 8,000 pods read within 3 s and audited within 30 s (two
cores, compiled before), with a certified gap of at most 1 %.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import optgap
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.kubernetes import read_kubernetes

DAEMON_MILLI = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1213)
    parser.add_argument("--load", type=float, default=0.95)
    parser.add_argument("--policy", default="random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", default=None)
    parser.add_argument("--moves", type=int, default=None)
    arguments = parser.parse_args()
    problem = optgap.generate(
        "placement", seed=arguments.seed, size=arguments.size, load=arguments.load
    )
    placed = optgap.run(problem, arguments.policy, seed=arguments.seed).solution
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments.write or Path(folder) / "cluster.json")
        path.write_text(json.dumps(kubernetes_objects(problem, placed)))
        measure(path, arguments.moves)


def measure(path: Path, moves: int | None) -> None:
    """Read and audit, with the seconds of each."""
    started = time.perf_counter()
    reading = read_kubernetes(path)
    read_s = time.perf_counter() - started
    size = path.stat().st_size / 1e6
    print(f"{reading.migration.problem}\n{reading.records:,} pods, {size:.0f} MB")
    print(f"read in {read_s:.2f} s (bar 3 s)")
    optgap.audit("kubernetes", path, time_limit=1)  # compiles
    started, cpu = time.perf_counter(), time.process_time()
    audit = optgap.audit("kubernetes", path, moves=moves)
    audit_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    print(audit)
    print(f"audited in {audit_s:.1f} s (bar 30 s), {cpu_s:.1f} s of them CPU")
    print(f"gap {100 * (audit.gap or 0):.2f} % (bar 1 %)")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB")


def kubernetes_objects(problem: PlacementProblem, solution: PlacementSolution) -> dict[str, Any]:
    """A placement as the list that ``kubectl get nodes,pods -A -o json`` prints."""
    cluster, tasks = problem.cluster, problem.tasks
    nodes = [_node(problem, n) for n in range(len(cluster))]
    pods = [_daemon(name) for name in cluster.names]
    pods += [_pod(problem, solution, k) for k in range(len(tasks)) if solution.node[k] >= 0]
    return {"apiVersion": "v1", "kind": "List", "items": nodes + pods}


def _node(problem: PlacementProblem, n: int) -> dict[str, Any]:
    cluster = problem.cluster
    gpus = int(cluster.gpus[n])
    cards = {"alibabacloud.com/gpu-count": str(gpus), "alibabacloud.com/gpu-milli": f"{gpus}k"}
    model = {"alibabacloud.com/gpu-card-model": cluster.models[n]}
    amounts = {
        "cpu": f"{int(cluster.cpu_milli[n]) + DAEMON_MILLI}m",
        "memory": f"{int(cluster.memory_mib[n])}Mi",
        "pods": "1100",
        **(cards if gpus else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": cluster.names[n],
            "uid": f"node-{n}",
            "labels": {"kubernetes.io/hostname": cluster.names[n], **(model if gpus else {})},
        },
        "spec": {},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(problem: PlacementProblem, solution: PlacementSolution, k: int) -> dict[str, Any]:
    tasks, node = problem.tasks, int(solution.node[k])
    notes = {
        "alibabacloud.com/gpu-count": str(int(tasks.num_gpu[k])),
        "alibabacloud.com/gpu-milli": str(int(tasks.gpu_milli[k])),
        "alibabacloud.com/gpu-index": "-".join(map(str, solution.gpus(k))),
    }
    models = [m for m in tasks.gpu_specs[k].split("|") if m and tasks.num_gpu[k]]
    term = {"key": "alibabacloud.com/gpu-card-model", "operator": "In", "values": models}
    rule = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": rule}
    requests = {
        "cpu": f"{int(tasks.cpu_milli[k])}m",
        "memory": f"{int(tasks.memory_mib[k])}Mi",
    }
    return _object(
        f"pod-{k}",
        problem.cluster.names[node],
        requests,
        "ReplicaSet",
        notes if tasks.num_gpu[k] else {},
        {"affinity": {"nodeAffinity": required}} if models else {},
    )


def _daemon(node: str) -> dict[str, Any]:
    return _object(f"exporter-{node}", node, {"cpu": f"{DAEMON_MILLI}m"}, "DaemonSet", {}, {})


def _object(
    name: str,
    node: str,
    requests: dict[str, str],
    owner: str,
    notes: dict[str, str],
    more: dict[str, Any],
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "trace",
            "uid": f"uid-{name}",
            "annotations": notes,
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": owner, "name": "owner", "uid": "owner",
                 "controller": True}
            ],
        },
        "spec": {
            "nodeName": node,
            "containers": [
                {"name": "main", "image": "registry.example/train:1",
                 "resources": {"requests": requests}}
            ],
            **more,
        },
        "status": {"phase": "Running"},
    }  # fmt: skip


if __name__ == "__main__":
    main()
