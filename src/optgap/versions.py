"""Versions of packages, for every result and every bug report."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata

from optgap import __version__

PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "numba",
    "ortools",
    "highspy",
    "pulp",
    "cbcbox",
    "cvxpy",
    "typer",
    "rich",
    "matplotlib",
    "pooch",
    "joblib",
    "pyarrow",
    "distributed",
    "ray",
    "optuna",
)


@cache
def _block() -> tuple[tuple[str, str], ...]:
    rows = [("optgap", __version__), ("python", platform.python_version())]
    for name in PACKAGES:
        try:
            rows.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    rows.append(("platform", platform.platform()))
    return tuple(rows)


def versions() -> dict[str, str]:
    """Return versions of optgap, Python, the solvers and the platform, without imports of these."""
    return dict(_block())


def show_versions() -> None:
    """Print the versions that a bug report needs.

    Examples
    --------
    >>> import optgap
    >>> optgap.show_versions()  # doctest: +ELLIPSIS
    package ...
    """
    from optgap.render import text_table

    print(text_table(("package", "version"), list(_block())))
