"""Reports for people who would rather look than read, and pictures."""

from countleak.lazy import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "read_report": f"{__name__}.report",
        "write": f"{__name__}.writing",
    },
)
