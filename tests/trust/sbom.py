"""What an installation consists of, as a CycloneDX document: ``make sbom``.

Run as a program it lists optgap and everything that it needs here, extras left out, with
versions and licences as the packages themselves state them.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import Requirement

ROOT = "optgap"


def name_of(text: str) -> str:
    """A package's name as registries normalise it."""
    return re.sub(r"[-_.]+", "-", text).lower()


def needed(package: Distribution) -> list[str]:
    """What a package needs here, whatever its extras want."""
    found = (Requirement(text) for text in package.requires or [])
    wanted = (r for r in found if r.marker is None or r.marker.evaluate({"extra": ""}))
    return sorted({name_of(r.name) for r in wanted})


def collected(root: str = ROOT) -> dict[str, Distribution]:
    """`root` and all that it needs, by name.

    Raises
    ------
    PackageNotFoundError: for one that is needed and not there.
    """
    found: dict[str, Distribution] = {}
    left = [root]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = distribution(name)
            left += needed(found[name])
    return dict(sorted(found.items()))


def reference(name: str, package: Distribution) -> str:
    """Its package URL."""
    return f"pkg:pypi/{name}@{package.version}"


def component(name: str, package: Distribution) -> dict[str, Any]:
    """One entry."""
    data = package.metadata
    licence = data.get("License-Expression") or (data.get("License") or "").strip()
    classified = [c for c in data.get_all("Classifier") or [] if c.startswith("License ::")]
    if not licence or "\n" in licence:  # some put the whole text there
        licence = classified[0].rpartition(":: ")[2] if classified else ""
    entry: dict[str, Any] = {
        "type": "application" if name == ROOT else "library",
        "bom-ref": reference(name, package),
        "name": name,
        "version": package.version,
        "purl": reference(name, package),
    }
    return entry | ({"licenses": [{"license": {"name": licence}}]} if licence else {})


def document(root: str = ROOT) -> dict[str, Any]:
    """The whole bill of materials."""
    packages = collected(root)
    parts = {name: component(name, package) for name, package in packages.items()}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": parts.pop(root)},
        "components": list(parts.values()),
        "dependencies": [
            {
                "ref": reference(name, package),
                "dependsOn": [reference(other, packages[other]) for other in needed(package)],
            }
            for name, package in packages.items()
        ],
    }


if __name__ == "__main__":
    try:
        print(json.dumps(document(), indent=1))
    except PackageNotFoundError as error:
        sys.exit(f"sbom: {error}")
