"""Pictures of many simulated attacks, drawn with altair."""
