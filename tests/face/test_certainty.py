"""The price of keeping a power limit with confidence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli

import optgap
from optgap.comparing.certainty import price_of_certainty
from optgap.explaining import Explanation
from optgap.models.errors import InputError
from optgap.models.jsonio import Fields


def fitted(noise: float) -> optgap.Problem:
    rng = np.random.default_rng(0)
    rows = [
        (name, n, b, f, t, (60 + s * f) * t * n * np.exp(noise * rng.standard_normal()))
        for name, k, s in (("netA", 0.004, 0.12), ("netB", 0.011, 0.15))
        for n in (1, 2, 4)
        for b in (8, 16, 32)
        for f in (900.0, 1200.0, 1500.0)
        for t in [0.01 + k * b * 1500 / f + 0.004 * (n > 1)]
    ]
    names = ("application", "gpus", "local_batch", "frequency_mhz", "time_s", "energy_j")
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    fit = optgap.fit(table, "powerflow-energy", by="application", cv=0)
    return optgap.generate("elastic", size=8, models=[fit], eta=0.5)


@pytest.fixture(scope="module")
def noisy() -> optgap.Problem:
    return fitted(0.1)


def test_certainty_has_a_price_that_grows(noisy: optgap.Problem) -> None:
    found = price_of_certainty(noisy, confidences=(0.5, 0.9, 0.99), count=15)
    assert list(found.bound_s) == sorted(found.bound_s)
    assert found.bound_s[-1] > found.bound_s[0]
    assert "99 %" in str(found)
    assert str(found) == str(price_of_certainty(noisy, confidences=(0.5, 0.9, 0.99), count=15))


def test_it_asks_for_fits_a_limit_and_confidences(noisy: optgap.Problem) -> None:
    with pytest.raises(InputError, match="rests on no fit"):
        price_of_certainty(optgap.generate("elastic", "small", size=4))
    with pytest.raises(InputError, match="family elastic"):
        price_of_certainty(optgap.generate("queueing", "small", size=4))
    with pytest.raises(InputError, match="below 1"):
        price_of_certainty(noisy, confidences=(1.0,))
    with pytest.raises(InputError, match="at least 2"):
        price_of_certainty(noisy, count=1)
    with pytest.raises(InputError, match="first submission"):
        price_of_certainty(noisy, at_s=-5)


def test_explain_prices_the_dearest_moment_of_the_schedule(
    noisy: optgap.Problem, cli: Cli, tmp_path: Path
) -> None:
    tight = optgap.generate("elastic", size=6, models=list(noisy.fits), eta=0.1)
    optgap.save(tight, tmp_path / "p.json")
    asked = ("explain", str(tmp_path / "p.json"), "--policy", "powerflow", "--methods",
             "bound-area", "--beside", "none", "--top", "0")  # fmt: skip
    answer = cli(*asked, "--certainty", "0.99", "--json", str(tmp_path / "x.json"))
    assert answer.code == 0, answer.err
    assert "99 %" in answer.out
    document = json.loads((tmp_path / "x.json").read_text())
    least, most = document["certainty"]["rows"]
    assert (least["confidence"], least["price"]) == (0.5, 0)
    assert most["bound_s"] == pytest.approx(least["bound_s"] * (1 + most["price"]))
    assert most["price"] > 0
    read = Explanation.from_json(Fields(document, "x.json"))
    assert read.certainty is not None
    assert str(read.certainty) in str(read)
    assert read.certainty.table()[1][1][0] in read._repr_html_()
    for words, text in (("0.3", "from 0.5 to below 1"), ("a", "--certainty: found 'a'")):
        refused = cli(*asked, "--certainty", words)
        assert refused.code == 2
        assert text in refused.err
        assert refused.err.count("\n") == 1
