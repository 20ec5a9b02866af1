"""Pictures of a solution, one file per family: Gantt charts, timelines, maps of nodes."""
