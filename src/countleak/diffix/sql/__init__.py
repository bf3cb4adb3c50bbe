"""SQL as Diffix reads it: parse, check, normalise, render."""
