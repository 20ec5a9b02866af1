"""Compiled floating point is Python's."""

from __future__ import annotations

import errno
import itertools
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numba.core import event
from numba.core.caching import IndexDataCacheFile

from optgap.models.compiled import compiled, inner, interpreted, python_of


def product_and_sum(a: float, b: float, c: float) -> float:
    return a * b + c


@inner
def total(values: npt.NDArray[np.float64]) -> float:
    result = 0.0
    for k in range(len(values)):
        result += values[k]
    return result


def test_products_and_sums_are_not_fused() -> None:
    # The product rounds to 1; a fused operation would keep the -2^-54.
    arguments = (1 + 2.0**-27, 1 - 2.0**-27, -1.0)
    assert compiled(product_and_sum)(*arguments) == product_and_sum(*arguments) == 0.0


def test_sums_run_from_first_to_last() -> None:
    values = np.random.default_rng(1).random(1001)
    assert compiled(total)(values) == total(values) != np.sum(values)


def test_a_function_without_a_place_for_its_machine_code_compiles_all_the_same() -> None:
    space: dict[str, object] = {}
    exec("def double(x):\n    return 2 * x", space)
    assert compiled(space["double"])(21) == 42  # type: ignore[type-var, operator]


@compiled
def twice(values: npt.NDArray[np.float64]) -> float:
    return 2 * summed(values)


@compiled
def summed(values: npt.NDArray[np.float64]) -> float:
    return total(values)


def test_python_stands_in_until_there_is_machine_code_for_the_arguments() -> None:
    whole, half = np.ones(3), np.ones(3, dtype=np.float32)

    def by_python(call: Callable[..., Any], values: npt.NDArray[Any]) -> bool:
        answer = call(values)
        assert answer == 6
        return isinstance(answer, np.floating)  # machine code returns a float of Python's

    with interpreted(True):
        assert by_python(twice, whole)
        with interpreted(False):
            assert not by_python(twice, whole)
        assert not by_python(twice, whole)
        assert by_python(twice, half)
        assert by_python(python_of(twice), whole)
    assert by_python(python_of(twice), whole)
    assert not summed.kernel.overloads  # type: ignore[attr-defined]


def test_a_call_with_a_constant_compiles_nothing_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))

    @inner
    def power(base: float, exponent: int) -> float:
        return base**exponent

    @compiled
    def powers(base: float, exponent: int) -> float:
        return power(base, 2) + power(base, 3) + power(2.0, exponent)

    with event.install_recorder("numba:compile") as recorder:
        assert powers(3.0, 1) == 9 + 27 + 2
    begun = [e.data["dispatcher"].py_func.__name__ for _, e in recorder.buffer if e.is_start]
    assert begun == ["powers", "power"]


SCRIPT = """
from optgap.models.compiled import compiled

@compiled
def double(x):
    return x + x
"""


def test_code_that_was_cut_off_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = tmp_path / "script.py", tmp_path / "cache"
    path.write_text(SCRIPT)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(cache))

    def hits() -> int:
        """Of the module, loaded anew."""
        double = runpy.run_path(str(path))["double"]
        assert double(21) == 42
        return sum(double.kernel.stats.cache_hits.values())

    assert hits() == 0
    for ending, share in itertools.product(("nbi", "nbc"), (0.0, 0.5)):
        (kept,) = cache.rglob(f"*.{ending}")
        kept.write_bytes(kept.read_bytes()[: int(share * kept.stat().st_size)])
        assert hits() == 0
    assert hits() == 1


def test_a_full_disk_below_the_cache_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_save_index", full)
    kernel = compiled(product_and_sum)
    arguments = (0.1, 10.0, -1.0)
    assert kernel(*arguments) == product_and_sum(*arguments)
