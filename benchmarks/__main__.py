"""`python -m benchmarks`: the list of all benchmarks."""

from benchmarks.start import main

main()
