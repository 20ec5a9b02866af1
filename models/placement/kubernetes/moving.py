"""Which pods may be moved, and why the others stay."""

from __future__ import annotations

from collections.abc import Iterable

from optgap.models.placement.kubernetes.objects import Object
from optgap.models.placement.kubernetes.selection import selected

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KEEP = ("karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict")
FREE_VOLUMES = {"configMap", "secret", "projected", "downwardAPI", "nfs"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CRITICAL = ("system-node-critical", "system-cluster-critical")


def spent(budgets: Iterable[Object]) -> list[Object]:
    """Return the disruption budgets that allow no disruption at the moment."""
    return [b for b in budgets if int((b.get("status") or {}).get("disruptionsAllowed") or 0) < 1]


def _budgeted(pod: Object, budgets: Iterable[Object]) -> bool:
    """Whether one of the spent disruption budgets keeps a pod where it is."""
    meta = pod["metadata"]
    return any(
        budget["metadata"].get("namespace", "default") == meta.get("namespace", "default")
        and selected(meta.get("labels") or {}, (budget.get("spec") or {}).get("selector") or {})
        for budget in budgets
    )


def on_every_node(pod: Object) -> bool:
    """Whether a pod is part of its node: of a DaemonSet, or a static pod's mirror."""
    meta = pod["metadata"]
    if "kubernetes.io/config.mirror" in (meta.get("annotations") or {}):
        return True
    return any(o.get("kind") in ("DaemonSet", "Node") for o in meta.get("ownerReferences") or [])


def why_stays(pod: Object, budgets: Iterable[Object]) -> str:
    """Why a pod must stay where it is; "" when it may move."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    notes = meta.get("annotations") or {}
    if meta.get("deletionTimestamp"):
        return "being deleted"
    if str(notes.get(SAFE, "")).lower() == "false" or any(
        str(notes.get(key, "")).lower() == "true" for key in KEEP
    ):
        return "annotated to stay"
    if spec.get("priorityClassName") in CRITICAL:
        return "critical for the system"
    if not any(o.get("controller") for o in meta.get("ownerReferences") or []):
        return "owned by no controller"
    safe = str(notes.get(SAFE, "")).lower() == "true"
    return (
        _volumes(spec, safe)
        or ("disruption budget" if _budgeted(pod, budgets) else "")
        or _needs_others(spec)
    )


def _volumes(spec: Object, safe: bool) -> str:
    """Why a pod's volumes keep it where it is: only the volumes themselves say where they are."""
    found = ""
    for volume in spec.get("volumes") or []:
        kinds = {key for key in volume if key != "name"}
        if kinds & {"persistentVolumeClaim", "ephemeral"}:
            return "a claim that may be bound to a zone or node"
        if kinds & {"emptyDir", "hostPath"}:
            found = found or ("" if safe else "local storage")
        elif kinds - FREE_VOLUMES:
            found = f"a volume of another kind ({min(kinds)})"
    return found


def _needs_others(spec: Object) -> str:
    """Rules about other pods and ports, which the problem does not know."""
    affinity = spec.get("affinity") or {}
    if any((affinity.get(k) or {}).get(REQUIRED) for k in ("podAffinity", "podAntiAffinity")):
        return "affinity to other pods"
    spread = spec.get("topologySpreadConstraints") or []
    if any(rule.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" for rule in spread):
        return "topology spread"
    ports = (p for c in spec.get("containers") or [] for p in c.get("ports") or [])
    return "host port" if spec.get("hostNetwork") or any(p.get("hostPort") for p in ports) else ""
