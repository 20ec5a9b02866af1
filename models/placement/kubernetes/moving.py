"""Which pods may be moved, and why the others stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from optgap.models.placement.kubernetes.objects import Object
from optgap.models.placement.kubernetes.selection import selected

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KEEP = ("karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict")
CRITICAL = ("system-node-critical", "system-cluster-critical")


class Budgets:
    """Disruption budgets that allow none at the moment, by namespace."""

    def __init__(self, budgets: Iterable[Object]) -> None:
        self._spent: dict[str, list[tuple[str, Object]]] = defaultdict(list)
        for budget in budgets:
            meta, status = budget["metadata"], budget.get("status") or {}
            if int(status.get("disruptionsAllowed") or 0) < 1:
                selector = (budget.get("spec") or {}).get("selector") or {}
                self._spent[meta.get("namespace", "default")].append((meta["name"], selector))

    def holds(self, pod: Object) -> str:
        """The budget that keeps a pod where it is, or ""."""
        meta = pod["metadata"]
        labels = meta.get("labels") or {}
        for name, selector in self._spent.get(meta.get("namespace", "default"), ()):
            if selected(labels, selector):
                return name
        return ""


def on_every_node(pod: Object) -> bool:
    """Whether a pod is part of its node: of a DaemonSet, or a static pod's mirror."""
    meta = pod["metadata"]
    if "kubernetes.io/config.mirror" in (meta.get("annotations") or {}):
        return True
    return any(o.get("kind") in ("DaemonSet", "Node") for o in meta.get("ownerReferences") or [])


def why_stays(pod: Object, budgets: Budgets) -> str:
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
    local = [v for v in spec.get("volumes") or [] if "emptyDir" in v or "hostPath" in v]
    if local and not safe:
        return "local storage"
    if budgets.holds(pod):
        return "disruption budget"
    return _needs_others(spec)


def _needs_others(spec: Object) -> str:
    """Rules about other pods and ports, which the problem does not know."""
    affinity = spec.get("affinity") or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if any((affinity.get(k) or {}).get(required) for k in ("podAffinity", "podAntiAffinity")):
        return "affinity to other pods"
    spread = spec.get("topologySpreadConstraints") or []
    if any(rule.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" for rule in spread):
        return "topology spread"
    ports = (p for c in spec.get("containers") or [] for p in c.get("ports") or [])
    return "host port" if spec.get("hostNetwork") or any(p.get("hostPort") for p in ports) else ""


def sees_gpus(pod: Object) -> bool:
    """Whether a pod takes GPUs through its environment without asking for any."""
    for container in (pod.get("spec") or {}).get("containers") or []:
        for entry in container.get("env") or []:
            if entry.get("name") == "NVIDIA_VISIBLE_DEVICES":
                return str(entry.get("value") or "").lower() not in ("", "none", "void")
    return False
