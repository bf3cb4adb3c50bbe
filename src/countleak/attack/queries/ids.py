"""Ids of people, which are opaque: whole numbers, text, or tuples of both for composite keys."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.errors import InputError

# An id is a whole number, a text, or one of either per column of a composite key.
Id = int | str | tuple[int | str, ...]
LARGEST = 2**63 - 1


def as_id(value: Any) -> Id:
    """The id as a Python value; raises InputError for what is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple) and value and all(_is_simple(part) for part in value):
        return tuple(value)
    if not _is_simple(value):
        raise InputError(f"id {value!r} is neither a whole number nor text; convert it first")
    simple: int | str = value
    return simple


def id_array(ids: Iterable[Any]) -> NDArray[Any]:
    """Ids (n,) as an array: int64 where they fit, text, or Python objects for all else."""
    plain = [as_id(value) for value in ids]
    if all(type(value) is int and abs(value) <= LARGEST for value in plain):
        return np.array(plain, dtype=np.int64)
    if all(type(value) is str for value in plain):
        return np.array(plain, dtype=np.str_)
    if len({_shape(value) for value in plain}) > 1:
        raise InputError(
            "the ids are of different kinds; make all of them whole numbers, or all text"
        )
    array = np.empty(len(plain), dtype=object)
    array[:] = plain
    return array


def are_integers(ids: NDArray[Any]) -> bool:
    """Whether ids are whole numbers of at most 64 bits."""
    return ids.dtype.kind in "iu"


def id_list(ids: NDArray[Any]) -> list[Id]:
    """The ids as Python values, which compare and hash as one expects."""
    return [as_id(value) for value in ids.tolist()]


def positions_of(ids: NDArray[Any], among: NDArray[Any]) -> NDArray[np.int64]:
    """The position (n,) of each of ``ids`` in ``among``; -1 where it is not there."""
    place = {person: at for at, person in enumerate(id_list(among))}
    return np.array([place.get(person, -1) for person in id_list(ids)], dtype=np.int64)


def _is_simple(value: Any) -> bool:
    return type(value) in (int, str)


def _shape(value: Id) -> Sequence[str]:
    return tuple(type(part).__name__ for part in (value if isinstance(value, tuple) else (value,)))
