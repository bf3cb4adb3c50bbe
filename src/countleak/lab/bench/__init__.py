"""Side-by-side measurements against named peers, in one run, interleaved, on fresh instances."""
