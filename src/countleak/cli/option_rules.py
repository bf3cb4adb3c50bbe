"""Options as data: groups that verbs share, which option applies to what, and usable numbers.

A group is a frozen dataclass whose fields are options, `Annotated[float, typer.Option(...)]` with
a default; a verb takes the group as one parameter and typer sees its fields.

What applies to what is a table: each option and, for every other choice it depends on, the words
that go with it.

    @needs({"--bound": {"--mechanism": ("uniform",)}, "--salt-file": {"--demo": GIVEN}})
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any, TypeVar, get_args, get_type_hints

import typer

from countleak.errors import InputError

Needs = Mapping[str, Mapping[str, tuple[str, ...]]]
# The other option must be there, whatever it says, or must not be.
GIVEN, ABSENT = ("*",), ()
# Among the words that go with an option: the other one may also be left out.
NOT_GIVEN = ""
# Put beside `typer.Option(...)` in an annotation: NaN and infinities are allowed.
ANY_NUMBER = object()
# What NumPy's whole numbers hold.
LARGEST_WHOLE = 2**63 - 1

T = TypeVar("T")


def needs(table: Needs) -> Callable[[T], T]:
    """Mark a verb, or a group of options, with what its options apply to."""

    def mark(verb_or_group: T) -> T:
        verb_or_group.__needs__ = table  # type: ignore[attr-defined]
        return verb_or_group

    return mark


@dataclass(frozen=True)
class Checks:
    """What is checked of a verb's options before it runs."""

    needs: Needs
    any_number: frozenset[str]

    @classmethod
    def of(cls, verb: Callable[..., None]) -> "Checks":
        """The checks that a verb and its groups declare."""
        table: dict[str, Mapping[str, tuple[str, ...]]] = {}
        for marked in (*_groups(verb).values(), verb):
            for option, others in getattr(marked, "__needs__", {}).items():
                table[option] = {**table.get(option, {}), **others}
        parameters = inspect.signature(expanded(verb)).parameters.values()
        unchecked = (p.name for p in parameters if ANY_NUMBER in get_args(p.annotation))
        return cls(table, frozenset(unchecked))

    def run(self, context: typer.Context) -> None:
        """Raise if an option that was given does not apply, or a number cannot be used."""
        flags = {p.name: _flag(p) for p in context.command.params if p.name in context.params}
        values = {flag: context.params[name] for name, flag in flags.items()}
        for name, flag in flags.items():
            if name not in self.any_number:
                _check_numbers(flag, values[flag])
        check_applies(self.needs, given(context), values)


def given(context: typer.Context, among: Iterable[str] | None = None) -> list[str]:
    """The options that the user wrote, all or those ``among`` some."""
    flags = {_flag(p): p.name for p in context.command.params if p.name in context.params}
    wanted = flags if among is None else [flag for flag in among if flag in flags]
    return [flag for flag in wanted if _is_given(context, str(flags[flag]))]


def check_given(context: typer.Context, table: Needs, values: Mapping[str, Any]) -> None:
    """Raise if an option that the user wrote does not go with ``values`` found out since."""
    check_applies(table, given(context), values)


def check_applies(table: Needs, options: Iterable[str], values: Mapping[str, Any]) -> None:
    """Raise if one of the ``options`` does not go with the ``values`` of the others."""
    for option in options:
        for other, patterns in table.get(option, {}).items():
            words = _words(values.get(other))
            fits = any(fnmatchcase(word, pattern) for word in words for pattern in patterns)
            if (not words and NOT_GIVEN in patterns) or (fits if patterns else not words):
                continue
            wanted = " or ".join(_said(other, p.replace("*", "...")) for p in patterns if p)
            if not patterns:
                raise InputError(f"{option} does not apply with {other}")
            if not words:
                missing = other if patterns == GIVEN else wanted
                raise InputError(f"{option} does not apply without {missing}")
            found = _said(other, ",".join(words))
            raise InputError(f"{option} does not apply to {found}; it needs {wanted}")


def expanded(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with every group of options replaced by its fields, as typer wants to see it."""
    groups = _groups(verb)
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        group = groups.get(parameter.name)
        parameters += [parameter] if group is None else _parameters(group)

    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        verb(**values)

    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    # By keyword only, for then an option without a default may follow one that has one.
    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return call


def sections(verb: Callable[..., None]) -> dict[str, str]:
    """What each option of a group is listed under: the first line of the group's docstring."""
    return {
        field.name: str(group.__doc__).splitlines()[0].rstrip(".")
        for group in _groups(verb).values()
        for field in fields(group)
    }


def _groups(verb: Callable[..., None]) -> dict[str, type]:
    """The groups among a verb's parameters, by name."""
    annotations = {name: p.annotation for name, p in inspect.signature(verb).parameters.items()}
    return {
        name: kind
        for name, kind in annotations.items()
        if isinstance(kind, type) and is_dataclass(kind)
    }


def _parameters(group: type) -> list[inspect.Parameter]:
    kinds = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=kinds[field.name],
        )
        for field in fields(group)
    ]


def _flag(parameter: Any) -> str:
    """A parameter as its user writes it: `--queries`, or the argument's name in capitals."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    return str(next((opt for opt in parameter.opts if opt.startswith("--")), parameter.opts[0]))


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def _words(value: Any) -> list[str]:
    """The words of a choice: those of a list like `dmt,dini-centre`; none where it is off."""
    if value is None or value is False:
        return []
    if isinstance(value, list | tuple):
        return [word for part in value for word in _words(part)]
    return str(value.value if isinstance(value, Enum) else value).split(",")


def _said(option: str, word: str) -> str:
    return f"{option} {word}" if option.startswith("-") else word


def _check_numbers(flag: str, value: Any) -> None:
    for number in value if isinstance(value, list | tuple) else [value]:
        if isinstance(number, float) and not math.isfinite(number):
            raise InputError(f"{flag} is {number}; give a finite number")
        if isinstance(number, int) and abs(number) > LARGEST_WHOLE:
            raise InputError(f"{flag} is {number:.3g}; whole numbers go up to {LARGEST_WHOLE:.3g}")
