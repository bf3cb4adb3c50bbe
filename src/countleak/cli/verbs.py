"""Verbs by name: each is loaded when it is wanted, and listed without being loaded."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from countleak.cli import option_rules

# The module a verb is in, under its own name, and the first line of its help.
Table = Mapping[str, tuple[str, str]]
# The verbs that are listed together, under what they are for.
Sections = Mapping[str, Sequence[str]]


class Verb(TyperCommand):
    """A command that checks its options before it runs."""

    checks: option_rules.Checks
    sections: Mapping[str, str]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the verb's own options, and then those of each group it takes."""
        parts: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and parameter.param_type_name == "argument":
                # The name says enough; what Python calls its type does not help.
                name = parameter.metavar or str(parameter.name).upper()
                parts["Arguments"].append((name, _in_words(record[1])))
            elif record is not None:
                title = self.sections.get(str(parameter.name), "Options")
                name, text = record
                parts.setdefault(title, []).append((name.replace(" range>", ">"), _in_words(text)))
        for title, records in parts.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The arguments as their names in capitals, in brackets where they may be left out."""
        pieces = super().collect_usage_pieces(ctx)
        # `[OPTIONS] {TARGET} [file]` reads as if the braces were typed.
        return [re.sub(r"[{}]", "", piece).upper() for piece in pieces]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        self.checks.run(ctx)
        return rest


class Group(TyperGroup):
    """Verbs under a name, listed from their table."""

    table: Table
    listed: Sections

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.table)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in self.listed.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.table[name][1]) for name in names])


class Loaded(Mapping[str, Any]):
    """The commands of a table, each made when it is first asked for."""

    def __init__(self, table: Table):
        """Load nothing yet."""
        self._table = table
        self._commands: dict[str, TyperCommand | TyperGroup] = {}

    def __getitem__(self, name: str) -> TyperCommand | TyperGroup:
        if name not in self._commands:
            module, _ = self._table[name]
            member = getattr(import_module(module), name.replace("-", "_"))
            self._commands[name] = member if isinstance(member, Group) else make_verb(member, name)
        return self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def make_verb(function: Callable[..., None], name: str) -> Verb:
    """The command that calls a function, with its options checked."""
    app = _typer()
    app.command(name, cls=Verb)(option_rules.expanded(function))
    command = get_command(app)
    assert isinstance(command, Verb)
    command.checks = option_rules.Checks.of(function)
    command.sections = option_rules.sections(function)
    return command


def make_group(
    name: str,
    about: str,
    table: Table,
    callback: Callable[..., None] | None = None,
    listed: Sections | None = None,
) -> Group:
    """The verbs of a table under one name; without a verb it shows its help.

    They are ``listed`` by what they are for, where that is said.
    """
    app = _typer(name=name, help=about, cls=Group, invoke_without_command=True)
    app.callback()(callback or show_help)
    group = get_command(app)
    assert isinstance(group, Group)
    group.table, group.commands = table, Loaded(table)  # type: ignore[assignment]
    group.listed = listed or {"Commands": tuple(table)}
    return group


def show_help(context: typer.Context) -> None:
    """Print the help of a group that was called without a verb."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _typer(**settings: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **settings
    )


def _in_words(text: str) -> str:
    """The help of an option with the range of its number as one would say it."""
    # That a seed or a time is not negative goes without saying.
    text = re.sub(r"; x>=0(\.0)?(?=[;\]])", "", text)
    text = re.sub(r"([\d.]+)<=x<=([\d.]+)(?=[;\]])", r"\1 to \2", text)
    return re.sub(r"x>=([\d.]+)(?=[;\]])", r"at least \1", text)
