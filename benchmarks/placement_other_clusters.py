"""`node-value` against PWR and PWR+FGD on clusters and workloads other than Alibaba's.

Clusters, tasks and GPU models come as CSV files, as a user's own would. The sizes of nodes are
those of named machines; how many there are of each is assumed:

- ``saturn``: after Helios' cluster of that name (Hu et al., SC '21): 262 nodes of 8 GPUs, 64
  threads and 256 GB, half of them Pascal and half Volta (all assumed, not checked against it);
- ``ec2``: 280 instances of g4dn.12xlarge, g5.48xlarge, p3.16xlarge, p4d.24xlarge, p5.48xlarge;
- ``dgx``: 96 DGX A100 and 64 DGX H100.

Workloads: ``alibaba``, the Default tasks that ship with the package; a variant of them in
``--data``; ``philly``, whole GPUs in the shares that the Philly trace (``--philly``) asks for, up
to 8, with 6 vCPU and 24 GiB a GPU (assumed: the trace has none). A task that no node could take is
left out.

    python benchmarks/placement_other_clusters.py [--cases TEXT] [--seeds 20] [--bounds 0]
        [--data FOLDER] [--philly FILE] [--set NAME=VALUE ...] [--choose]

``--choose`` adds a row with the setting that turns least away, and then draws least, on the
training seeds 300 to 303 of the case; all rows are about seeds from 400 on.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from placement_node_value import Case, measured

import optgap
from optgap.models.placement import PlacementProblem
from optgap.models.placement.alibaba import NODE_TYPES
from optgap.models.placement.making import cluster_of, trace_of_classes
from optgap.models.placement.openb import read_tasks
from optgap.models.placement.presets import from_csv
from optgap.models.placement.tasks import Tasks

FIRST_SEED = 400
GIB = 1024
CLUSTERS = {
    "saturn": (("P100", 8, 64, 256, 131), ("V100M32", 8, 64, 256, 131)),
    "ec2": (
        ("T4", 4, 48, 192, 100),
        ("A10G", 8, 192, 768, 60),
        ("V100M16", 8, 64, 488, 60),
        ("A100", 8, 96, 1152, 40),
        ("H100", 8, 192, 2048, 20),
    ),
    "dgx": (("A100", 8, 256, 1024, 96), ("H100", 8, 224, 2048, 64)),
}
"""(GPU model, GPUs, vCPU, GiB, nodes)."""
DEVICES = (("A10G", 30, 300), ("H100", 70, 700))
"""(GPU model, idle W, full W): data sheets, and an idle power between A100's and H100's peers."""
VARIANTS = ("gpushare100",)
LOADS = (0.5, 0.85)
TRAINING = range(300, 304)
SETTINGS = [
    {"q": q, "rent_w": rent} for q in (0.002, 0.007, 0.02, 0.05, 0.2) for rent in (0.0, 15.0)
] + [{"q": 1.0, "rent_w": 0.0}]
"""What `--choose` chooses from; the last one is PWR but for the cost of fragments."""


def written(path: Path, header: str, rows: Iterable[Iterable[object]]) -> Path:
    """A CSV file."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(header.split(","))
        out.writerows(rows)
    return path


def philly(path: Path) -> Tasks:
    """A thousand tasks in the proportions of the trace's GPU counts, up to 8."""
    with gzip.open(path, "rt") as file:
        counts = Counter(int(row["num_gpus"]) for row in csv.DictReader(file) if row["num_gpus"])
    kept = {gpus: count for gpus, count in counts.items() if 1 <= gpus <= 8}
    total = sum(kept.values())
    gpus = [g for g, count in sorted(kept.items()) for _ in range(round(1000 * count / total))]
    return Tasks.of(
        [f"philly-{k}" for k in range(len(gpus))],
        [6000 * g for g in gpus],
        [24 * GIB * g for g in gpus],
        gpus,
        [1000] * len(gpus),
        [""] * len(gpus),
    )


def files_of(folder: Path, cluster: str, workload: str, tasks: Tasks) -> tuple[Path, Path, Path]:
    """The three CSV files of a case, without tasks that no node could take."""
    types = CLUSTERS[cluster]
    nodes = [
        (f"{cluster}-{model}-{k}", 1000 * cpu, GIB * memory, gpus, model)
        for model, gpus, cpu, memory, count in types
        for k in range(count)
    ]
    columns = (
        tasks.names, tasks.cpu_milli, tasks.memory_mib, tasks.num_gpu, tasks.gpu_milli,
        tasks.gpu_specs,
    )  # fmt: skip
    rows = [
        row
        for row in zip(*columns, strict=True)
        if any(
            row[1] <= 1000 * cpu and row[2] <= GIB * memory and row[3] <= gpus
            for _, gpus, cpu, memory, _ in types
        )
    ]
    task_header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"
    return (
        written(folder / f"{cluster}.csv", "sn,cpu_milli,memory_mib,gpu,model", nodes),
        written(folder / f"{cluster}-{workload}.csv", task_header, rows),
        written(folder / "devices.csv", "model,idle_w,full_w", DEVICES),
    )


def cases(folder: Path, data: Path | None, jobs: Path | None) -> Iterator[Case]:
    workloads = {"alibaba": trace_of_classes()}
    for name in VARIANTS if data is not None else ():
        workloads[name] = read_tasks(data / f"openb_pod_list_{name}.csv", cluster_of(NODE_TYPES))
    if jobs is not None:
        workloads["philly"] = philly(jobs)
    for cluster in CLUSTERS:
        for workload, tasks in workloads.items():
            files = files_of(folder, cluster, workload, tasks)
            for load in LOADS:

                def made(
                    seed: int, files: tuple[Path, Path, Path] = files, load: float = load
                ) -> PlacementProblem:
                    nodes, rows, devices = files
                    return from_csv(
                        nodes, rows, devices=devices, seed=seed, load=load, sampling="monte-carlo"
                    )

                yield Case(f"{cluster}, {workload}, {load}", made)


def chosen(case: Case, given: dict[str, float]) -> dict[str, float]:
    """The best setting for the case on the training seeds, beside what is given."""
    problems = [case.make(seed) for seed in TRAINING]

    def score(setting: dict[str, float]) -> tuple[int, float]:
        results = [optgap.run(problem, "node-value", **given, **setting) for problem in problems]
        away = sum(result.metrics["failed_tasks"] for result in results)
        return away, sum(result.objective or 0.0 for result in results)

    given = {name: value for name, value in given.items() if name not in SETTINGS[0]}
    return min(SETTINGS, key=score)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default="", help="only those whose name has this in it")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--bounds", type=int, default=0, help="seeds that are bounded, too")
    parser.add_argument("--data", type=Path, help="folder of the openb CSV files")
    parser.add_argument("--philly", type=Path, help="philly_jobs.csv.gz")
    parser.add_argument("--set", nargs="*", default=[], help="of node-value, NAME=NUMBER")
    parser.add_argument("--choose", action="store_true", help="q and rent on training seeds")
    asked = parser.parse_args()
    given = {name: float(value) for name, value in (text.split("=") for text in asked.set)}
    seeds = range(FIRST_SEED, FIRST_SEED + asked.seeds)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder), asked.data, asked.philly):
            if asked.cases in case.name:
                print(measured(case, seeds, asked.bounds, given), flush=True)
                if asked.choose:
                    setting = chosen(case, given)
                    print(" ", setting, measured(case, seeds, 0, {**given, **setting}), flush=True)


if __name__ == "__main__":
    main()
