"""All that is drawn, as numbers and words for the templates: they only put them into SVG."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log, sqrt

import numpy as np
from numpy.typing import NDArray

from countleak.lab_page.accuracy_map import AccuracyMap
from countleak.lab_page.attacks import KeptAttack, Picture
from countleak.shares import percent

# The side of a person's place in the grid, and the steps of certainty that are told apart.
CELL, STEPS = 10, 5
LONGEST_ROW = 25
# A line chart's width and height.
CHART_WIDTH, CHART_HEIGHT = 300, 90
# The map's own rectangle, between its axes.
MAP_WIDTH, MAP_HEIGHT = 560, 360
SHADES = 10
SD_TICKS = (0.5, 1, 2, 4, 8, 16, 32)
QUESTION_TICKS = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
# A bar of noise: so many people from the middle to its end.
BAR_PEOPLE, BAR_HALF = 8.0, 60.0


@dataclass(frozen=True)
class Person:
    """A person's place in the grid, what is guessed, and how sure that is in steps."""

    x: int
    y: int
    kind: str
    step: int
    wrong: bool = False
    words: str = ""


@dataclass(frozen=True)
class PersonRow:
    """A person in the table under the grid."""

    id: int
    guess: str
    sure: str
    truth: str
    right: bool


@dataclass(frozen=True)
class Grid:
    """The grid of people, its size, and what it shows in words."""

    people: tuple[Person, ...]
    width: int
    height: int
    words: str


def grid(attack: KeptAttack, picture: Picture) -> Grid:
    """The grid of an attack; who is guessed wrong is shown at its end only."""
    count = attack.settings.people
    columns = min(LONGEST_ROW, ceil(sqrt(4 * count) / 5) * 5)
    look = picture.look
    probability = np.full(count, 0.5) if look is None else look.probability
    values = probability >= 0.5
    wrong = np.zeros(count, np.bool_)
    if picture.finished is not None:
        wrong = values != (attack.truth == 1)
    return Grid(
        tuple(_people(probability, wrong, columns)),
        columns * CELL,
        ceil(count / columns) * CELL,
        _grid_in_words(probability, look is None),
    )


def _people(
    probability: NDArray[np.float64], wrong: NDArray[np.bool_], columns: int
) -> Iterator[Person]:
    sure = np.abs(2 * probability - 1)
    steps = np.where(sure == 0, 0, np.clip(np.ceil(STEPS * sure), 1, STEPS)).astype(int)
    for place, (p, step, off) in enumerate(
        zip(probability.tolist(), steps.tolist(), wrong.tolist(), strict=True)
    ):
        row, column = divmod(place, columns)
        kind = "open" if step == 0 else "one" if p >= 0.5 else "zero"
        half = CELL // 2
        yield Person(column * CELL + half, row * CELL + half, kind, step, off)


def _grid_in_words(probability: NDArray[np.float64], is_new: bool) -> str:
    people = probability.size
    if is_new:
        return f"{people} people, about whom nothing is known yet."
    sure = int((np.abs(probability - 0.5) >= 0.4).sum())
    ones = int((probability >= 0.5).sum())
    return (
        f"{people} people: {ones} are guessed to have the secret, {people - ones} not; "
        f"{sure} of these guesses are 90% sure or more."
    )


def rows(attack: KeptAttack, picture: Picture) -> list[PersonRow]:
    """Everyone, with guess and truth, at the end of an attack."""
    if picture.finished is None:
        return []
    columns = picture.finished.record["people"]
    key = next(iter(columns))
    probabilities = columns["probability"]
    truths = attack.truth.tolist()
    return [
        PersonRow(
            person,
            "none" if guess is None else "C" if guess == 1 else "not C",
            "" if p is None else percent(max(p, 1 - p)),
            "C" if truth == 1 else "not C",
            guess == truth,
        )
        for person, guess, p, truth in zip(
            columns[key], columns["guess"], probabilities, truths, strict=True
        )
    ]


@dataclass(frozen=True)
class Curve:
    """How many guesses were right, by answers: a line, its end, and that of guessing.

    The picture reaches from ``least`` people right to all.
    """

    points: str
    x: float
    y: float
    guessing: float
    least: int


