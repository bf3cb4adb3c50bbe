"""What all pictures share: colours, altair, and the formats they are saved in."""

from pathlib import Path
from typing import Any

from countleak.errors import InputError, MissingExtra

FORMATS = (".svg", ".png", ".html")
RECOVERED, MISSED, QUIET = "#1b7f79", "#d1495b", "#8a8f98"


def require_drawing(path: Path | None = None) -> None:
    """Raise before hours of work what would only be noticed after: no altair, no such format."""
    altair()
    if path is not None and path.suffix not in FORMATS:
        raise InputError(f"{path}: cannot draw {path.suffix!r}; choose {', '.join(FORMATS)}")


def altair() -> Any:
    """The drawing library, or the error that names the extra it comes with."""
    try:
        import altair
    except ImportError:
        raise MissingExtra("drawing", "report") from None
    return altair


def save(chart: Any, path: Path) -> None:
    """Write a chart in the format that the file's name asks for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    options: dict[str, dict[str, Any]] = {
        ".png": {"scale_factor": 2},
        ".html": {"inline": True},
    }
    chart.save(str(path), **options.get(path.suffix, {}))
