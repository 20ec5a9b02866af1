"""An environment of its own, away from the tree, as somebody has it who knows nothing of ours."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_S = 1800
"""For one command; a busy machine is slow."""


class Clean:
    """One Python, one empty folder to work in, nothing of the caller's environment.

    Parameters
    ----------
    python: the interpreter to make the environment with.
    place: an empty folder for all of it.
    """

    def __init__(self, python: str, place: Path) -> None:
        self.python = python
        self.here = place / "here"
        self.bin = place / "venv" / "bin"
        self.here.mkdir(parents=True)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("OPTGAP", "PYTHON"))},
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(place / "cache"),
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip")),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        # `make` is to find no environment of ours either
        self.environment.pop("VIRTUAL_ENV", None)

    def settle(self) -> None:
        """Make the environment."""
        self.checked([self.python, "-m", "venv", str(self.bin.parent)])

    def run(
        self, command: list[str], folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a folder (`here`); its first word is looked for in ours first."""
        own = self.bin / command[0]
        return subprocess.run(
            [str(own) if own.exists() else command[0], *command[1:]],
            cwd=folder or self.here,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def checked(self, command: list[str], folder: Path | None = None) -> str:
        """What the command prints.

        Raises
        ------
        SystemExit: when it fails.
        """
        done = self.run(command, folder)
        if done.returncode:
            raise SystemExit(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout


def cloned(place: Path) -> Path:
    """What is committed, in a new folder."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(place)], check=True)
    return place
