"""The solvers' libraries share one process whichever is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

MODULES = ("ortools.sat.python.cp_model", "highspy", "pulp", "cvxpy", "scipy.optimize")

SOLVE = """
from ortools.sat.python import cp_model
from optgap.models.limits import Limits
from optgap.solvers.backends import cpsat, solve
from optgap.solvers.backends.linear import LinearBuilder
model = LinearBuilder("max")
items = [model.variable(upper=1, cost=c, integer=True) for c in (16, 22, 12, 8, 11, 19)]
model.row(zip(items, (5, 7, 4, 3, 4, 6)), upper=14)
for name in ("highs", "cbc"):
    assert solve(model.build(), backend=name, limits=Limits()).objective == 43, name
program = cp_model.CpModel()
chosen = [program.new_bool_var("") for _ in items]
program.add(cp_model.LinearExpr.weighted_sum(chosen, (5, 7, 4, 3, 4, 6)) <= 14)
program.maximize(cp_model.LinearExpr.weighted_sum(chosen, (16, 22, 12, 8, 11, 19)))
assert cpsat.run(program, Limits()).bound == 43
print("all agree")
"""


# A list and its reverse have every module before every other one. What was imported right before
# matters as well, so libraries that clash in other versions are also tried as the only two, but
# for the two that the list begins with.
@pytest.mark.parametrize(
    "order",
    [
        MODULES,
        MODULES[::-1],
        ("highspy", MODULES[0]),
        ("cvxpy", MODULES[0]),
    ],
    ids=lambda order: "-".join(name.split(".")[0] for name in order),
)
def test_every_back_end_works_after_imports_in_this_order(order: tuple[str, ...]) -> None:
    code = "".join(f"import {name}\n" for name in order) + SOLVE
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "all agree"
    assert "mport" not in done.stderr, done.stderr  # cvxpy prints solvers it failed to import


def test_listing_the_back_ends_imports_none_of_them() -> None:
    code = (
        "import sys\n"
        "from optgap.solvers.backends import backends\n"
        "assert all(row.usable for row in backends())\n"
        "loaded = {'ortools', 'highspy', 'pulp', 'cvxpy', 'scipy', 'numpy'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
