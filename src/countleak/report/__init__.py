"""Reports: what was run, on pages that people read."""
