"""``optgap families``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from optgap.cli import completing
from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.models.spec import Entry, Parameter
    from optgap.registry import FamilySpec, Role

TABLES: tuple[tuple[Role, str], ...] = (
    ("presets", "preset"),
    ("policies", "policy"),
    ("methods", "method"),
    ("formulations", "formulation"),
)


def command(
    name: Annotated[
        str | None,
        opt.argument("FAMILY", "this one, with what each parameter means", completing.families),
    ] = None,
    json: opt.JsonFile = None,
    quiet: opt.Quiet = False,
) -> int:
    from optgap.cli.work import Output
    from optgap.registry import FAMILIES, family

    opt.require_writable(json)
    out = Output(json, quiet)
    specs = [family(name, "FAMILY")] if name else list(FAMILIES.values())
    for spec in specs:
        _show(spec, out, explained=name is not None)
    if name is None:
        out.line("`optgap families FAMILY` says what each parameter means")
    out.document({"schema": "optgap.families/1", "families": [_document(spec) for spec in specs]})
    return 0


def _show(spec: FamilySpec, out: Output, explained: bool) -> None:
    from optgap.registry import installed_policies

    out.line(f"{spec.name}: {spec.question}")
    for role, title in TABLES:
        entries = getattr(spec, role)
        out.line()
        out.table((title, "what", "parameters"), [_row(e, title) for e in entries.values()])
        rows = _explained(spec, role) if explained else []
        if rows:
            out.line()
            out.table(("parameter", "default", "unit", "what", "from", "of"), rows)
    if explained:
        out.line("\nwhat is from nowhere is optgap's own")
    installed = installed_policies(spec.name)
    if installed:
        out.line()
        out.table(("installed policy", "from"), [(n, p.value) for n, p in installed.items()])
    out.line()


def _row(entry: Entry, title: str) -> tuple[str, str, str]:
    kind = f" ({entry.kind})" if title == "method" else ""
    params = ", ".join(f"{key}={value}" for key, value in entry.params.items())
    return entry.name, entry.summary + kind, params


def _explained(spec: FamilySpec, role: Role) -> list[tuple[str, ...]]:
    """A row for each parameter: what it means, and which entries have it."""
    owners: dict[tuple[str, Parameter], dict[str, str]] = {}
    for entry in getattr(spec, role).values():
        for name, parameter in spec.explained(role, entry).items():
            owners.setdefault((name, parameter), {})[entry.name] = _shown(entry.params[name])
    rows: list[tuple[str, ...]] = []
    for (name, parameter), of in owners.items():
        values = list(dict.fromkeys(of.values()))
        others = [choice for choice in parameter.choices if choice not in values]
        default = " or ".join(values) + (f" ({', '.join(others)})" if others else "")
        entries = [key if len(values) == 1 else f"{key} {value}" for key, value in of.items()]
        said = (parameter.unit, parameter.meaning, parameter.source)
        rows.append((name, default, *said, ", ".join(entries)))
    return rows


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return "-" if default in (None, "") else str(default)


def _document(spec: FamilySpec) -> dict[str, Any]:
    from optgap.registry import installed_policies

    return {
        "name": spec.name,
        "question": spec.question,
        "presets": _list(spec, "presets"),
        "policies": _list(spec, "policies"),
        "installed_policies": {n: p.value for n, p in installed_policies(spec.name).items()},
        "methods": _list(spec, "methods"),
        "formulations": _list(spec, "formulations"),
    }


def _list(spec: FamilySpec, role: Role) -> list[dict[str, Any]]:
    return [
        {
            "name": entry.name,
            "kind": entry.kind,
            "summary": entry.summary,
            "params": dict(entry.params),
            "parameters": [
                {
                    "name": name,
                    "default": entry.params[name],
                    "unit": parameter.unit,
                    "meaning": parameter.meaning,
                    "source": parameter.source,
                    "choices": list(parameter.choices),
                }
                for name, parameter in spec.explained(role, entry).items()
            ],
            "deterministic": not entry.seeded,
            "goals": list(entry.goals),
        }
        for entry in getattr(spec, role).values()
    ]
