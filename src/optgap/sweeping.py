"""Grids of comparisons on many processes or machines, in one table that a later run continues.

>>> from optgap import sweeping
>>> done = sweeping.run(sweeping.load_spec("sweep.toml"), "results.csv")  # doctest: +SKIP
>>> done.to_frame().groupby("method")["gap_to_bound"].mean()  # doctest: +SKIP
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import socket
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optgap import fitting, heuristics, models, solvers
from optgap.comparing.gaps import compare, method_names, policy_names
from optgap.documents import load_problem
from optgap.making import generate, preset_entry
from optgap.models.errors import PLACE, InputError, NoQuote, Said, one_of, said
from optgap.models.jsonio import Fields, finite, write_bytes
from optgap.models.limits import Limits
from optgap.models.reading import file_sha256, read_text
from optgap.models.result import Termination
from optgap.models.tables import guarded
from optgap.parameters import call_text, typed
from optgap.processes import cores, side_by_side
from optgap.progress import in_notebook
from optgap.registry import FamilySpec, family, method, policy
from optgap.versions import versions

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
COLUMNS = (
    *("key", "family", "instance", "instance_seed", "method", "kind", "seed", "time_limit"),
    *("status", "termination", "objective", "unit", "sense", "bound", "bound_by", "bound_scope"),
    *("best_bound", "best_known", "gap_to_bound", "gap_to_best", "metrics", "message", "failure"),
    *("optgap", "code", "seconds", "worker"),
)
"""Columns of the table; ``metrics`` is JSON, ``key`` the same for all rows of a cell."""
WALL = ("seconds", "worker")
"""Columns on the worker and its speed; all others are the same for every engine."""
COMPUTING = ("optgap", "numpy", "scipy", "numba", "ortools", "highspy", "pulp", "cvxpy")
"""Packages whose versions may change numbers."""
TOP = {"seeds", "time_limit", "grid"}
GRID = {"family", "presets", "problems", "instance", "policies", "methods", "parameters"}
ENGINES = ("processes", "dask=ADDRESS", "ray", "ray=ADDRESS")
CONNECT_S = 10.0
Instance = tuple[str, Mapping[str, Any], str]
"""Label of an instance, its identity beside the seed, and its file."""


# -- a cell: one comparison ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """Instance with the policies and methods that are compared on it, and their seed.

    Parameters
    ----------
    instance: the instance as tables show it.
    made: preset, all its parameters and seed; or the SHA-256 of a file.
    file: path of that file; "" for a preset.
    policies, methods: names with parameters.
    own: hashes of the sources of users' own policies.
    folder: folder in which the search for these begins.
    time_limit: wall-clock seconds for each single run, or None.
    code: hash of the sources and packages, from `code`.
    """

    family: str
    instance: str
    made: Mapping[str, Any]
    file: str
    policies: tuple[str, ...]
    methods: tuple[str, ...]
    own: tuple[str, ...]
    folder: str
    seed: int
    time_limit: float | None
    code: str

    @property
    def key(self) -> str:
        """Hash of inputs and code; the place of files does not count."""
        places = ("file", "folder", "instance")
        return _digest({k: v for k, v in asdict(self).items() if k not in places})


def _digest(document: Any) -> str:
    """Return 128 bits of the SHA-256 of a document in canonical JSON, in hexadecimal."""
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def code() -> str:
    """Return a hash of the sources and packages, which can change numbers as a run's inputs can."""
    total = hashlib.sha256()
    for room in (models, fitting, solvers, heuristics):
        for path in sorted(Path(str(room.__file__)).parent.rglob("*.py")):
            total.update(path.name.encode() + b"\0" + path.read_bytes())
    known = versions()
    return _digest([total.hexdigest(), {name: known.get(name) for name in COMPUTING}])


