"""Kubernetes cluster as a placement problem, with the present nodes of its pods."""

from optgap.models.placement.kubernetes.reader import KubernetesReading, read_kubernetes

__all__ = ["KubernetesReading", "read_kubernetes"]
