"""``optgap families``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.registry import FamilySpec, Role


def command(
    name: Annotated[str | None, opt.argument("[FAMILY]", "show this family alone")] = None,
    entry: Annotated[
        str | None,
        opt.argument("[NAME]", "show the parameters of this policy, method or preset"),
    ] = None,
    json: opt.JsonFile = None,
) -> int:
    from optgap.cli.work import Output
    from optgap.listing import ROLES
    from optgap.registry import FAMILIES, family

    opt.require_writable(json)
    out = Output(json)
    specs = [family(name, "FAMILY")] if name else list(FAMILIES.values())
    if name is None:
        for spec in specs:
            out.line(f"{spec.name}: {spec.question}")
            out.pairs([(f"  {role}", ", ".join(getattr(spec, role))) for role in ROLES])
            out.line()
        out.line("optgap families placement")
    elif entry is None:
        _screen(specs[0], out)
    else:
        _details(specs[0], entry, out)
    out.document({"schema": "optgap.families/1", "families": [_document(spec) for spec in specs]})
    return 0


def _screen(spec: FamilySpec, out: Output) -> None:
    """Print a line for each name of a family."""
    from optgap.listing import ROLES

    out.line(f"{spec.name}: {spec.question}\n")
    for role in ROLES:
        entries = getattr(spec, role).values()
        kinds = [f"{e.kind}: " if role == "methods" else "" for e in entries]
        out.line(role)
        out.pairs([(f"  {e.name}", k + e.summary) for e, k in zip(entries, kinds, strict=True)])
    out.line(f"\noptgap families {spec.name} {next(iter(spec.policies))}  # its parameters")


def _details(spec: FamilySpec, name: str, out: Output) -> None:
    """Print the meaning of each parameter of one entry, in every role that has the name."""
    from optgap.listing import ROLES, parameters, shown
    from optgap.models.errors import InputError, one_of

    found = [role for role in ROLES if name in getattr(spec, role)]
    if not found:
        known = dict.fromkeys(key for role in ROLES for key in getattr(spec, role))
        raise InputError("NAME", "", name, one_of(known))
    for role in found:
        entry = getattr(spec, role)[name]
        out.answer_head([f"{name} ({spec.name}, {role}): {entry.summary}"])
        rows = []
        for one in parameters(spec, role, entry):
            told = (one["meaning"], one["unit"], one["source"])
            others = [str(choice) for choice in one["choices"] if choice != one["default"]]  # type: ignore[attr-defined]
            words = [*map(str, filter(None, told)), *([f"or {', '.join(others)}"] * bool(others))]
            rows.append((f"  {one['name']}={shown(one['default'])}", ", ".join(words)))
        out.pairs(rows or [("  no parameters", "")])
        out.line("\n" + _example(spec, role, name))


def _example(spec: FamilySpec, role: Role, name: str) -> str:
    """Return a command that uses an entry."""
    options = {
        "policies": f"compare {spec.name} --policies {name}",
        "methods": f"compare {spec.name} --methods {name}",
        "presets": f"generate {spec.name} --preset {name} -o problem.json",
        "formulations": f"export problem.json --method {name} -o model.lp",
    }
    return f"optgap {options[role]}"


def _document(spec: FamilySpec) -> dict[str, Any]:
    from optgap.listing import ROLES

    return {
        "name": spec.name,
        "question": spec.question,
        **{role: _list(spec, role) for role in ROLES},
    }


def _list(spec: FamilySpec, role: Role) -> list[dict[str, Any]]:
    from optgap.listing import parameters

    return [
        {
            "name": entry.name,
            "kind": entry.kind,
            "summary": entry.summary,
            "params": dict(entry.params),
            "parameters": parameters(spec, role, entry),
            "deterministic": not entry.seeded,
            "repeatable": entry.repeatable,
            "goals": list(entry.goals),
        }
        for entry in getattr(spec, role).values()
    ]