def run_cell(cell: Cell, limits: Limits | None = None) -> list[Row]:
    """Compare on one instance; an error becomes part of the rows. Limits of the sweep cut nothing.

    One row with an error stands for all of them where nothing could be compared.
    """
    try:
        found = _compared(cell)
    except Exception as error:
        failure = "input" if isinstance(error, InputError) else "fault"
        words = f"{type(error).__name__}: {error}" if failure == "fault" else str(error)
        told = {"status": "error", "failure": failure, "message": " ".join(words.split())}
        found = [{"method": "", **told}]
    about = {
        **{name: getattr(cell, name) for name in ("key", "family", "instance", "seed", "code")},
        "instance_seed": cell.made.get("seed"),
        "time_limit": cell.time_limit,
        "optgap": versions()["optgap"],
        "worker": f"{socket.gethostname()}:{os.getpid()}",
    }
    return [{name: {**row, **about}.get(name) for name in COLUMNS} for row in found]


def _compared(cell: Cell) -> list[Row]:
    if code() != cell.code:
        found = NoQuote(f"optgap {versions()['optgap']} with code {code()}")
        raise InputError(socket.gethostname(), "", found, f"{cell.code}, as at the beginning")
    if cell.own:
        os.chdir(cell.folder)  # a cluster's worker began elsewhere
    made = cell.made
    if not cell.file:
        problem = generate(cell.family, made["preset"], seed=made["seed"], **made["params"])
    elif file_sha256(cell.file) == made["sha256"]:
        problem = load_problem(cell.file)
    else:
        found = NoQuote("another file than when the sweep began")
        raise InputError(cell.file, "", found, f"SHA-256 {made['sha256']}")
    asked: Any = {"time_limit": cell.time_limit, "seed": cell.seed}
    table = compare(problem, cell.policies, cell.methods, parts=True, **asked)
    rows = []
    for row in table.rows:
        told = row.to_json()
        told |= {"best_bound": table.best_bound, "best_known": table.best_known}
        told |= {"message": row.result.message, "failure": row.failure}
        rows.append({**told, "metrics": json.dumps(told["metrics"], sort_keys=True)})
    return rows


# -- the grid in a TOML file ----------------------------------------------------------------


def load_spec(path: str | os.PathLike[str]) -> dict[str, Cell]:
    """Read a sweep from a TOML file, and return its cells by key, instance by instance.

    Paths of problem files are relative to the file's folder.

    Raises
    ------
    InputError: for a file that is no TOML, an unknown key, family, preset, policy, method or
        parameter, a problem file that cannot be read, or a grid without any run. The error names
        the file and the place.
    """
    text = read_text(path)
    try:
        document = tomllib.loads(text)
    except (RecursionError, ValueError) as error:
        found = "nesting too deep" if isinstance(error, RecursionError) else error
        raise InputError(str(path), "", NoQuote(found), "TOML") from None
    return read_spec(document, str(path), Path(path).parent)


def read_spec(
    document: Mapping[str, Any], source: str = "sweep", folder: Path = Path()
) -> dict[str, Cell]:
    """Read a sweep from a dictionary; answer and errors are as for `load_spec`."""
    fields = Fields(document, source)
    _refuse_unknown(fields, TOP)
    cells: dict[str, Cell] = {}
    for grid in fields.objects("grid"):
        _refuse_unknown(grid, GRID)
        for cell in _cells(fields, grid, folder):
            cells.setdefault(cell.key, cell)
    if not cells:
        raise InputError(source, "grid", NoQuote("no runs"), "policies or methods to run")
    return cells


def _refuse_unknown(fields: Fields, known: set[str]) -> None:
    for name in fields.document:
        if name not in known:
            raise fields.fail("", name, one_of(sorted(known)))


def _cells(top: Fields, grid: Fields, folder: Path) -> Iterator[Cell]:
    spec = family(grid.text("family"), f"{grid.source}: family")
    limit = top.number("time_limit", 1e-3) if "time_limit" in top.document else None
    policies, methods, own = _runs(grid, spec)
    seeds: Sequence[int] = range(1)
    if isinstance(top.document.get("seeds"), list):
        if not (seeds := top.integers("seeds")):
            raise top.fail("seeds", NoQuote("nothing"), "at least one seed")
    else:
        seeds = range(top.integer("seeds", 1, 1))
    instances = (_files if "problems" in grid.document else _made)(grid, spec, folder)
    for (label, about, file), seed in itertools.product(instances, seeds):
        made = {**about, "seed": seed} if not file else about
        if policies or methods:
            runs = (policies, methods, own, os.getcwd(), seed, limit, code())
            yield Cell(spec.name, label, made, file, *runs)


