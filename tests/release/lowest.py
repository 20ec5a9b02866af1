"""The lowest version of everything that pyproject.toml allows, as constraints for pip.

    python tests/release/lowest.py test > lowest.txt
    python -m pip install --constraint lowest.txt --editable '.[test]'

prints ``name==version`` for each dependency, with those of the extras that are named and of the
extras that these ask for. What the dependencies themselves need is left to pip. Exits with 1 where
a requirement has no lowest version, and pip where the lowest one cannot be had: a lower bound is a
version that exists, and one that works beside the others'.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
LOWER = (">=", "==", "~=")


def project() -> dict[str, Any]:
    """The table of that name in pyproject.toml."""
    found: dict[str, Any] = tomllib.loads(PYPROJECT.read_text())["project"]
    return found


def requirements(table: Mapping[str, Any], extras: Iterable[str]) -> Iterator[Requirement]:
    """What the project itself and these extras need; an extra that names another takes it along.

    Raises
    ------
    KeyError: for an extra that the project has not.
    """
    optional = table.get("optional-dependencies", {})
    yield from map(Requirement, table["dependencies"])
    left, seen = list(extras), set()
    while left:
        extra = left.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in map(Requirement, optional[extra]):
            if canonicalize_name(requirement.name) == canonicalize_name(table["name"]):
                left += requirement.extras
            else:
                yield requirement


def lowest(requirement: Requirement) -> Version:
    """The version at a requirement's lower end.

    Raises
    ------
    ValueError: when it has none.
    """
    bounds = [Version(s.version) for s in requirement.specifier if s.operator in LOWER]
    if not bounds:
        raise ValueError(f"{requirement}: no lower bound")
    return max(bounds)


def constraints(
    table: Mapping[str, Any], extras: Iterable[str] = (), python: str | None = None
) -> list[str]:
    """``name==version``, sorted; of two bounds on one package the higher one.

    Parameters
    ----------
    python: the version they are for, as "3.13"; this one's if not given.
    """
    there = {} if python is None else {"python_version": python}
    found: dict[str, Version] = {}
    for requirement in requirements(table, extras):
        if requirement.marker is None or requirement.marker.evaluate(there):
            name = canonicalize_name(requirement.name)
            version = lowest(requirement)
            found[name] = max(version, found.get(name, version))
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("extras", nargs="*", help="extras whose dependencies are wanted too")
    given = parser.parse_args(arguments)
    try:
        print(*constraints(project(), given.extras), sep="\n")
    except (KeyError, ValueError) as error:
        print(f"lowest: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
