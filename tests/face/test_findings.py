"""What results come to, in words that claim no more than is proven."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optgap.comparing.comparison import ACCEPTED, ALL, Comparison, ComparisonRow, ComparisonSet
from optgap.models.result import SERVES_PART, Result, Status, Termination, relative_gap
from optgap.reporting import findings


def result(method: str, objective: float | None, kind: str = "policy") -> Result:
    status = Status.NO_SOLUTION if objective is None else Status.FEASIBLE
    return Result(
        "queueing", method, kind, status, Termination.COMPLETED, objective,  # type: ignore[arg-type]
        "s", "min", None, None, 0.0, 0, {},
    )  # fmt: skip


def comparison(
    bound: float | None, known: float, accepted: bool = False, **policies: float
) -> Comparison:
    """Policies by name with their objectives, and what a method with hindsight knows."""
    rows = []
    for name, value in policies.items():
        gaps = relative_gap(value, bound), relative_gap(value, known)
        rows.append(ComparisonRow(result(name, value), ALL if bound else None, *gaps))
    if accepted:
        picky = replace(result("picky", 1.0), message=SERVES_PART)
        rows.append(ComparisonRow(picky, ACCEPTED, 0.001))
    return Comparison(
        "queueing",
        "q",
        "9 jobs; minimise mean_wait (s)",
        "s",
        "min",
        bound,
        "areas" if bound else None,
        known,
        next((name for name, value in policies.items() if value == known), "offline"),
        tuple(rows),
    )


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (
            comparison(100.0, 100.0, sjf=103.3, fifo=128.2),
            "the best policy, sjf, is 3.3 % from optimal; the worst, fifo, is 28 % away.",
        ),
        (
            comparison(100.0, 100.3, sjf=102.2, fifo=118.7),
            "the best policy, sjf, is within 2.2 % of optimal; the worst, fifo, is 19 % away.",
        ),
        (comparison(100.0, 100.0, sjf=100.0), "the best policy, sjf, is optimal."),
        (
            comparison(100.0, 500.0, sjf=536.0, fifo=1000.0),
            (
                "the best policy, sjf, is at most 436 % from optimal; how much of it is the "
                "bound's weakness is unknown, for the best solution known, by offline, is 400 % "
                "from it; the worst, fifo, is 100 % from the best solution known."
            ),
        ),
        (
            comparison(100.0, 106.9, sjf=106.9),
            (
                "the best policy, sjf, is at most 6.9 % from optimal; how much of it is the "
                "bound's weakness is unknown, for nobody knows a better solution."
            ),
        ),
        (
            comparison(None, 7.0, sjf=7.0),
            "no bound was proven, so that no gap is known; the best solution known is sjf's.",
        ),
        (
            comparison(100.0, 100.0, accepted=True, sjf=103.3),
            (
                "the best policy, sjf, is 3.3 % from optimal; picky, having turned something down, "
                "is not ranked."
            ),
        ),
        (
            comparison(100.0, 100.0, accepted=True),
            "no policy served all that is asked; the best solution known is offline's.",
        ),
    ],
)
def test_a_comparison_comes_to_this(item: Comparison, told: str) -> None:
    assert findings.of_comparison(item) == told


def test_a_sweep_names_the_best_policy_of_every_value() -> None:
    one = comparison(100.0, 100.4, sjf=102.2, fifo=110.0)
    other = comparison(100.0, 100.1, sjf=104.7, fifo=120.0)
    told = findings.of_set(ComparisonSet("load", (0.3, 0.9), (one, other)))
    assert (
        told == "over load from 0.3 to 0.9 sjf is the best policy, within 2.2 to 4.7 % of optimal."
    )
    weak = comparison(100.0, 150.0, sjf=160.0, fifo=155.0)
    told = findings.of_set(ComparisonSet("load", (0.3, 0.9), (one, weak)))
    assert told.startswith(
        "over load from 0.3 to 0.9 the best are sjf and fifo, at most 2.2 to 55 %"
    )
    assert "how much of it is the bound's weakness is unknown" in told


def test_runs_are_ranked_by_family_among_those_that_served_all_of_them() -> None:
    rows = [
        {"family": f, "method": m, "kind": "policy", "gap_to_bound": g, "bound_scope": "all"}
        for f, m, gaps in (
            ("placement", "pwr", (0.02, 0.04, 0.03)),
            ("placement", "fgd", (0.2, 0.2, 0.1)),
            ("placement", "seldom", (0.001,)),
            ("elastic", "afs", (0.08,)),
        )
        for g in gaps
    ]
    rows.append({"family": "placement", "method": "exact", "kind": "exact", "gap_to_bound": 0.0})
    placement, elastic = findings.of_runs(rows)
    assert placement.startswith("placement: of 2 policies pwr has the lowest median gap")
    assert placement.endswith(", 3.0 % over 3 runs, and 4.0 % at worst.")
    assert elastic.startswith("elastic: afs has a median gap to the bound, 8.0 % over 1 run, ")


def test_a_single_result_claims_what_it_proved() -> None:
    alone = result("sjf", 107.0)
    assert findings.of_result(alone) == "sjf found 107.000 s."
    bounded = replace(alone, bound=100.0, bound_by="areas")
    assert findings.of_result(bounded) == "sjf found 107.000 s, at most 7.0 % from optimal."
    only = replace(alone, objective=None, bound=100.0, status=Status.BOUND_ONLY)
    assert "proved that no solution is better than 100.000 s" in findings.of_result(only)


def test_shares_have_the_digits_that_matter() -> None:
    gaps = (0.0, 0.00001, 0.0031, 0.0223, 0.1874, 4.3639)
    shown = ["0.00 %", "less than 0.01 %", "0.31 %", "2.2 %", "19 %", "436 %"]
    assert [findings.share(gap) for gap in gaps] == shown
