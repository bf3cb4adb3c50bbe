"""What `releases.toml` says of how a table was made, as the rules stated of a system."""

from collections.abc import Mapping
from math import log, sqrt
from pathlib import Path
from typing import Any

from scipy.special import ndtri

from countleak.attack.noise import Below, Range, Shape, Suppression
from countleak.attack.perturbation import Perturbation
from countleak.attack.rules import Rules
from countleak.audit.releases.formats import Why
from countleak.audit.tables import read_table
from countleak.errors import InputError
from countleak.files import Name

ROUNDINGS = ("nearest", "random", "controlled")
LAWS = {"normal": Shape.GAUSSIAN, "Laplace": Shape.LAPLACE}
# Only one of these says what is added to counts.
NOISES = ("noise_within", "noise_sd", "perturbed_within", "p_table")
KEYS = ("exact", "rounded_to", "rounding", "suppressed", "not_shown_below", "noise_law", *NOISES)
# Of so many tables, one has a number that is further off than is reckoned with.
ONE_IN = 100
# How the columns of a p-table are called: the count, and what is added to it.
_P_COLUMNS = (("pcv", "pvalue"), ("i", "v"))


def rules_of(path: Name, record: Mapping[str, Any]) -> Rules:
    """The rules that a table's record states."""
    given = [key for key in NOISES if key in record]
    if len(given) > 1 or (record.get("exact") is True and given):
        both = " and ".join(["exact"] * (record.get("exact") is True) + given)
        raise InputError(f"{path}: {both} exclude each other; write one of them")
    if record.get("exact", True) is not True:
        raise InputError(f"{path}: exact is {record['exact']!r}; write true, or what is done")
    base, by_chance = _rounding(path, record)
    shape, bound, sigma, keys = Shape.EXACT, None, None, None
    if "noise_within" in record:
        shape, bound = Shape.UNIFORM, _above_0(path, record, "noise_within")
    elif "noise_sd" in record:
        shape, sigma = _law(path, record), _above_0(path, record, "noise_sd")
    elif "perturbed_within" in record:
        within = record["perturbed_within"]
        if not _is_whole(within, 1):
            raise InputError(f"{path}: perturbed_within is {within!r}; write a whole number from 1")
        keys = Perturbation.within(within)
    elif "p_table" in record:
        keys = read_p_table(Path(path).parent / str(record["p_table"]))
    if "noise_law" in record and "noise_sd" not in record:
        raise InputError(f"{path}: noise_law says nothing without noise_sd; write both or none")
    return Rules(
        shape,
        sigma=sigma,
        bound=bound,
        base=base,
        random_rounding=by_chance,
        suppressed=_suppression(path, record),
        sticky=None if keys is None else True,
        keys=keys,
    )


def reach_by_chance(rules: Rules, numbers: int, whole: bool) -> tuple[float, str] | None:
    """How far all ``numbers`` of a table are from their counts at most, nearly surely, and that.

    None where the rules bound the noise themselves. The chance that any is further is one in
    ``ONE_IN``, shared out equally.
    """
    if rules.sigma is None:
        return None
    each = 1 / (ONE_IN * numbers)
    if rules.shape is Shape.LAPLACE:
        reach = -rules.sigma / sqrt(2) * log(each)
    else:
        reach = -rules.sigma * float(ndtri(each / 2))
    reach += (rules.base or (1 if whole else 0)) / 2
    return reach, (
        f"all its numbers are within {reach:.3g} of their counts, which 1 of {ONE_IN} such tables "
        "breaks"
    )


def read_p_table(path: Name) -> Perturbation:
    """What a p-table adds: rows of a count and of what its keys can add, as CSV."""
    names, rows = read_table(path)
    for count, added in _P_COLUMNS:
        if count in names and added in names:
            at, what = names.index(count), names.index(added)
            break
    else:
        known = " or ".join(", ".join(pair) for pair in _P_COLUMNS)
        raise InputError(f"{path}: a p-table has the columns {known}; rename its columns")
    pairs = []
    for line, row in rows:
        try:
            pairs.append((int(row[at]), int(row[what])))
        except ValueError:
            raise InputError(f"{path} line {line}: no whole numbers; fix the line") from None
    try:
        return Perturbation.of_table(pairs)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def range_of(path: Name, key: str, text: Any) -> Range:
    """Counts like "1..4"."""
    low, dots, high = str(text).partition("..")
    if not dots or not low.strip().isdecimal() or not high.strip().isdecimal():
        raise InputError(f'{path}: {key} is {text!r}; write the counts like "1..4"')
    return Range(int(low), int(high))


def marks_of(path: Name, record: Any) -> dict[str, Why | Range]:
    """What the marks of a table mean: why a count is not shown, or what it can be."""
    if not isinstance(record, dict):
        raise InputError(f'{path}: marks is no table; write marks = {{ c = "primary" }}')
    words = {why.value: why for why in Why}
    return {
        mark: words[meaning] if meaning in words else range_of(path, f"the mark {mark}", meaning)
        for mark, meaning in record.items()
    }


def _rounding(path: Name, record: Mapping[str, Any]) -> tuple[int | None, bool]:
    base, kind = record.get("rounded_to"), record.get("rounding", "nearest")
    if kind not in ROUNDINGS:
        raise InputError(f"{path}: rounding is {kind!r}; write one of {', '.join(ROUNDINGS)}")
    if base is None:
        if "rounding" in record:
            raise InputError(f"{path}: rounding needs its base; write rounded_to too")
        return None, False
    if not _is_whole(base, 2):
        raise InputError(f"{path}: rounded_to is {base!r}; write a whole number from 2")
    return base, kind != "nearest"


def _suppression(path: Name, record: Mapping[str, Any]) -> Suppression | None:
    if "not_shown_below" not in record:
        text = record.get("suppressed")
        return None if text is None else range_of(path, "suppressed", text)
    if "suppressed" in record:
        raise InputError(f"{path}: suppressed and not_shown_below exclude each other; keep one")
    return Below(_above_0(path, record, "not_shown_below"))


def _law(path: Name, record: Mapping[str, Any]) -> Shape:
    law = record.get("noise_law", "normal")
    if law not in LAWS:
        raise InputError(f"{path}: noise_law is {law!r}; write one of {', '.join(LAWS)}")
    return LAWS[law]


def _above_0(path: Name, record: Mapping[str, Any], key: str) -> float:
    value = record[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise InputError(f"{path}: {key} is {value!r}; write a number above 0")
    return value


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= 10**6
