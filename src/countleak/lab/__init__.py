"""The experiments of the paper, and sweeps of the user's own."""
