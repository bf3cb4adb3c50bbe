"""Pictures of experiments and measurements, drawn with altair: one subject per file."""
