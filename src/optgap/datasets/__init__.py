"""Public traces and measurements by name: where they are, whose they are, and how to get them.

>>> from optgap import datasets
>>> datasets.fetch(["openb"])  # doctest: +SKIP
>>> datasets.path("openb")  # doctest: +SKIP

Nothing in optgap needs them: every family has embedded defaults.
"""

from optgap.datasets.catalogue import Dataset, File, Published, catalogue, choose
from optgap.datasets.places import data_folder, home, present_folder
from optgap.datasets.store import Fetched, State, fetch, path, verify

__all__ = [
    "Dataset",
    "Fetched",
    "File",
    "Published",
    "State",
    "catalogue",
    "choose",
    "data_folder",
    "fetch",
    "home",
    "path",
    "present_folder",
    "verify",
]
