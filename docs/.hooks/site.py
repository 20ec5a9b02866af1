"""The site's navigation, its API pages and its formulas; read by mkdocs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

FAMILIES = ("placement", "consolidation", "coscheduling", "elastic", "queueing")
BOUNDS = "-bounds.md"
START = (
    ("optgap", "index.md"),
    ("What is a lower bound?", "introduction.md"),
    ("Tutorial", "tutorial.md"),
    ("Concepts", "concepts.md"),
    ("Glossary", "glossary.md"),
)
USE = (
    ("Task by task", "how-to.md"),
    ("From your CSV to a gap", "csv-to-gap.md"),
    ("A policy of your own", "your-own-policy.md"),
    ("Explain a gap", "explain.md"),
    ("Fit models to measurements", "fitting.md"),
    ("Audit your own cluster", "audit.md"),
    ("Compare on optgap-lib", "optgap-lib.md"),
    ("Sweep and tune", "sweep.md"),
    ("Public data", "data.md"),
)
THEORY = (("The formulations", "formulations.md"),)
RESULTS = (
    ("Scoreboard", "scoreboard.md"),
    ("How good solutions and bounds are", "solution-quality.md"),
    ("What the bounds taught us", "what-the-bounds-taught-us.md"),
    ("The papers rerun", "reproduction.md"),
    ("What we found in them", "errata.md"),
    ("Beside the rivals", "benchmarks.md"),
    ("What is checked", "trust.md"),
)
"""Title and file of each page, by section; families, bounds and the reference are added."""

API = {
    "api/face.md": ("Solve, compare, explain, report", [
        "optgap.api", "optgap.making", "optgap.comparing.uncertain", "optgap.comparing.gaps",
        "optgap.comparing.comparison", "optgap.comparing.overview",
        "optgap.scoring", "optgap.best_known",
        "optgap.explaining.entry", "optgap.explaining.result", "optgap.explaining.conflicts",
        "optgap.plotting.gaps", "optgap.plotting.waterfall",
        "optgap.reporting", "optgap.documents", "optgap.registry.spec",
        "optgap.registry.table", "optgap.registry.runnable",
        "optgap.exchange.export", "optgap.exchange.reading",
    ]),
    "api/work.md": ("Sweep, data", [
        "optgap.sweeping", "optgap.datasets", "optgap.views",
    ]),
    "api/contract.md": ("Results, limits, errors", [
        "optgap.contract", "optgap.models.result", "optgap.models.limits", "optgap.models.errors",
        "optgap.models.spec", "optgap.models.regret",
    ]),
    "api/fitting.md": ("Fitting", [
        "optgap.fitting.profile", "optgap.fitting.readers", "optgap.fitting.estimator",
        "optgap.fitting.workflow", "optgap.fitting.report", "optgap.fitting.saved",
        "optgap.models.performance",
    ]),
}  # fmt: skip
"""Developers' pages made from docstrings; each family's problem, policies and methods are added."""

PUBLIC = "api.md"
"""The page about Python, to which every name's docstring is added."""
POLICY = re.compile(r"\{HERE\}\.([\w.]+):")
"""The module of a policy, in its family's table."""
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")
TOKENS = re.compile(
    r"^```(?P<language>\w*)[^\n]*\n(?P<fenced>.*?)^```[^\S\n]*$|`[^`\n]+`|\$\$(?P<block>.+?)\$\$"
    r"|(?<![\w$\\])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$\\])?)\$(?![\w$])",
    re.DOTALL | re.MULTILINE,
)
"""Code, which stays as it is, and formulas: between dollars, or in a fence of language ``math``."""
LOG = logging.getLogger("mkdocs.plugins.site")


