"""The families, and where their parts are: nothing is imported before it is asked for."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module, util
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from optgap.contract import Problem, ProblemClass, SolutionClass
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.quantities import judge, settings_doubted
from optgap.models.spec import Entry, Parameter, imported, meanings
from optgap.parameters import call_text, split_call, typed

POLICY_GROUP = "optgap.policies"
Role = Literal["policies", "methods", "presets", "formulations"]
REPEATABLE = "repeatable"
"""In the text about a file that may be given several times."""


@dataclass(frozen=True, slots=True)
class FamilySpec:
    """One problem family, as ``module:attribute`` texts.

    Parameters
    ----------
    name: the family's name, the same in every folder.
    question: what is decided and what is optimised, in one line.
    problem, solution: the classes.
    tables: a function that makes a problem from CSV files, ``f(**files, seed, **params)``.
    files: the CSV files that `tables` takes and their columns; those that must be given first.
    needed: how many of `files` must be given.
    tables_out: what can be written about a solution: functions ``f(problem, solution) -> CSV
        text`` by the option that asks for them, and their columns.
    view: a function that draws a solution, ``f(problem, solution, by) -> matplotlib Figure``;
        `by` is who made it, for the title.
    exact: the exact methods that policies ask at their events, by policy.
    per_event: the policy that solves every event exactly with what is known by then, or, where
        `per_event_exact` is false, as well as it can.
    counted: ``f(problem)``, the problem with GPUs of nodes only counted; None where they are.
    regrets: a function that judges a solution's decisions one by one, ``f(problem, solution) ->
        list of Regret``.
    refit: a function that puts fits into a problem, ``f(problem, fits, seed=0)``; `SERVES` beside
        it names the models that it takes.
    doubts: a function that names what looks like another unit, ``f(problem) -> list of Doubt``.
    tiny: parameters of `generate` for a problem on which everything is done in a moment.
    """

    name: str
    question: str
    problem: str
    solution: str
    tables: str
    files: Mapping[str, str] = field(default_factory=dict)
    needed: int = 0
    tables_out: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    view: str = ""
    exact: Mapping[str, str] = field(default_factory=dict)
    per_event: str = ""
    per_event_exact: bool = True
    counted: str = ""
    regrets: str = ""
    refit: str = ""
    doubts: str = ""
    tiny: Mapping[str, Any] = field(default_factory=dict)

    def from_tables(self, files: Mapping[str, Any], given: Mapping[str, Any], seed: int) -> Problem:
        """A problem from CSV files, or what stands for them, and parameters, which may be text.

        The parameter ``strict``, true without it, refuses what looks like another unit.

        Raises
        ------
        InputError: for an unknown parameter, or what the files hold.
        """
        function = imported(self.tables)
        values = typed(given, _keywords(function, skip=("seed", *self.files)), "CSV files", "--set")
        strict = values.get("strict", True)
        if strict:  # before they make nonsense of everything else
            judge(settings_doubted(values), "--set", True)
        problem: Problem = function(**files, seed=seed, **values)
        self.judge(problem, problem.name, strict)
        return problem

    def judge(self, problem: Problem, source: str, strict: bool) -> None:
        """Refuse what looks like another unit, or without `strict` warn of it in one line.

        Raises
        ------
        InputError: with `strict`, for a value that is not believed.
        """
        if self.doubts:
            judge(imported(self.doubts)(problem), source, strict)

    @property
    def serves(self) -> tuple[str, ...]:
        """The fitted models that its problems take."""
        return tuple(imported(f"{self.refit.partition(':')[0]}:SERVES"))

    def export(self, name: str, problem: Problem, solution: Any) -> str:
        """One of `tables_out` for a solution, as CSV text."""
        text: str = imported(self.tables_out[name][0])(problem, solution)
        return text

    @property
    def problem_class(self) -> ProblemClass:
        cls: ProblemClass = imported(self.problem)
        return cls

    @property
    def solution_class(self) -> SolutionClass:
        cls: SolutionClass = imported(self.solution)
        return cls

    @property
    def methods(self) -> Mapping[str, Entry]:
        """Exact methods and bounds, by name."""
        table: Mapping[str, Entry] = imported(f"optgap.solvers.{self.name}:METHODS")
        return table

    @property
    def formulations(self) -> Mapping[str, Entry]:
        """What `optgap export` writes, by name; the first is the default."""
        table: Mapping[str, Entry] = imported(f"optgap.solvers.{self.name}:FORMULATIONS")
        return table

    @property
    def policies(self) -> Mapping[str, Entry]:
        """Online policies, by name."""
        table: Mapping[str, Entry] = imported(f"optgap.heuristics.{self.name}:POLICIES")
        asking = {name: replace(table[name], exact=exact) for name, exact in self.exact.items()}
        return {**table, **asking}

    @property
    def presets(self) -> Mapping[str, Entry]:
        """Ready-made problems, by name; the first is the default."""
        table: Mapping[str, Entry] = imported(f"optgap.models.{self.name}.presets:PRESETS")
        return table

    def explained(self, role: Role, entry: Entry) -> dict[str, Parameter]:
        """What each parameter of an entry means; `role` is the table that the entry is in."""
        if entry.options is not None or not entry.params:
            return meanings(entry.options) if entry.options else {}
        folder = {"policies": "heuristics", "presets": "models"}.get(role, "solvers")
        known: Mapping[str, Parameter]
        known = imported(f"optgap.{folder}.{self.name}.parameters:PARAMETERS")
        return {name: known.get(f"{entry.name}.{name}") or known[name] for name in entry.params}

    def auto(self, problem: Problem) -> str:
        """The method for a problem of this size."""
        return str(imported(f"optgap.solvers.{self.name}:auto")(problem))

    def auto_bound(self, problem: Problem) -> str:
        """The bound for a problem of this size."""
        return str(imported(f"optgap.solvers.{self.name}:auto_bound")(problem))


FAMILIES: Mapping[str, FamilySpec] = {
    spec.name: spec
    for spec in (
        FamilySpec(
            "placement",
            "which node and which GPU does each arriving task get?",
            problem="optgap.models.placement.problem:PlacementProblem",
            solution="optgap.models.placement.solution:PlacementSolution",
            tables="optgap.models.placement.presets:from_csv",
            tiny={"preset": "small", "size": 6},
            files={
                "nodes": "sn,cpu_milli,memory_mib,gpu,model",
                "tasks": "name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]",
                "order": "seq,task",
                "ranks": "rank,node",
                "devices": "model,idle_w,full_w",
                "model": f"a fit of device-power (JSON); {REPEATABLE}",
            },
            needed=2,
            tables_out={
                "placements": (
                    "optgap.models.placement.csvout:placements",
                    "seq,node,gpu_index per arrival",
                ),
                "series": (
                    "optgap.models.placement.csvout:series",
                    "demand, use, fragmentation and power after each arrival",
                ),
            },
            view="optgap.views.placement:draw",
            doubts="optgap.models.placement.doubts:doubts",
            per_event="greedy-exact",
            regrets="optgap.heuristics.placement.regret:regrets",
            refit="optgap.models.placement.fits:refit",
        ),
        FamilySpec(
            "consolidation",
            "which tasks share which GPUs, at which clock?",
            problem="optgap.models.consolidation.problem:ConsolidationProblem",
            solution="optgap.models.consolidation.solution:ConsolidationSolution",
            tables="optgap.models.consolidation.csvin:from_csv",
            tiny={"size": 4, "servers": 2},
            files={
                "tasks": "task,memory_gb[,submit_s,gpus,duration_s,kappa,util_percent,app]",
                "series": "task,t_s,util_percent",
                "model": "fits of linear-power, power-law-power, power-law-jct, contention "
                f"(JSON); {REPEATABLE}",
            },
            needed=1,
            tables_out={
                "placements": (
                    "optgap.models.consolidation.csvout:placements",
                    "task,start_s,server,gpu_index per stay of a task",
                ),
            },
            view="optgap.views.consolidation:draw",
            doubts="optgap.models.consolidation.doubts:doubts",
            per_event="opt_nomig",
            regrets="optgap.heuristics.consolidation.regret:regrets",
            refit="optgap.models.consolidation.fits:refit",
        ),
        FamilySpec(
            "coscheduling",
            "which jobs share a node, on how many GPUs each, and when?",
            problem="optgap.models.coscheduling.problem:CoschedulingProblem",
            solution="optgap.models.coscheduling.solution:CoschedulingSolution",
            tables="optgap.models.coscheduling.presets:from_csv",
            tiny={"size": 5},
            files={
                "profiles": "app,gpu_count,runtime_s,avg_power_per_gpu_w[,dram_util_sum]",
                "jobs": "app,count[,release_s]",
                "model": "a fit of dram-runtime (JSON): policies decide on it, and it fills in run "
                f"times left empty; {REPEATABLE}",
            },
            needed=1,
            tables_out={
                "schedule": (
                    "optgap.models.coscheduling.csvout:schedule",
                    "job,app,gpu_count,start_s,end_s,gpu_index per run",
                ),
            },
            view="optgap.views.coscheduling:draw",
            doubts="optgap.models.coscheduling.doubts:doubts",
            exact={"exact-window": "optgap.solvers.coscheduling.oracle:best_schedule"},
            per_event="exact-window",
            regrets="optgap.solvers.coscheduling.regret:regrets",
            refit="optgap.models.coscheduling.fits:refit",
        ),
        FamilySpec(
            "queueing",
            "which waiting gang job starts next?",
            problem="optgap.models.queueing.problem:QueueingProblem",
            solution="optgap.models.queueing.solution:QueueingSolution",
            tables="optgap.models.queueing.presets:from_file",
            tiny={"preset": "small", "size": 6},
            files={
                "jobs": "job,arrival_s,duration_s,gpus[,type,family,iterations,estimate_s,"
                "patience_s,batch]; or a .swf log",
                "model": "a fit of powerflow-throughput (JSON), for jobs that tell family, batch "
                f"and iterations; {REPEATABLE}",
            },
            needed=1,
            tables_out={
                "schedule": (
                    "optgap.models.queueing.csvout:schedule",
                    "job,start_s,end_s,nodes per job that starts",
                ),
            },
            view="optgap.views.queueing:draw",
            doubts="optgap.models.queueing.doubts:doubts",
            per_event="replan",
            per_event_exact=False,
            counted="optgap.models.queueing.problem:counted",
            regrets="optgap.heuristics.queueing.regret:regrets",
            refit="optgap.models.queueing.fits:refit",
        ),
        FamilySpec(
            "elastic",
            "how many GPUs and which clock does each training job get now?",
            problem="optgap.models.elastic.problem:ElasticProblem",
            solution="optgap.models.elastic.solution:ElasticSolution",
            tables="optgap.models.elastic.presets:from_csv",
            tiny={"preset": "tiny", "size": 4},
            files={
                "jobs": "job,submit_s,model,batch,iterations[,gpus]",
                "models": "JSON of tables or parameters; or a fit of powerflow-energy, or fits of "
                f"powerflow-throughput and of power; {REPEATABLE}",
                "trace": "a Philly, Gavel, ElasticFlow, Pollux or Sia trace, instead of --jobs",
            },
            needed=0,
            tables_out={
                "timeline": (
                    "optgap.models.elastic.csvout:timeline",
                    "time_s,job,event,gpus,frequency_mhz",
                ),
                "series": (
                    "optgap.models.elastic.csvout:series",
                    "jobs, GPUs and power after each change",
                ),
            },
            view="optgap.views.elastic:draw",
            doubts="optgap.models.elastic.doubts:doubts",
            exact=dict.fromkeys(
                ("optimal", "optimal-slowdown"), "optgap.solvers.elastic.snapshot:solve"
            ),
            per_event="optimal",
            regrets="optgap.solvers.elastic.regret:regrets",
            refit="optgap.models.elastic.fits:refit",
        ),
    )
}


def file_options(outgoing: bool) -> dict[str, str]:
    """Every file that some family reads, or with `outgoing` writes, and what it holds."""
    found: dict[str, list[str]] = {}
    for spec in FAMILIES.values():
        columns = {n: text for n, (_, text) in spec.tables_out.items()} if outgoing else spec.files
        for name, text in columns.items():
            found.setdefault(name, []).append(f"{spec.name}: {text}")
    return {name: "; ".join(texts) for name, texts in found.items()}


def families() -> tuple[str, ...]:
    """The names of the problem families."""
    return tuple(FAMILIES)


def family(name: str, source: str = "family") -> FamilySpec:
    """The family of this name.

    Raises
    ------
    InputError: when there is none, listing those there are.
    """
    if not isinstance(name, str) or name not in FAMILIES:
        raise InputError(source, "", name, one_of(FAMILIES))
    return FAMILIES[name]


@dataclass(frozen=True, slots=True)
class Runnable:
    """A method or policy with its parameters, ready to run on a problem.

    Parameters
    ----------
    entry: the row of the family's table; for a user's own policy that of the adapter.
    label: as the user named it, parameters included.
    params: its parameters.
    known: the parameters it has, with their defaults.
    own: a user's own policy, outside this package.
    """

    entry: Entry
    label: str
    params: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False

    def treats(self, problem: Problem) -> bool:
        """Whether the problem's objective is one of the method's."""
        return not self.entry.goals or problem.objective.described.name in self.entry.goals

    def require_goal(self, problem: Problem, source: str) -> None:
        """Raise InputError when the method does not treat the problem's objective."""
        if not self.treats(problem):
            raise InputError(
                source,
                self.label,
                NoQuote(f"a problem whose objective is {problem.objective.described.name}"),
                one_of(self.entry.goals),
            )