def _files(grid: Fields, spec: FamilySpec, folder: Path) -> Iterator[Instance]:
    """Yield problem files as instances."""
    for refused in ("presets", "instance"):
        if refused in grid.document:
            raise grid.fail(refused, Said("conflicts with problems"), "give only one")
    for pattern in grid.texts("problems"):
        matches = [] if Path(pattern).is_absolute() else sorted(folder.glob(pattern))
        for path in matches or [folder / pattern]:
            found = load_problem(path).family
            if found != spec.name:
                raise InputError(str(path), "", NoQuote(f"a problem of {found}"), spec.name)
            yield path.name, {"sha256": file_sha256(path)}, str(path.resolve())


def _made(grid: Fields, spec: FamilySpec, folder: Path) -> Iterator[Instance]:
    """Yield presets with every combination of the values of their parameters."""
    presets = grid.texts("presets") if "presets" in grid.document else [next(iter(spec.presets))]
    for text, values in itertools.product(presets, _products(_table(grid, "instance"))):
        entry, given = preset_entry(spec.name, text)
        known = {**entry.params, "strict": True}
        params = typed({**given, **values}, known, entry.name, grid.source)
        full = {**entry.params, **params}
        yield call_text(entry.name, params), {"preset": entry.name, "params": full}, ""


def _runs(grid: Fields, spec: FamilySpec) -> tuple[tuple[str, ...], tuple[str, ...], Any]:
    """Return policies and methods with their parameters, and hashes of users' own policies."""
    table, taken, own = _table(grid, "parameters"), set[str](), list[str]()
    runs: list[tuple[str, ...]] = []
    ways: Any = (("policies", policy_names, policy), ("methods", method_names, method))
    for role, names, find in ways:
        labels: list[str] = []
        listed = grid.document.get(role, [])
        for text in names(spec.name, listed if listed in ("all", []) else grid.texts(role)):
            if text == "auto":
                labels.append(text)
                continue
            known = find(spec, text, None, grid.source)
            if known.own:
                module = sys.modules[known.params["policy"].__module__]
                own.append(file_sha256(str(module.__file__)))
            mine = {key: values for key, values in table.items() if key in known.known}
            taken.update(mine)
            labels += [find(spec, text, one, grid.source).label for one in _products(mine)]
        runs.append(tuple(dict.fromkeys(labels)))
    for key in table:
        if key not in taken:
            unknown = Said("no policy or method of this grid has it")
            raise grid.fail(f"parameters.{key}", unknown, "leave it out")
    return runs[0], runs[1], tuple(own)


def _table(grid: Fields, key: str) -> dict[str, list[Any]]:
    """Return the values by parameter; a single value counts as a list of one."""
    found = grid.object(key).document if key in grid.document else {}
    table = {name: value if isinstance(value, list) else [value] for name, value in found.items()}
    for name, values in table.items():
        if not values:
            raise grid.fail(f"{key}.{name}", NoQuote("nothing"), "at least one value")
    return table


def _products(table: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*table.values()):
        yield dict(zip(table, values, strict=True))


# -- the table, which a later run continues -------------------------------------------------


@dataclass(frozen=True)
class Done:
    """State of a sweep: the rows that are done, and the counts.

    Parameters
    ----------
    path: file of the table.
    rows: finished rows, in the order of the cells.
    total: number of comparisons in the grid.
    skipped: number of comparisons that were done before.
    ran: number of comparisons that ran now.
    """

    path: Path
    rows: tuple[Row, ...]
    total: int
    skipped: int
    ran: int
    termination: Termination = Termination.COMPLETED

    @property
    def failed(self) -> list[Row]:
        """Rows of runs that went wrong (a method that does not treat an objective did not)."""
        return [row for row in self.rows if _went_wrong(row)]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each run, with metrics as columns."""
        import pandas as pd

        lines = [{**row, **json.loads(row["metrics"] or "{}")} for row in self.rows]
        return pd.DataFrame(lines).drop(columns="metrics", errors="ignore")

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.sweep/1``, with the counts but without the rows."""
        counts = {name: getattr(self, name) for name in ("total", "skipped", "ran")}
        counts |= {"done": self.skipped + self.ran, "failed": len(self.failed)}
        about = {"path": str(self.path), "termination": str(self.termination)}
        return {"schema": "optgap.sweep/1", **about, **counts}


