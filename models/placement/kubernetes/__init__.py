"""A Kubernetes cluster as a placement problem, with where its pods are now."""

from optgap.models.placement.kubernetes.reader import KubernetesReading, read_kubernetes

__all__ = ["KubernetesReading", "read_kubernetes"]
