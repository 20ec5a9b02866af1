"""The notebooks as pages of the site, with a gallery of their pictures; read by mkdocs."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from typing import Any

INDEX = "notebooks.md"
LINK = re.compile(r"\]\(\.\./notebooks/([\w-]+)\.ipynb\)")
TERMINAL = re.compile(r"\x1b\[[\d;]*m")


def stored(root: Path) -> dict[str, dict[str, Any]]:
    """Return the notebooks by name."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((root / "notebooks").glob("*.ipynb"))
    }


def title(notebook: dict[str, Any]) -> str:
    """Return the heading of a notebook."""
    return "".join(notebook["cells"][0]["source"]).splitlines()[0].removeprefix("# ")


def page(name: str, notebook: dict[str, Any]) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by file name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    heading = ""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            heading = next(iter(re.findall(r"^#+ (.*)$", source, re.MULTILINE)[::-1]), heading)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            text = "".join(output.get("text") or data.get("text/plain", ""))
            if "image/png" in data:
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode("".join(data["image/png"]))
                parts.append(f'<div class="picture" markdown>\n![{heading}]({file})\n</div>')
            elif "text/html" in data:
                parts.append(f'<div class="output">\n{"".join(data["text/html"])}\n</div>')
            elif text:
                parts.append(f"```text\n{TERMINAL.sub('', text).rstrip()}\n```")
    return "\n\n".join(parts) + "\n", pictures


def gallery(notebooks: dict[str, dict[str, Any]]) -> str:
    """Return the last picture of each notebook, as a link to its page."""
    figures = []
    for name, notebook in notebooks.items():
        _, pictures = page(name, notebook)
        if pictures:
            words = html.escape(title(notebook))
            image = f'<img src="{list(pictures)[-1]}" alt="" loading="lazy">'
            figures.append(f'<a href="{name}/">{image}<span>{words}</span></a>')
    return '<div class="gallery">\n' + "\n".join(figures) + "\n</div>\n"


# -- what mkdocs calls ---------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Put the notebooks behind their gallery."""
    notebooks = stored(Path(config.config_file_path).parent)
    section = next(part["Notebooks"] for part in config.nav if "Notebooks" in part)
    section += [{title(notebook): f"notebooks/{name}.md"} for name, notebook in notebooks.items()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook, and its pictures."""
    from mkdocs.structure.files import File

    for name, notebook in stored(Path(config.config_file_path).parent).items():
        text, pictures = page(name, notebook)
        files.append(File.generated(config, f"notebooks/{name}.md", content=text))
        for file, picture in pictures.items():
            files.append(File.generated(config, f"notebooks/{file}", content=picture))
    return files


def on_page_read_source(page: Any, config: Any) -> str | None:
    """Lead links to notebooks to their pages: elsewhere they lead to the files."""
    if page.file.abs_src_path is None:
        return None
    text = Path(page.file.abs_src_path).read_text(encoding="utf-8")
    return LINK.sub(r"](notebooks/\1.md)", text)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Add the gallery to its page."""
    if page.file.src_uri != INDEX:
        return markdown
    return f"{markdown}\n{gallery(stored(Path(config.config_file_path).parent))}"
