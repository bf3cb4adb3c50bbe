"""SDMX: its CSV by hand, for it is a CSV file with named columns; its XML and JSON by sdmx1."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from countleak.audit.releases.formats.rows import Rows, Why, require_few, text_of
from countleak.errors import InputError, MissingExtra
from countleak.files import Name

VALUE = "OBS_VALUE"
# Columns about the message, not about the people.
_MESSAGE = ("DATAFLOW", "STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "LAST UPDATE")
# Attributes that only a data structure would tell from dimensions.
_ATTRIBUTES = frozenset(
    {
        *("OBS_STATUS", "CONF_STATUS", "OBS_FLAG", "CONF_FLAG", "OBS_CONF", "OBS_PRE_BREAK"),
        *("OBS_COM", "COMMENT_OBS", "TITLE", "TITLE_COMPL", "UNIT_MULT", "UNIT_MEASURE"),
        *("DECIMALS", "COLLECTION", "TIME_FORMAT", "SOURCE", "EMBARGO_TIME", "COMPILATION"),
    }
)
_STATUSES = ("CONF_STATUS", "CONF_FLAG", "OBS_CONF", "OBS_STATUS", "OBS_FLAG")
# By the code lists CL_CONF_STATUS and CL_OBS_STATUS: C and A are confidential by themselves, D and
# S protect others; a number that is not collected, or part of another, says nothing.
_WHY = {
    "CONF_STATUS": {
        "C": Why.PRIMARY, "A": Why.PRIMARY, "D": Why.SECONDARY, "S": Why.SECONDARY,
        "N": Why.UNKNOWN,
    },
    "OBS_STATUS": {"Q": Why.UNKNOWN, "M": Why.UNKNOWN, "K": Why.ABSENT, "L": Why.ABSENT},
}  # fmt: skip


def is_csv(names: Sequence[str]) -> bool:
    """Whether a CSV file's header is that of SDMX-CSV, 1.0 or 2.0."""
    first = names[0].partition("[")[0].upper()
    return VALUE in names and first in ("DATAFLOW", "STRUCTURE")


def from_csv(path: Name, names: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> Rows:
    """SDMX-CSV: the columns before the value are dimensions, those after it attributes."""
    bare = [name.partition(":")[0].partition("[")[0].strip() for name in names]
    value = list(names).index(VALUE)
    kept = [
        at
        for at in range(value)
        if bare[at].upper() not in _MESSAGE and bare[at] not in _ATTRIBUTES
    ]
    status = {bare[at]: at for at in range(len(names)) if bare[at] in _STATUSES}
    _require_ones(path, {row[bare.index("UNIT_MULT")] for _, row in rows if "UNIT_MULT" in bare})
    read = []
    for line, row in rows:
        marks = {name: row[at] for name, at in status.items()}
        read.append((line, [*(row[at] for at in kept), _shown(row[value], marks)]))
    return Rows([*(bare[at] for at in kept), VALUE], read, len(kept), _marks())


def from_file(path: Name) -> Rows:
    """An SDMX-ML or SDMX-JSON message with one data set."""
    try:
        import sdmx
    except ImportError:
        raise MissingExtra("an SDMX-ML or SDMX-JSON file", "tables") from None
    # It tells developers of what it does not find in a message.
    logging.getLogger("sdmx").setLevel(logging.CRITICAL)
    try:
        with Path(path).open("rb") as file:
            message = sdmx.read_sdmx(file)
        sets = list(getattr(message, "data", ()))
        observations = [_plain(each) for part in sets for each in part.obs]
    except Exception as error:
        # Of a damaged file it raises whatever its parts do.
        what = type(error).__name__
        raise InputError(f"{path}: not SDMX data that can be read ({what}); fix the file") from None
    if not observations:
        raise InputError(f"{path}: an SDMX message without data; name the data, not the structure")
    require_few(path, len(observations))
    return _rows(path, observations)


def _plain(observation: Any) -> tuple[dict[str, str], str, dict[str, str]]:
    """Dimensions, value and attributes of an observation, as texts."""
    key = {name: text_of(each.value) for name, each in observation.key.values.items()}
    said = {
        name: text_of(getattr(each.value, "id", each.value))
        for name, each in observation.attrib.items()
    }
    value = observation.value
    shown = "" if value is None or value != value else text_of(value)
    said |= {name: key.pop(name) for name in list(key) if name in _ATTRIBUTES}
    return key, shown, said


def _rows(path: Name, observations: Sequence[tuple[dict[str, str], str, dict[str, str]]]) -> Rows:
    # What not every observation has is an attribute.
    names = [name for name in observations[0][0] if all(name in key for key, _, _ in observations)]
    _require_ones(path, {said.get("UNIT_MULT", "") for _, _, said in observations})
    rows = [
        (at, [*(key[name] for name in names), _shown(value, said)])
        for at, (key, value, said) in enumerate(observations, 1)
    ]
    return Rows([*names, VALUE], rows, len(names), _marks(), unit="observation")


def _require_ones(path: Name, powers: set[str]) -> None:
    if powers - {"", "0"}:
        raise InputError(
            f"{path}: its numbers are in units of 10^{max(powers)} (UNIT_MULT); counts of single "
            "people are expected"
        )


def _shown(value: str, said: Mapping[str, str]) -> str:
    """A number; in the place of one that is not shown its status, like CONF_STATUS C."""
    if value and value.lower() != "nan":
        return value
    for name in _STATUSES:
        code = said.get(name, "").partition(":")[0].strip()
        if code and code not in ("F", "A" if name.startswith("OBS") else ""):
            return f"{name} {code}"
    return ""


def _marks() -> dict[str, Why]:
    return {f"{name} {code}": why for name, codes in _WHY.items() for code, why in codes.items()}
