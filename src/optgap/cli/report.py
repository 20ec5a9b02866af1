"""``optgap report``."""

from __future__ import annotations

from typing import Annotated

from optgap.cli import DONE
from optgap.cli import options as opt


def command(
    inputs: Annotated[
        list[str],
        opt.argument("FILE", "results as JSON; problems to draw solutions"),
    ],
    output: Annotated[str, opt.option("--output -o", "HTML", "where the page goes")],
    json: opt.JsonFile = None,
) -> int:
    import sys
    from pathlib import Path

    from optgap.cli.work import Output
    from optgap.reporting import report

    opt.require_writable(json, output, read=inputs)
    out = Output(json, silent=output == "-")
    page = report(inputs, output)
    size = len(page.html.encode()) / 1e6
    out.document({**page.to_json(), "output": output})
    out.line(f"{len(page.sections)} sections, {size:.2f} MB")
    for section in page.sections:
        out.line(f"  {section.title}: {len(section.pictures)} pictures")
    out.wrote(output, json)
    address = Path(output).resolve().as_uri()
    out.last(Path(sys.executable).name, "-m", "webbrowser", address, why="opens the page")
    return DONE
