"""``python -m optgap``."""

from optgap.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
