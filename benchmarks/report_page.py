"""How long a report of 10,000 runs takes to make, to open in Chromium and to sort.

Beside it the plainest alternative, `pandas.DataFrame.to_html`, which does not sort at all.
Needs the extra ``browser`` and Chromium with its driver. The runs are synthetic.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

ROWS = 10_000
OPENED = "const n = performance.getEntriesByType('navigation')[0]; return n.loadEventEnd"
SORTED = """
const done = arguments[1], started = performance.now();
arguments[0].click();
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - started)));
"""


def runs() -> list[dict[str, Any]]:
    rng = random.Random(1)
    return [
        {
            "family": rng.choice(["placement", "queueing", "elastic"]),
            "instance": f"preset(load=0.{k % 9})",
            "method": rng.choice(["fifo", "sjf", "hps", "pbs", "sbs"]),
            "seed": k % 50,
            "status": "feasible",
            "objective": rng.uniform(1e5, 2e5),
            "bound": rng.uniform(0.9e5, 1e5),
            "gap_to_bound": rng.expovariate(8),
            "gap_to_best": rng.expovariate(9),
            "seconds": rng.random(),
        }
        for k in range(ROWS)
    ]


def browser() -> Any:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("headless=new", "no-sandbox", "disable-gpu"):
        options.add_argument(f"--{argument}")
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


def main() -> None:
    import pandas as pd

    from optgap.reporting import report

    rows = runs()
    with tempfile.TemporaryDirectory() as place:
        source, ours, theirs = (Path(place) / n for n in ("runs.json", "ours.html", "theirs.html"))
        source.write_text(json.dumps({"rows": rows}))
        started = time.perf_counter()
        report([source], ours)
        made = time.perf_counter() - started
        pd.DataFrame(rows).to_html(theirs)
        driver = browser()
        opened = {}
        for path in (ours, theirs):
            times = []
            for _ in range(3):
                driver.get(path.as_uri())
                times.append(driver.execute_script(OPENED))
            opened[path] = statistics.median(times)
        driver.get(ours.as_uri())
        heads = driver.find_elements("css selector", "#s1 .table:last-of-type thead button")
        sorts = [driver.execute_async_script(SORTED, head) for head in heads for _ in range(2)]
        driver.quit()
        print(f"{ROWS:,} rows: made in {made:.1f} s")
        print(f"size   ours {ours.stat().st_size / 1e6:.1f} MB, "
              f"plain table {theirs.stat().st_size / 1e6:.1f} MB")  # fmt: skip
        print(f"open   ours {opened[ours]:.0f} ms, plain table {opened[theirs]:.0f} ms, "
              f"ratio {opened[theirs] / opened[ours]:.1f}")  # fmt: skip
        print(f"sort   median {statistics.median(sorts):.0f} ms, worst {max(sorts):.0f} ms")


if __name__ == "__main__":
    main()