def nav(pages: Iterable[str], root: Path) -> list[Any]:
    """The navigation over the pages that are there; a page without a place of its own is last."""
    left = set(pages)

    def taken(*entries: tuple[str, str]) -> list[dict[str, str]]:
        found = [{title: page} for title, page in entries if page in left]
        left.difference_update(page for _, page in entries)
        return found

    families = []
    for name in FAMILIES:
        inner = taken(("Problem", f"{name}.md"))
        own = sorted(
            page for page in left if page.startswith(f"{name}-") and not page.endswith(BOUNDS)
        )
        inner += taken(*((_title(root, page), page) for page in own))
        if inner:
            families.append({name.capitalize(): inner})
    bounds = taken(*((f"Bounds: {name}", f"{name}{BOUNDS}") for name in FAMILIES))
    sections: list[Any] = [
        {"Start": taken(*START)},
        {"Notebooks": taken(("Gallery", "notebooks.md"))},
        {"Use": taken(*USE)},
        {"Families": families},
        {"Theory": [*taken(*THEORY), *bounds]},
        {"Results": taken(*RESULTS)},
        {"Reference": taken(("Python", "api.md"), ("Command line", "cli.md"))},
        {"Developers": [{title: page} for page, title in api_pages(root).items()]},
    ]
    left -= set(api_pages(root))
    if left:
        sections.append({"More": [{_title(root, page): page} for page in sorted(left)]})
    return [section for section in sections if all(section.values())]


def public(page: str) -> list[str]:
    """The names in the lists of the page about Python, in their order."""
    cells = re.findall(r"^- (`.+?`): ", page, re.MULTILINE)
    names = (re.match(r"\w+", part) for cell in cells for part in cell.split("`")[1::2])
    return list(dict.fromkeys(name[0] for name in names if name))


def api_pages(root: Path) -> dict[str, str]:
    """Title by page."""
    return {**{page: title for page, (title, _) in API.items()}, **{
        f"api/{name}.md": name.capitalize() for name in FAMILIES if _modules(root, name)
    }}  # fmt: skip


def _modules(root: Path, name: str) -> list[str]:
    """The modules of a family that its users meet."""
    table = root / "heuristics" / name / "__init__.py"
    policies = POLICY.findall(table.read_text(encoding="utf-8")) if table.is_file() else []
    wanted: list[tuple[str, Sequence[str]]] = [
        ("models", ("problem", "solution", "presets")),
        ("heuristics", ("parameters", *dict.fromkeys(policies), "regret")),
        ("solvers", ()),
    ]
    found = []
    for role, names in wanted:
        folder = root / role / name
        if (folder / "__init__.py").is_file():
            found += [f"optgap.{role}.{name}"] if role == "solvers" else []
            found += [f"optgap.{role}.{name}.{m}" for m in names if (folder / f"{m}.py").is_file()]
    return found


def _title(root: Path, page: str) -> str:
    """A page's first heading."""
    for line in (root / "docs" / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return page


# -- what mkdocs calls ---------------------------------------------------------------------


def on_config(config: Any) -> Any:
    root = Path(config.config_file_path).parent
    pages = [path.name for path in Path(config.docs_dir).glob("*.md")]
    config.nav = nav([*pages, *api_pages(root)], root)
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    for page, title in api_pages(root).items():
        modules = API[page][1] if page in API else _modules(root, Path(page).stem)
        blocks = [f"::: {module}\n" for module in modules]
        # whoever looks for a name means the public one
        text = f"---\nsearch:\n  exclude: true\n---\n# {title}\n\n" + "\n".join(blocks)
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links that leave the documentation become words; formulas become MathML."""
    if getattr(getattr(page, "file", None), "src_uri", "") == PUBLIC:
        markdown += "\n## In full\n\n" + "\n".join(f"::: optgap.{n}\n" for n in public(markdown))
    return formulas(OUTSIDE.sub(r"\1 (`\2`)", markdown), page)


def formulas(text: str, page: Any) -> str:
    """TeX as MathML, which browsers draw by themselves."""

    def drawn(match: re.Match[str]) -> str:
        inline = match["inline"]
        fence = match["fenced"] if match["language"] == "math" else None
        tex = inline or match["block"] or fence
        return match[0] if tex is None else _mathml(tex, "inline" if inline else "block", page)

    return TOKENS.sub(drawn, text)


def _mathml(tex: str, display: str, page: Any) -> str:
    try:
        from latex2mathml.converter import convert
    except ImportError:
        LOG.warning("%s: formulas need latex2mathml", getattr(page, "file", page))
        return tex
    # what others call aligned is align* there
    known = " ".join(tex.split()).replace("{aligned}", "{align*}")
    formula = str(convert(known, display=display))
    # Markdown takes <math> at the start of a line for the start of a block
    if display == "inline":
        return f'<span class="formula">{formula}</span>'
    return f'\n<div class="formula">{formula}</div>\n'
