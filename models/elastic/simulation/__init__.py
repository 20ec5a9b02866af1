"""The event loop of elastic clusters: exact progress, places, restarts and profiling windows."""
