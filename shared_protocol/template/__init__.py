"""Chat templates: programs from strangers, run in a sandbox with fuel."""
