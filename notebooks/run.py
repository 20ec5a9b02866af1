"""Run the notebooks that are kept with outputs, and keep what they give now.

``python notebooks/run.py [NAME …]``: those named, or all of ``paper-*.ipynb``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def refreshed(path: Path) -> None:
    """The notebook with the outputs of a fresh kernel, without what differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(HERE)}}).execute()
    for cell in notebook.cells:
        cell.get("metadata", {}).clear()
    notebook.metadata.get("language_info", {}).clear()
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for path in sorted(HERE.glob("paper-*.ipynb")):
        if len(sys.argv) < 2 or path.stem in sys.argv[1:]:
            refreshed(path)
            print(path.name)
