"""Same seed, same versions: same answer, with other threads, other order, another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from trust.answers import everything

from optgap.registry import FAMILIES

TESTS = Path(__file__).parents[1]


def elsewhere(threads: int, hash_seed: int) -> dict[str, Any]:
    """What every family's policies and methods give in a process of its own, the last first."""
    own = filter(None, [os.environ.get("PYTHONPATH")])
    program = subprocess.run(
        [sys.executable, "-m", "trust.answers"],
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
    one, two = json.loads(json.dumps(everything())), elsewhere(threads=1, hash_seed=2)
    assert one.keys() == two.keys() == FAMILIES.keys()
    for family, given in one.items():
        assert given.keys() == two[family].keys()
        assert {n: a for n, a in given.items() if a != two[family][n]} == {}, family
        assert set(FAMILIES[family].policies) <= set(given)
