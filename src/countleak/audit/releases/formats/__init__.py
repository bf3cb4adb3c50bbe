"""The files that tables are published in, one format per file: each is read as rows of text."""

from countleak.audit.releases.formats.reading import read_rows
from countleak.audit.releases.formats.rows import MARKERS, MOST_NUMBERS, Rows, Why, is_shown

__all__ = ["MARKERS", "MOST_NUMBERS", "Rows", "Why", "is_shown", "read_rows"]
