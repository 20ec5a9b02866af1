"""The placement policies once more: plain Python, straight from the rules, one node at a time.

Shares no code with the package beyond the problem's own data, so that equal placements are
evidence. It recomputes everything at every arrival and is slow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.models.placement import PlacementProblem
from optgap.models.placement.tasks import TaskClass

Placement = tuple[int, tuple[int, ...]] | None


@dataclass
class Node:
    """A node's free resources, and what was ever placed on it."""

    model: str
    cpu_capacity: int
    cpu: int
    memory: int
    gpus: list[int]
    tasks: int
    kinds: set[str]


class SlowRun:
    """One run of one policy."""

    def __init__(
        self,
        problem: PlacementProblem,
        policy: str,
        *,
        alpha: float = 0.1,
        score: str = "implemented",
        seed: int = 0,
    ) -> None:
        cluster = problem.cluster
        self.problem = problem
        self.policy = policy
        self.exact = score == "exact" or policy == "greedy-exact"
        self.alpha = {"pwr": 1.0, "fgd": 0.0}.get(policy, alpha)
        rng = np.random.default_rng(seed)
        self.node_draws = rng.random(len(problem.tasks))
        self.gpu_draws = rng.random(len(problem.tasks))
        self.nodes = [
            Node(
                cluster.models[n],
                int(cluster.cpu_milli[n]),
                int(cluster.cpu_milli[n]),
                int(cluster.memory_mib[n]),
                [1000] * int(cluster.gpus[n]),
                0,
                set(),
            )
            for n in range(len(cluster))
        ]

    def place_all(self, count: int | None = None) -> list[Placement]:
        """The placements of the first `count` arrivals, of all by default."""
        tasks = self.problem.tasks
        return [self.place(k) for k in range(len(tasks) if count is None else count)]

    def place(self, k: int) -> Placement:
        task = self.problem.tasks.task_class(k)
        by_rank = sorted(range(len(self.nodes)), key=lambda n: int(self.problem.ranks[n]))
        feasible = [n for n in by_rank if self.fits(task, self.nodes[n])]
        if not feasible:
            return None
        if self.policy == "random":
            n = feasible[min(len(feasible) - 1, int(self.node_draws[k] * len(feasible)))]
        else:
            totals = self.totals(task, feasible)
            n = feasible[totals.index(max(totals))]
        gpus = self.select(task, n, float(self.gpu_draws[k]))
        self.commit(task, self.nodes[n], gpus)
        return n, gpus

    # -- feasibility and candidates --------------------------------------------------------

    def fits(self, task: TaskClass, node: Node) -> bool:
        if task.cpu_milli > node.cpu or task.memory_mib > node.memory or node.tasks >= 1001:
            return False
        if task.num_gpu == 0:
            return True
        if task.gpu_spec and node.model not in task.gpu_spec.split("|"):
            return False
        return len(self.options(task, node)) > 0

    def options(self, task: TaskClass, node: Node) -> list[tuple[int, ...]]:
        """The GPU sets to weigh: one per fitting GPU for a share, one for anything else."""
        if task.num_gpu == 0:
            return [()]
        if task.gpu_milli == 1000:
            idle = [g for g, free in enumerate(node.gpus) if free == 1000]
            return [tuple(idle[: task.num_gpu])] if len(idle) >= task.num_gpu else []
        return [(g,) for g, free in enumerate(node.gpus) if free >= task.gpu_milli]

    def after(self, task: TaskClass, node: Node, gpus: tuple[int, ...]) -> tuple[int, list[int]]:
        left = list(node.gpus)
        for g in gpus:
            left[g] -= task.gpu_milli
        return node.cpu - task.cpu_milli, left

    # -- power and fragmentation -----------------------------------------------------------

    def power(self, node: Node, cpu: int, gpus: list[int]) -> float:
        model = self.problem.power
        profile = model.cpu
        if model.cpu_rule == "eq1":
            package = 2000 * profile.cores
            active = math.ceil((node.cpu_capacity - cpu) / package)
            idle = math.floor(cpu / package)
        else:
            cores = math.ceil(node.cpu_capacity / 2000)
            active = math.ceil((cores - math.floor(cpu / 2000)) / profile.cores)
            idle = math.ceil(cores / profile.cores) - active
        cpu_w = profile.full_w * active + profile.idle_w * idle
        if not gpus:
            return cpu_w
        busy = len([free for free in gpus if free < 1000])
        full_w, idle_w = model.gpu_full_w[node.model], model.gpu_idle_w[node.model]
        return (full_w * busy + idle_w * (len(gpus) - busy)) + cpu_w

    def useless(self, m: int, node: Node, cpu: int, gpus: list[int]) -> int:
        """F_n(m): free milli-GPU that class m of the target workload cannot use."""
        workload = self.problem.workload
        wanted, spec = int(workload.gpu_milli[m]), workload.gpu_specs[m]
        if wanted == 0 or (spec and node.model not in spec.split("|")):
            return sum(gpus)
        fitting = [free for free in gpus if free >= wanted]
        if len(fitting) < workload.num_gpu[m] or cpu < workload.cpu_milli[m]:
            return sum(gpus)
        return sum(gpus) - sum(fitting)

    def fragment(self, node: Node, cpu: int, gpus: list[int]) -> float:
        """F_n(M) as the simulators add it up."""
        workload = self.problem.workload
        bucket = dict.fromkeys(("q1", "q2", "q4", "xl", "xr", "na"), 0.0)
        for m in range(len(workload)):
            p, wanted = float(workload.popularity[m]), int(workload.gpu_milli[m])
            spec = workload.gpu_specs[m]
            cpu_ok = cpu >= workload.cpu_milli[m]
            gpu_ok = len([f for f in gpus if f >= wanted]) >= workload.num_gpu[m]
            if wanted == 0:
                name = "xl" if cpu_ok else "xr"
            elif spec and node.model not in spec.split("|"):
                name = "na"
            elif gpu_ok:
                name = "q2" if cpu_ok else "q4"
            else:
                name = "q2" if cpu_ok else "q1"
            bucket[name] += p * self.useless(m, node, cpu, gpus)
        total = 0.0
        for name in ("q1", "q2", "q4", "xl", "xr", "na"):
            total += bucket[name]
        return total

    # -- scores ----------------------------------------------------------------------------

    def totals(self, task: TaskClass, feasible: list[int]) -> list[float]:
        nodes = [self.nodes[n] for n in feasible]
        if self.exact:
            return [max(self.gain(task, v, o) for o in self.options(task, v)) for v in nodes]
        if self.policy in ("pwr", "fgd", "pwr+fgd"):
            weights = round(1000 * self.alpha), round(1000 * (1 - self.alpha))
            pwr = [max(self.pwr(task, v, o) for o in self.options(task, v)) for v in nodes]
            fgd = [max(self.fgd(task, v, o) for o in self.options(task, v)) for v in nodes]
            stretched = stretch(pwr, alike=100)
            return [
                float(weights[0] * a + weights[1] * b) for a, b in zip(stretched, fgd, strict=True)
            ]
        if self.policy == "bestfit":
            return [float(x) for x in stretch([self.bestfit(task, v) for v in nodes], alike=0)]
        rules = {
            "dotprod": self.dotprod,
            "gpupacking": self.gpupacking,
            "gpuclustering": self.gpuclustering,
            "firstfit": lambda task, node: 0,
        }
        return [float(rules[self.policy](task, v)) for v in nodes]

    def gain(self, task: TaskClass, node: Node, gpus: tuple[int, ...]) -> float:
        """What a placement takes off the objective, without any rounding of ours."""
        watts, fragments = self.alpha, (1 - self.alpha) / 1000
        if self.policy == "fgd":
            fragments = 1.0
        if self.policy == "greedy-exact":
            watts, fragments = self.problem.objective.weights
            if self.problem.objective.goal in ("accepted_gpu", "mean_accepted_gpu"):
                fragments = 1.0
        cpu, left = self.after(task, node, gpus)
        woken = [g for g in gpus if node.gpus[g] == 1000]
        power = self.problem.power
        rise = 0.0
        if gpus:
            rise = (power.gpu_full_w[node.model] - power.gpu_idle_w[node.model]) * len(woken)
        rise += self.power(node, cpu, []) - self.power(node, node.cpu, [])
        change = 0.0
        for m, p in enumerate(self.problem.workload.popularity):
            step = self.useless(m, node, cpu, left) - self.useless(m, node, node.cpu, node.gpus)
            change += float(p) * step
        return -(watts * rise + fragments * change)

    def pwr(self, task: TaskClass, node: Node, gpus: tuple[int, ...]) -> int:
        cpu, left = self.after(task, node, gpus)
        return int(self.power(node, node.cpu, node.gpus) - self.power(node, cpu, left))

    def fgd(self, task: TaskClass, node: Node, gpus: tuple[int, ...]) -> int:
        cpu, left = self.after(task, node, gpus)
        change = self.fragment(node, node.cpu, node.gpus) - self.fragment(node, cpu, left)
        return int(100 * (1 / (1 + math.exp(-(change / 1000)))))

    def bestfit(self, task: TaskClass, node: Node) -> int:
        total = 0.0
        total += (node.cpu - task.cpu_milli) / 128000 * 0.5
        total += (sum(node.gpus) - task.demand_milli) / 8000 * 0.5
        return int(100 * (1 - total))

    def dotprod(self, task: TaskClass, node: Node) -> int:
        dot = (node.cpu / 128000) * (task.cpu_milli / 128000)
        dot += (sum(node.gpus) / 8000) * (task.demand_milli / 8000)
        return int(100 * (1 - dot / 2))

    def gpupacking(self, task: TaskClass, node: Node) -> int:
        if task.num_gpu == 0:
            return 0
        idle = node.gpus.count(1000)
        if idle == len(node.gpus):
            return max(33 - idle, idle)
        chosen = sorted(free for free in node.gpus if free >= task.gpu_milli)[: task.num_gpu]
        fresh = chosen.count(1000)
        if fresh:
            return max(50 - fresh, 33)
        return max(100 - sum(free // 10 for free in chosen) // 10, 50)

    def gpuclustering(self, task: TaskClass, node: Node) -> int:
        if task.num_gpu == 0:
            return 0
        base = int(25 * (8000 - sum(node.gpus)) / 8000)
        if kind_of(task) in node.kinds:
            return base + (75 if len(node.kinds) == 1 else 50)
        return base + (25 if not node.kinds else 0)

    # -- GPUs ------------------------------------------------------------------------------

    def select(self, task: TaskClass, n: int, draw: float) -> tuple[int, ...]:
        node = self.nodes[n]
        options = self.options(task, node)
        if len(options) == 1 or self.policy == "firstfit":
            return options[0]
        if self.policy == "random":
            return options[min(len(options) - 1, int(draw * len(options)))]
        if self.exact:
            values = [self.gain(task, node, o) for o in options]
        elif self.policy in ("pwr", "fgd", "pwr+fgd"):
            rule = self.pwr if self.alpha > 0.5 else self.fgd
            values = [float(rule(task, node, o)) for o in options]
        else:
            values = [-float(node.gpus[o[0]]) for o in options]
        return options[values.index(max(values))]

    def commit(self, task: TaskClass, node: Node, gpus: tuple[int, ...]) -> None:
        node.cpu, node.gpus = self.after(task, node, gpus)
        node.memory -= task.memory_mib
        node.tasks += 1
        if task.num_gpu:
            node.kinds.add(kind_of(task))


def kind_of(task: TaskClass) -> str:
    """What GpuClustering tells apart."""
    return "share" if task.gpu_milli < 1000 else str(task.num_gpu)


def stretch(raw: list[int], alike: int) -> list[int]:
    """Min-max to 0..100 in integers; `alike` for all where all are alike."""
    low, high = min(raw), max(raw)
    if high == low:
        return [alike] * len(raw)
    return [(x - low) * 100 // (high - low) for x in raw]