def method(
    spec: FamilySpec, text: str, given: Mapping[str, Any] | None = None, source: str = "--method"
) -> Runnable:
    """The method that ``name(key=value, …)`` names, with `given` parameters on top.

    Raises
    ------
    InputError: for an unknown name or parameter, or a value of the wrong type.
    """
    return _from_table(spec, spec.methods, text, given, source)


def formulation(
    spec: FamilySpec, text: str, given: Mapping[str, Any] | None = None, source: str = "--method"
) -> Runnable:
    """The formulation that ``name(key=value, …)`` names; parameters and errors as for `method`."""
    return _from_table(spec, spec.formulations, text, given, source)


def policy(
    spec: FamilySpec,
    text: str | Callable[..., Any],
    given: Mapping[str, Any] | None = None,
    source: str = "--policy",
) -> Runnable:
    """The policy of this name, or a user's own.

    `text` is the name of a policy of the family or of an entry point in the group
    ``optgap.policies``; or ``module:attribute`` or ``path/to/file.py:attribute``; each with
    ``(key=value, …)`` behind it if need be. A function or class itself will do, too.

    Raises
    ------
    InputError: for an unknown name or parameter, a value of the wrong type, or a module that
        cannot be imported.
    """
    if not isinstance(text, str):
        return _own(spec, text, getattr(text, "__name__", type(text).__name__), given, source)
    name, params = split_call(text, source)
    points = installed_policies(spec.name)
    if name in spec.policies:
        return _from_table(spec, spec.policies, text, given, source)
    if name in points:
        return _own(spec, _loaded(points[name], source), name, {**params, **(given or {})}, source)
    if ":" in name:
        return _own(spec, user_object(name, source), name, {**params, **(given or {})}, source)
    words = f"one of {{}}, or module:attribute{_elsewhere(name, spec)}"
    raise InputError(source, "", name, one_of([*spec.policies, *points], words))


