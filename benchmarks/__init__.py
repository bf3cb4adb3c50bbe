"""Benchmarks of countleak: against named peers, on honesty, on scale, on published tables."""
