"""What the parameters of the methods mean; one that differs in an entry is ``entry.parameter``."""

from optgap.models.spec import Parameter

PARAMETERS = {
    "workers": Parameter("threads of CP-SAT; results repeat with one only", "threads"),
}
