"""``optgap families``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from optgap.cli import completing
from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.models.spec import Parameter
    from optgap.registry import FamilySpec, Role

ROLES: tuple[Role, ...] = ("presets", "policies", "methods", "formulations")


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
        if name is None:
            _brief(spec, out)
        else:
            _screen(spec, out)
    if name is None:
        out.line("`optgap families FAMILY` says what each name and parameter means")
    out.document({"schema": "optgap.families/1", "families": [_document(spec) for spec in specs]})
    return 0


def _brief(spec: FamilySpec, out: Output) -> None:
    """The names of a family, a line for each role."""
    out.line(f"{spec.name}: {spec.question}")
    out.pairs([(f"  {role}", ", ".join(getattr(spec, role))) for role in ROLES])
    out.line()


def _screen(spec: FamilySpec, out: Output) -> None:
    """A line for each name, and below all one for each parameter."""
    from optgap.registry import installed_policies

    out.line(f"{spec.name}: {spec.question}")
    for role in ROLES:
        entries = getattr(spec, role).values()
        kinds = [f" ({e.kind})" if role == "methods" else "" for e in entries]
        named = [(f"  {e.name}", e.summary + k) for e, k in zip(entries, kinds, strict=True)]
        out.line(f"\n{role}")
        out.pairs(named)
        if known := _explained(spec, role):
            out.line(f"\nparameters of {role}")
            out.pairs(known)
    if installed := installed_policies(spec.name):
        out.line("\ninstalled policies")
        out.pairs([(f"  {name}", point.value) for name, point in installed.items()])


def _explained(spec: FamilySpec, role: Role) -> list[tuple[str, str]]:
    """Each parameter with its default, what it means, and which entries have it."""
    owners: dict[tuple[str, Parameter], dict[str, str]] = {}
    for entry in getattr(spec, role).values():
        for name, parameter in spec.explained(role, entry).items():
            owners.setdefault((name, parameter), {})[entry.name] = _shown(entry.params[name])
    rows = []
    for (name, parameter), of in owners.items():
        values = list(dict.fromkeys(of.values()))
        others = [choice for choice in parameter.choices if choice not in values]
        told = [parameter.meaning, parameter.unit, parameter.source]
        told += [f"or {', '.join(others)}"] if others else []
        entries = [key if len(values) == 1 else f"{key} {value}" for key, value in of.items()]
        words = f"{', '.join(filter(None, told))} ({', '.join(entries)})"
        rows.append((f"  {name}={values[0]}", words))
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
        **{role: _list(spec, role) for role in ROLES},
        "installed_policies": {n: p.value for n, p in installed_policies(spec.name).items()},
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
            "repeatable": entry.repeatable,
            "goals": list(entry.goals),
        }
        for entry in getattr(spec, role).values()
    ]
