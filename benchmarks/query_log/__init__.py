"""A log of counts with planted trackers, over a generated population, for `countleak log`."""