def _from_table(
    spec: FamilySpec,
    table: Mapping[str, Entry],
    text: str,
    given: Mapping[str, Any] | None,
    source: str,
) -> Runnable:
    name, params = split_call(text, source)
    if name not in table:
        words = f"one of {{}} ({spec.name}){_elsewhere(name, spec)}"
        raise InputError(source, "", name, one_of(table, words))
    entry = table[name]
    values = typed({**params, **(given or {})}, entry.params, name, source)
    return Runnable(entry, call_text(name, values), values, entry.params)


def _elsewhere(name: str, own: FamilySpec) -> str:
    """Where else a name that was looked for in vain stands: in its own family, or in others."""
    there = [
        (spec, kind)
        for spec in FAMILIES.values()
        for kind, table in (("policy", spec.policies), ("method", spec.methods))
        if name in table
    ]
    nearest = [place for place in there if place[0] is own] or there
    return "".join(f"; {name} is a {kind} of {spec.name}" for spec, kind in nearest)


def _own(
    spec: FamilySpec,
    target: Any,
    name: str,
    given: Mapping[str, Any] | None,
    source: str,
) -> Runnable:
    if not callable(target) and not hasattr(target, "place"):
        raise InputError(source, name, target, "a function, or a class with a method place")
    adapter: Entry = imported(f"optgap.heuristics.{spec.name}:CUSTOM")
    known = _keywords(target)
    values = typed(given or {}, known, name, source)
    params = {"policy": target, "policy_params": values}
    return Runnable(adapter, call_text(name, values), params, known, own=True)