def _went_wrong(row: Row) -> bool:
    return row["failure"] in ("input", "fault")


def run(
    cells: Mapping[str, Cell],
    path: str | os.PathLike[str],
    *,
    engine: str = "processes",
    jobs: int | None = None,
    limits: Limits | None = None,
) -> Done:
    """Compare on all instances of a sweep that have no rows yet, and write the table of all.

    Rows go to a journal beside the table, ``FILE.jsonl``, as they come, so that nothing is lost
    with this process; at the end, and when `limits` stop the sweep, the table is written. The next
    call goes on with the journal, and runs what has failed again.

    Parameters
    ----------
    cells: the cells, from `load_spec`.
    path: file of the table, which ends in ``.csv`` or ``.parquet``.
    engine: ``processes`` of this machine, ``dask=ADDRESS`` of a scheduler, ``ray=ADDRESS`` of a
        cluster, or ``ray``, which starts on this machine.
    jobs: number of processes; one runs all here. Default: one per core. A cluster ignores it.

    Raises
    ------
    InputError: for a table with another ending, or that no sweep has written; another engine; a
        missing package; or a cluster that does not answer.
    """
    limits, target = limits or Limits(progress=in_notebook), Path(path)
    require_table(target)
    require_engine(engine, jobs)
    journal = _journal_of(target)
    known = {k: rows for k, rows in _kept(journal).items() if not any(map(_went_wrong, rows))}
    todo = [cell for key, cell in cells.items() if key not in known]
    skipped, ran = len(cells) - len(todo), 0
    limits.progress(f"{skipped} of {len(cells)} comparisons", None, None)
    try:
        for found in _ended(todo, engine, jobs, limits):
            rows = known[found[0]["key"]] = [finite(row) for row in found]
            with open(journal, "ab") as file:  # rows outlast this process and the machine's failure
                file.write(json.dumps(rows, separators=(",", ":")).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            ran += 1
            limits.progress(f"{skipped + ran} of {len(cells)} comparisons", None, None)
    finally:
        table = [row for key in cells for row in known.get(key, ())]
        _write(table, target)
    stop = Termination.COMPLETED
    if ran < len(todo):
        stop = limits.stop or Termination.INTERRUPTED
    return Done(target, tuple(table), len(cells), skipped, ran, stop)


def require_table(target: Path) -> None:
    """Refuse a table that cannot be written, before any work goes into it.

    Raises
    ------
    InputError: for another ending, Parquet without the package for it, and a file of others.
    """
    ending = target.suffix.lower()
    if ending not in (".csv", ".parquet"):
        found = NoQuote(ending or "no ending")
        raise InputError(str(target), "", found, "a file that ends in .csv or .parquet")
    if ending == ".parquet":
        require("pyarrow", "sweep")
    if target.exists() and not _journal_of(target).exists():
        found = NoQuote(f"a file without {_journal_of(target).name} beside it")
        raise InputError(str(target), "", found, "the table of a sweep, or another name")


def _journal_of(target: Path) -> Path:
    return target.with_name(target.name + ".jsonl")


def _kept(journal: Path) -> dict[str, list[Row]]:
    """Return the rows of a journal by key, of which later ones count."""
    try:
        with open(journal, "a+b") as file:
            file.seek(0)
            content = file.read()
            if content and not content.endswith(b"\n"):  # cut off in the middle
                file.write(b"\n")
    except OSError as error:
        raise InputError(str(journal), "", said(error), PLACE) from None
    found = {}
    for line in content.split(b"\n"):
        with suppress(TypeError, ValueError, IndexError):  # a crash left something else there
            rows = json.loads(line)
            if all(set(row) == set(COLUMNS) for row in rows):
                found[rows[0]["key"]] = rows
    return found


def _write(rows: Sequence[Row], target: Path) -> None:
    import pandas as pd

    frame, buffer = pd.DataFrame(rows, columns=list(COLUMNS)), io.BytesIO()
    if target.suffix.lower() == ".parquet":
        frame.to_parquet(buffer, index=False)
    else:
        buffer.write(guarded(frame.to_csv(index=False)).encode())
    write_bytes(target, buffer.getvalue())


# -- engines: processes of this machine, or by joblib Dask and Ray --------------------------


def require_engine(engine: str, jobs: int | None = None) -> None:
    """Refuse an engine that there is not, or whose package is missing; raise InputError."""
    name, _, address = engine.partition("=")
    if (name + "=ADDRESS" * bool(address)) not in ENGINES:
        raise InputError("--engine", "", engine, one_of(ENGINES))
    if jobs is not None and jobs < 1:
        raise InputError("--jobs", "", jobs, "at least 1")
    if name != "processes":
        require({"dask": "distributed"}.get(name, name), name)


def _ended(
    cells: Sequence[Cell], engine: str, jobs: int | None, limits: Limits
) -> Iterator[list[Row]]:
    """Yield the rows of each cell as it is done.

    Once limits say stop, no further cell begins, and running cells end.

    Raises
    ------
    InputError: if a process has died, or the cluster does not answer.
    """
    try:
        if engine == "processes":
            works = [partial(run_cell, cell) for cell in cells]
            for _, outcome in side_by_side(works, limits, processes=jobs):
                if outcome.error is not None:
                    raise outcome.error
                if outcome.answer is not None:
                    yield outcome.answer
        else:
            left = iter(cells)
            going = iter(lambda: None if limits.stop else next(left, None), None)
            yield from _on_cluster(going, *engine.partition("=")[::2], jobs)
    except InputError:
        raise
    except Exception as error:  # what goes wrong in a cell is part of its rows
        found = NoQuote(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        expected = "processes that live; the same command goes on with what is missing"
        raise InputError("--engine", engine, found, expected) from error


def _on_cluster(
    going: Iterator[Cell], name: str, address: str, jobs: int | None
) -> Iterator[list[Row]]:
    """Yield the rows of cells that Dask or Ray runs; Dask runs those of a lost worker again."""
    import joblib  # a quarter of a second, which nothing else here needs

    work: Callable[..., Any] = joblib.delayed(run_cell)
    with ExitStack() as ends:
        try:
            if name == "dask":
                client = require("distributed", "dask").Client(
                    address, timeout=CONNECT_S, set_as_default=False
                )
                ends.enter_context(client)
            else:
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would tell its makers
                ray = require("ray", "ray")
                own = {"num_cpus": jobs or cores(), "include_dashboard": False}
                here: dict[str, Any] = {} if address else own
                ray.init(address or "local", log_to_driver=False, logging_level="error", **here)
                ends.callback(ray.shutdown)
        except (OSError, RuntimeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            found = NoQuote(f"no answer ({type(error).__name__})")
            expected = f"a {name.capitalize()} cluster that answers"
            raise InputError("--engine", address or "local", found, expected) from None
        if name == "dask":
            ends.enter_context(joblib.parallel_config("dask", client=client))
            how = {"return_as": "generator_unordered", "pre_dispatch": "n_jobs"}
            yield from joblib.Parallel(-1, batch_size=1, **how)(map(work, going))
            return
        require("ray.util.joblib", "ray").register_ray()
        ends.enter_context(joblib.parallel_config("ray"))
        count = int(ray.cluster_resources().get("CPU", 1))
        # its back end returns whole lists alone: a few cells of each process at a time
        while some := list(itertools.islice(going, 4 * count)):
            yield from joblib.Parallel(count, batch_size=1)(map(work, some))


def require(module: str, extra: str) -> Any:
    """Import a module that comes with an extra of this package.

    Raises
    ------
    InputError: if the package is missing; the error names the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        found = NoQuote(f"no package {module.split('.')[0]}")
        raise InputError("installation", "", found, f"it: pip install 'optgap[{extra}]'") from None
