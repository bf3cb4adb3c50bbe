"""Pictures of what was found, drawn with altair: one subject a file."""