def _keywords(target: Any, skip: Sequence[str] = ()) -> dict[str, Any]:
    """The parameters that have a default, with it."""
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):  # an object with a method place, or compiled code
        return {}
    return {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not inspect.Parameter.empty and name not in skip
    }


@cache
def installed_policies(family_name: str) -> dict[str, EntryPoint]:
    """Policies that other packages offer, as ``family.name`` or ``name`` in `POLICY_GROUP`."""
    found = {}
    for point in entry_points(group=POLICY_GROUP):
        prefix, dot, name = point.name.partition(".")
        if dot and prefix in FAMILIES:
            if prefix == family_name:
                found[name] = point
        else:
            found[point.name] = point
    return dict(sorted(found.items()))


def _loaded(point: EntryPoint, source: str) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise InputError(
            source, point.name, NoQuote(f"{type(error).__name__}: {error}"), "an entry point"
        ) from error


def user_object(target: str, source: str) -> Any:
    """What ``module:attribute`` or ``path/to/file.py:attribute`` names.

    Modules are looked for in the current directory first.

    Raises
    ------
    InputError: when the module cannot be imported or has no such attribute.
    """
    place, _, attribute = target.rpartition(":")
    module = _user_module(place, source)
    if not hasattr(module, attribute):
        shown = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
        raise InputError(source, place, attribute, one_of(shown))
    return getattr(module, attribute)


def _user_module(place: str, source: str) -> Any:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        if not place.endswith(".py"):
            return import_module(place)
        path = Path(place)
        if not path.is_file():
            raise InputError(source, place, NoQuote("no such file"), "a Python file")
        name = f"optgap_user_{path.stem}"
        spec = util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise InputError(source, place, NoQuote("no Python module"), "a Python file")
        module = util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses in the file look their module up
        spec.loader.exec_module(module)
        return module
    except InputError:
        raise
    except Exception as error:  # whatever a user's file may raise
        found = NoQuote(f"{type(error).__name__}: {error}")
        raise InputError(source, place, found, "a module that can be imported") from error
    finally:
        sys.path.remove(here)
