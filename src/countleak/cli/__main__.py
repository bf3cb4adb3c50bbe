"""`python -m countleak.cli`."""

from countleak.cli import main

main()
