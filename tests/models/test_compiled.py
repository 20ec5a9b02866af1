"""Compiled floating point is Python's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from optgap.models.compiled import _TWINS, compiled, interpreted, python_of


def product_and_sum(a: float, b: float, c: float) -> float:
    return a * b + c


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


def test_python_stands_in_until_there_is_machine_code_for_the_arguments() -> None:
    ran: list[str] = []
    kernel = compiled(total)
    whole, half = np.ones(3), np.ones(3, dtype=np.float32)
    with pytest.MonkeyPatch.context() as patch, interpreted(True):
        by_python = python_of(kernel)
        patch.setitem(_TWINS, kernel, lambda *a: ran.append("python") or by_python(*a))
        assert kernel(whole) == 3
        assert ran == ["python"]
        with interpreted(False):
            assert kernel(whole) == 3
        assert kernel(whole) == 3
        assert ran == ["python"]
        assert kernel(half) == 3
    assert ran == ["python", "python"]
