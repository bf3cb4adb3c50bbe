"""What all pictures share: colours, altair, and the formats they are saved in."""

from pathlib import Path
from typing import Any

from countleak.errors import InputError, MissingExtra
from countleak.files import replacing, require_own

# The formats, and how a file of each begins.
FORMATS = {
    ".svg": (b"<svg", b"<?xml"),
    ".png": (b"\x89PNG",),
    ".html": (b"<!DOCTYPE html", b"<!doctype html", b"<html"),
}
RECOVERED, MISSED, QUIET = "#1b7f79", "#d1495b", "#767c86"
# Fonts differ in width from the one that vl-convert measures with; legends must not be cut.
PADDING = {"left": 6, "right": 48, "top": 6, "bottom": 6}


def require_drawing(path: Path | None = None) -> None:
    """Raise before hours of work what would only be noticed after: no altair, no such format.

    Nor is anything but a picture of that format replaced by one.
    """
    altair()
    if path is not None:
        if path.suffix not in FORMATS:
            raise InputError(f"{path}: cannot draw {path.suffix!r}; choose {', '.join(FORMATS)}")
        beginnings = FORMATS[path.suffix]
        require_own(path, f"a {path.suffix} picture", lambda line: line.startswith(beginnings))


def altair() -> Any:
    """The drawing library, or the error that names the extra it comes with."""
    try:
        import altair
    except ImportError:
        raise MissingExtra("drawing", "report") from None
    return altair


def save(chart: Any, path: Path) -> None:
    """Write a chart in the format that the file's name asks for."""
    require_drawing(path)
    options: dict[str, dict[str, Any]] = {
        ".png": {"scale_factor": 2},
        ".html": {"inline": True},
    }
    with replacing(path, "wb" if path.suffix == ".png" else "w") as file:
        chart.properties(padding=PADDING).save(
            file, format=path.suffix[1:], **options.get(path.suffix, {})
        )