def curve(attack: KeptAttack, picture: Picture) -> Curve | None:
    """The curve of an attack so far."""
    if not picture.curve:
        return None
    people, questions = attack.settings.people, attack.settings.questions
    guessing = guessable(attack)
    least = max(0, floor(min(guessing, *(right for _, right in picture.curve)) - people / 20))

    def up(right: float) -> float:
        return round(CHART_HEIGHT * (people - right) / (people - least), 1)

    points = [
        (round(CHART_WIDTH * answered / questions, 1), up(right))
        for answered, right in picture.curve
    ]
    x, y = points[-1]
    return Curve(" ".join(f"{x},{y}" for x, y in points), x, y, up(guessing), least)


def guessable(attack: KeptAttack) -> int:
    """How many are right by guessing everyone the commoner value."""
    ones = int((attack.truth == 1).sum())
    return max(ones, attack.settings.people - ones)


@dataclass(frozen=True)
class Bar:
    """A bar of noise, from the middle to the right or to the left."""

    x: float
    width: float


def bar(noise: float) -> Bar:
    """The bar of so much noise; what is more than the picture holds is cut off."""
    length = min(abs(noise) / BAR_PEOPLE, 1.0) * BAR_HALF
    return Bar(round(BAR_HALF if noise >= 0 else BAR_HALF - length, 1), round(length, 1))


def signed(noise: float) -> str:
    """Noise as it is added, with a sign as in print."""
    sign = "\N{MINUS SIGN}" if noise < 0 else "+"
    return f"{sign}\N{THIN SPACE}{abs(noise):.1f}"


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Patch:
    """A cell of the map, shaded by the advantage there; None where nothing is predicted."""

    x: float
    y: float
    shade: int | None


@dataclass(frozen=True)
class Chart:
    """The map as a picture."""

    patches: tuple[Patch, ...]
    patch_width: float
    patch_height: float
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    limit: str
    x: float
    y: float
    shades: range = range(SHADES + 1)

    @property
    def has_gaps(self) -> bool:
        """Whether nothing is predicted somewhere on the map."""
        return any(patch.shade is None for patch in self.patches)


def chart(found: AccuracyMap) -> Chart:
    """The map as a picture, with the line on which the limit is reached."""
    sds, questions = found.sds, found.questions
    width, height = MAP_WIDTH / len(sds), MAP_HEIGHT / len(questions)
    patches = tuple(
        Patch(
            round(column * width, 2),
            round(MAP_HEIGHT - (row + 1) * height, 2),
            _shade(accuracy, found.baseline),
        )
        for column, accuracies in enumerate(found.accuracies)
        for row, accuracy in enumerate(accuracies)
    )
    scale = _Scale(sds, questions)
    return Chart(
        patches,
        round(width + 0.6, 2),
        round(height + 0.6, 2),
        tuple(Tick(scale.x(sd), f"{sd:g}") for sd in SD_TICKS),
        tuple(Tick(scale.y(count), _short(count)) for count in QUESTION_TICKS),
        _limit(found, scale),
        scale.x(found.settings.sd),
        scale.y(found.settings.questions),
    )


class _Scale:
    """Where a point lies: in the middle of the patch that is computed for it."""

    def __init__(self, sds: Sequence[float], questions: Sequence[int]):
        self._sds, self._questions = sds, questions

    def x(self, sd: float) -> float:
        return round(MAP_WIDTH * _share(sd, self._sds), 1)

    def y(self, questions: float) -> float:
        return round(MAP_HEIGHT * (1 - _share(questions, self._questions)), 1)


def _share(value: float, ends: Sequence[float]) -> float:
    """How far a value lies along a logarithmic axis whose marks are the middles of patches."""
    along = log(value / ends[0]) / log(ends[-1] / ends[0])
    return (0.5 + along * (len(ends) - 1)) / len(ends)


def _shade(accuracy: float | None, baseline: float) -> int | None:
    if accuracy is None:
        return None
    advantage = (accuracy - baseline) / (1 - baseline)
    return round(SHADES * min(max(advantage, 0.0), 1.0))


def _short(count: int) -> str:
    return str(count) if count < 1000 else f"{count // 1000}k"


def _limit(found: AccuracyMap, scale: _Scale) -> str:
    """The points at which the accuracy passes the limit, from left to right."""
    points = []
    for sd, accuracies in zip(found.sds, found.accuracies, strict=True):
        known = [
            (log(count), accuracy)
            for count, accuracy in zip(found.questions, accuracies, strict=True)
            if accuracy is not None
        ]
        for (low, below), (high, above) in pairwise(known):
            if below < found.most_accuracy <= above:
                share = (found.most_accuracy - below) / (above - below)
                count = float(np.exp(low + share * (high - low)))
                points.append(f"{scale.x(sd)},{scale.y(count)}")
                break
    return " ".join(points)
