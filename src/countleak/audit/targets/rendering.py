"""Statements about many queries, quickly: what they have in common is rendered once.

Building and writing a tree takes half a millisecond, and more with the ids that it lists. So one
statement is rendered with marks in the place of what differs, and the marks are replaced. The
first real one is rendered both ways; where they differ, trees are built for all.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from countleak.attack.queries import Queries
from countleak.attack.queries.ids import id_list

if TYPE_CHECKING:
    from countleak.audit.targets.sql import SqlQuestions

# What stands for a number or a text that differs; no table, column or value is likely to hold it.
NUMBER, TEXT = 987_654_321_000, "z987654321000z"


class Statements:
    """The SQL of queries by position."""

    def __init__(self, questions: "SqlQuestions", queries: Queries):
        """Render nothing yet."""
        self._questions, self._queries = questions, queries
        self._shapes: dict[int, Callable[[int], str] | None] = {}
        self._literal = cache(self._written)
        self._ids: list[str] = []

    def at(self, position: int) -> str:
        """The statement at a position."""
        value, row = divmod(position, len(self._queries))
        if value not in self._shapes:
            slowly = self._questions.statement(self._queries, position)
            shape = self._shape(value)
            self._shapes[value] = shape if shape is not None and shape(row) == slowly else None
            return slowly
        shape = self._shapes[value]
        if shape is None or (self._ids and not self._queries.members(row).size):
            return self._questions.statement(self._queries, position)
        return shape(row)

    def _shape(self, value: int) -> Callable[[int], str] | None:
        """What writes the statements about a value; None where trees have to be built."""
        family = self._queries.family
        if family.name == "subsets":
            return self._listing(value)
        if family.needs and not family.texts:
            return self._filled(value)
        return None

    def _listing(self, value: int) -> Callable[[int], str] | None:
        """Statements that differ in the ids they list."""
        ids = id_list(self._queries.ids)
        kind = type(ids[0])
        if kind is tuple or (kind is str and self._questions.template is not None):
            return None
        mark: Any = NUMBER if kind is int else TEXT
        fake = Queries(np.array([mark]), np.ones((1, 1), np.int8), self._queries.family)
        before, found, after = self._questions.statement(fake, value).partition(self._literal(mark))
        if not found:
            return None
        self._ids = self._ids or [self._written(person) for person in ids]

        def write(row: int) -> str:
            members = self._queries.members(row).tolist()
            return before + ", ".join([self._ids[at] for at in members]) + after

        return write

    def _filled(self, value: int) -> Callable[[int], str] | None:
        """Statements that differ in numbers."""
        needs, parameters = self._queries.family.needs, self._queries.parameters
        marks = {
            # Fractions are written with theirs, so that no mark is a part of another.
            name: np.array([NUMBER + 10 * at + (parameters[name].dtype.kind == "f") / 8])
            for at, name in enumerate(needs)
        }
        marks = {name: mark.astype(parameters[name].dtype) for name, mark in marks.items()}
        fake = replace(self._queries.take(np.array([0])), parameters=marks)
        text = self._questions.statement(fake, value)
        words = {name: self._literal(mark[0].item()) for name, mark in marks.items()}
        if not all(word in text for word in words.values()):
            return None

        def write(row: int) -> str:
            filled = text
            for name, word in words.items():
                filled = filled.replace(word, self._literal(parameters[name][row].item()))
            return filled

        return write

    def _written(self, value: Any) -> str:
        from sqlglot import exp

        return exp.convert(value).sql(dialect=self._questions.dialect)
