"""Small co-scheduling problems, with ties, missing GPU counts and awkward nodes."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.coscheduling.problem import Goal

GOALS: tuple[Goal, ...] = ("energy", "makespan", "edp")
RUNTIMES = (1.0, 2.0, 3.0, 5.0, 0.25, 7.3, 10 / 3)
RELEASES = (0.0, 0.0, 1.0, 2.5, 10 / 3, 9.0)
POWERS = (10.0, 50.0, 100.0, 100.0, 333.3, 400.0)


@st.composite
def applications(draw: st.DrawFn, name: str, gpus: int) -> Application:
    """Some of the GPU counts from 1 to `gpus`, with times and powers that need not be sensible."""
    counts = draw(st.lists(st.integers(1, gpus), min_size=1, max_size=3, unique=True))
    return Application(
        name,
        tuple(
            Mode(g, draw(st.sampled_from(RUNTIMES)), draw(st.sampled_from(POWERS)))
            for g in sorted(counts)
        ),
    )


@st.composite
def coscheduling_problems(
    draw: st.DrawFn, *, goals: Sequence[Goal] = GOALS, max_jobs: int = 4, max_gpus: int = 5
) -> CoschedulingProblem:
    """A few jobs on a small node; domains from one to more than there are GPUs."""
    gpus = draw(st.integers(1, max_gpus))
    kinds = draw(st.integers(1, 3))
    pool = [draw(applications(f"app-{k}", gpus)) for k in range(kinds)]
    jobs = draw(st.lists(st.integers(0, kinds - 1), min_size=1, max_size=max_jobs))
    stream = st.lists(st.sampled_from(RELEASES), min_size=len(jobs), max_size=len(jobs))
    return CoschedulingProblem.of(
        pool,
        jobs,
        gpus=gpus,
        numa=draw(st.sampled_from((1, 2, 2, 3, 6))),
        idle_w=draw(st.sampled_from((0.0, 23.3, 70.0, 500.0))),
        goal=draw(st.sampled_from(list(goals))),
        releases=draw(st.one_of(st.none(), st.none(), stream)),
        name="random",
        origin="synthetic",
    )


def three_jobs(goal: Goal = "energy", **node: float) -> CoschedulingProblem:
    """Jobs X, Y, Z on four GPUs in two domains; least energy 299,300 J, by hand."""
    rows = {
        "X": ((330, 180, 168, 160), (350, 620, 880, 1130)),
        "Y": ((360, 190, 130, 100), (340, 660, 970, 1280)),
        "Z": ((150, 140, 142, 145), (300, 470, 660, 850)),
    }
    pool = [
        Application(
            name,
            tuple(
                Mode(g + 1, float(t), p / (g + 1))
                for g, (t, p) in enumerate(zip(*row, strict=True))
            ),
        )
        for name, row in rows.items()
    ]
    return CoschedulingProblem.of(pool, goal=goal, name="three jobs", **node)  # type: ignore[arg-type]
