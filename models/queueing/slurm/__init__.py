"""Reader of Slurm's accounting as jobs to be scheduled and the schedule that happened."""

from optgap.models.queueing.slurm.reader import read_slurm

__all__ = ["read_slurm"]
