"""The databases that Diffix asks."""
