"""optgap: how far is a GPU-cluster scheduler from optimal?"""

__version__ = "0.1.0"
