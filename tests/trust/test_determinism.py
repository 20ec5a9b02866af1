"""Same seed, same versions: same answer, with other threads, other order, another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from optgap.registry import FAMILIES

TESTS = Path(__file__).parents[1]


def answers(threads: int, backwards: bool, hash_seed: int) -> dict[str, Any]:
    """What every family's policies and methods give in a process of its own."""
    own = filter(None, [os.environ.get("PYTHONPATH")])
    program = subprocess.run(
        [sys.executable, "-m", "trust.answers", "backwards" if backwards else "forwards"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(TESTS), *own]),
            "PYTHONHASHSEED": str(hash_seed),
            "OMP_NUM_THREADS": str(threads),
            "NUMBA_NUM_THREADS": str(threads),
            "OPENBLAS_NUM_THREADS": str(threads),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert program.returncode == 0, program.stderr[-2000:]
    found: dict[str, Any] = json.loads(program.stdout)
    return found


def test_neither_threads_nor_order_nor_hashing_change_an_answer() -> None:
    one = answers(threads=1, backwards=False, hash_seed=1)
    two = answers(threads=2, backwards=True, hash_seed=2)
    assert one.keys() == two.keys() == FAMILIES.keys()
    for family, given in one.items():
        assert given.keys() == two[family].keys()
        assert {n: a for n, a in given.items() if a != two[family][n]} == {}, family
        assert set(FAMILIES[family].policies) <= set(given)
