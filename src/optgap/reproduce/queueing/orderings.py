"""The paper's comparisons between schedulers, pair by pair over the same streams."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

from optgap.reproduce.queueing import SOURCE
from optgap.reproduce.queueing.runs import DYNAMIC, JOBS, NAMES, STATIC, Runs, Spread
from optgap.reproduce.report import Item, Report, Row, Study, Verdict, holds

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """`pairs` of (better, worse) in a metric; `more` is better where it says so."""

    text: str
    paper: str
    metric: str
    pairs: Pairs
    more: bool = False


def _chain(*names: str) -> Pairs:
    return tuple(pairwise(names))


def _against(best: str, others: tuple[str, ...]) -> Pairs:
    return tuple((best, other) for other in others if other != best)


RULE = "yes where every pair holds beyond its 95 % interval, nearly where in the mean"
EVERYONE = (*STATIC, *DYNAMIC)
CLAIMS = (
    Claim("utilisation: HPS > PBS > SBS", "78.2, 76.1, 74.6 %", "utilisation",
          _chain("hps", "pbs", "sbs"), True),
    Claim("throughput: HPS > PBS > SBS", "25.8, 24.3, 23.7 per h", "throughput_per_h",
          _chain("hps", "pbs", "sbs"), True),
    Claim("mean wait: HPS < PBS < SBS", "757, 823, 891 s", "mean_wait_s",
          _chain("hps", "pbs", "sbs")),
    Claim("variance: HPS < PBS < SBS", "457, 524, 679", "wait_variance_s2",
          _chain("hps", "pbs", "sbs")),
    Claim("starved: HPS < PBS < SBS", "12, 18, 25", "starved", _chain("hps", "pbs", "sbs")),
    Claim("utilisation: every dynamic above every static one", "74.6 to 78.2 over 45.2 to 67.4 %",
          "utilisation", tuple(product(DYNAMIC, STATIC)), True),
    Claim("throughput: every dynamic above every static one", "23.7 to 25.8 over 12.5 to 18.3",
          "throughput_per_h", tuple(product(DYNAMIC, STATIC)), True),
    Claim("starved: every dynamic below every static one", "12 to 25 below 67 to 156", "starved",
          tuple(product(DYNAMIC, STATIC[1:]))),
    Claim("utilisation: FIFO is the lowest", "45.2 %", "utilisation",
          tuple((other, "fifo") for other in EVERYONE[1:]), True),
    Claim("throughput: FIFO is the lowest", "12.5 per h", "throughput_per_h",
          tuple((other, "fifo") for other in EVERYONE[1:]), True),
    Claim("variance: FIFO is the lowest", "126", "wait_variance_s2", _against("fifo", EVERYONE)),
    Claim("variance: SJF is the highest", "2847", "wait_variance_s2",
          tuple((other, "sjf") for other in EVERYONE if other != "sjf")),
    Claim("variance: SJF > Shortest > Shortest-GPU", "2847, 1957, 1678", "wait_variance_s2",
          _chain("shortest-gpu", "shortest", "sjf")),
    Claim("starved: SJF > Shortest > Shortest-GPU", "156, 89, 67", "starved",
          _chain("shortest-gpu", "shortest", "sjf")),
    Claim("success rate: every dynamic above every static one", "over 94 over 79 to 87 %",
          "success_rate", tuple(product(DYNAMIC, STATIC)), True),
)  # fmt: skip


def orderings(item: Item, study: Study) -> Report:
    """Whether every pair holds, by `RULE`."""
    runs, endless = Runs(study), Runs(study, "inf")
    rows = []
    for claim in CLAIMS:
        verdict, words = _judge(claim, runs)
        again = ""
        if claim.metric != "success_rate":
            again = f"endless: {_judge(claim, endless)[0]}"
        rows.append(Row(claim.text, claim.paper, words, verdict, again, RULE))
    source = (
        f"{SOURCE}, {JOBS} jobs at load 0.9, who has waited 1 h leaves (in the notes: nobody "
        "does); paired over seeds"
    )
    return Report(item, source, tuple(rows), study.seeds)


def _judge(claim: Claim, runs: Runs) -> tuple[Verdict, str]:
    """The verdict, and how many of the pairs hold."""
    sure = mean = 0
    worst: tuple[float, str] = (float("inf"), "")
    for better, worse in claim.pairs:
        lead = runs.metric(better, claim.metric) - runs.metric(worse, claim.metric)
        found = Spread.of(lead if claim.more else -lead)
        mean += found.mean > 0
        sure += found.mean > 0 and not found.mean <= found.half
        if found.mean < worst[0]:
            worst = (found.mean, f"{NAMES[better]} against {NAMES[worse]}")
    total = len(claim.pairs)
    words = f"{sure} of {total} pairs hold"
    if mean > sure:
        words += f", {mean - sure} more in the mean"
    if mean < total:
        words += f"; furthest off: {worst[1]}"
    return holds(sure == total, mean == total), words
