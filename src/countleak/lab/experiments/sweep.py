"""A user's own grid, from a short TOML file or from values: same trials, same runner."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from countleak.errors import InputError
from countleak.files import read_text
from countleak.lab.experiments.trials import Trial, grid

# The fields of a trial that a grid can vary, and their types.
FIELDS: dict[str, type] = {
    field.name: type(field.default) for field in fields(Trial) if field.name != "number"
}


# What a trial's sigma is to a mechanism; of classes of one's own nobody knows.
SIZES = {
    "diffix": "sigma",
    "gaussian": "sigma",
    "laplace": "sigma",
    "uniform": "bound",
    "round": "base",
}


@dataclass(frozen=True)
class Sweep:
    """A name, the fields of a trial with one value or several each, and trials per cell."""

    name: str
    values: Mapping[str, Any]
    repeats: int = 10

    def trials(self) -> list[Trial]:
        """Every combination, ``repeats`` times."""
        if not re.fullmatch(r"\w[\w.-]*", self.name):
            raise InputError(
                f"name is {self.name!r}; letters, digits, '.', '_' and '-' make a name"
            )
        decoders = self.values.get("decoder", "")
        named = decoders if isinstance(decoders, list) else [decoders]
        if any(n.startswith("dini-") for n in named) and "multiplier" not in self.values:
            raise InputError("DiNi needs its bound; give a multiplier, like 3")
        if self.repeats < 1:
            raise InputError(f"trials is {self.repeats}; run at least 1 per cell")
        return grid(**self.values, number=range(self.repeats))

    @property
    def size(self) -> str:
        """What sigma is to the mechanisms of this sweep, in a word of `SIZES`, or size."""
        named = self.values.get("mechanism", Trial.mechanism)
        words = {
            SIZES.get(name, "size") for name in (named if isinstance(named, list) else [named])
        }
        return words.pop() if len(words) == 1 else "size"

    @property
    def fixed(self) -> str:
        """What all trials have in common, for a title."""
        first = self.trials()[0]
        parts = {
            "n": f"{first.n} people",
            "queries": f"{first.queries} questions",
            "family": first.family,
            "mechanism": first.mechanism,
            "sigma": f"{self.size} {first.sigma:g}",
            "decoder": first.decoder,
        }
        return ", ".join(words for field, words in parts.items() if field not in self.axes)

    @property
    def axes(self) -> list[str]:
        """The fields that take several values."""
        return [k for k, v in self.values.items() if isinstance(v, list) and len(v) > 1]


def read_sweep(path: Path) -> Sweep:
    """The sweep of a TOML file with fields of a trial, `name` and `trials`."""
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML ({error}); see docs/sweeps.md for an example") from None
    name = content.pop("name", path.stem)
    repeats = content.pop("trials", 10)
    if not isinstance(repeats, int) or isinstance(repeats, bool):
        raise InputError(f"{path}: trials is {repeats!r}, expected a whole number")
    return Sweep(str(name), check_values(content, str(path)), repeats)


def check_values(content: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values with the types a trial wants, or an InputError that names the field."""
    checked = {}
    for name, value in content.items():
        if name not in FIELDS:
            raise InputError(f"{where}: there is no field {name!r}; choose {', '.join(FIELDS)}")
        given = value if isinstance(value, list) else [value]
        if not given:
            raise InputError(f"{where}: {name} has no value; give one or several")
        typed = [_typed(name, each, where) for each in given]
        checked[name] = typed if isinstance(value, list) else typed[0]
    return checked


def _typed(name: str, value: Any, where: str) -> Any:
    kind = FIELDS[name]
    # A whole number will do where any number is expected, but true and false are none.
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise InputError(f"{where}: {name} is {value!r}, expected {_NAMES[kind]}")
    return value


_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
