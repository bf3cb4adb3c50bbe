"""`countleak score`: a guess compared with the truth."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from countleak.attack.guess import Guess
from countleak.attack.guess_file import read_guess
from countleak.attack.queries.ids import positions_of
from countleak.attack.secrets import Bit, Number, Secret, parse_secret
from countleak.audit.people import People
from countleak.audit.report.diagnosis import draw_calibration
from countleak.audit.report.drawing import require_drawing
from countleak.audit.scores import calibration
from countleak.audit.scores import score as score_guess
from countleak.cli import console, options
from countleak.errors import InputError, ShapeError


def score(
    guess: Annotated[
        Path,
        typer.Argument(metavar="GUESS", help="Guess written by `countleak solve`."),
    ],
    who: options.Who,
    secret: Annotated[
        str | None,
        typer.Option(help="The secret to compare with (default: the one that was guessed)."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Numbers: count those within this share of the truth (0.1)."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Bits: draw how often claims of each confidence are right.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Compare a guess with the truth: accuracy, interval, baseline, advantage, calibration."""
    if picture is not None:
        require_drawing(picture)
    guessed, stated = read_guess(guess)
    meant = stated if secret is None else parse_secret(secret)
    if type(meant) is not type(stated):
        raise InputError(f"{guess}: the guess is about {stated}, not about {meant}")
    if tolerance is not None and not isinstance(meant, Number):
        raise InputError(f"--tolerance is for numbers, and {meant} is none; leave it out")
    if picture is not None and (not isinstance(meant, Bit) or guessed.probability is None):
        raise InputError(f"{guess}: there are no probabilities of bits to draw; drop --picture")
    truth = _truth(guess, guessed, who.read(), meant)
    result = score_guess(guessed, truth, tolerance=0.1 if tolerance is None else tolerance)
    record: dict[str, Any] = result.record()
    if isinstance(meant, Bit) and guessed.probability is not None:
        honesty = calibration(guessed.probability, truth)
        record |= {"calibration_error": honesty.error, "brier": honesty.brier}
        if picture is not None:
            draw_calibration(honesty, picture)
            record["picture"] = str(picture)
    if json:
        console.print_json(record)
        return
    console.say(f"{result}{_why_none(guessed)}")
    by_value = record.pop("by_value", None)
    console.print_table([record])
    if by_value:
        console.print_table(by_value)


def _truth(path: Path, guess: Guess, people: People, secret: Secret) -> NDArray[Any]:
    place = positions_of(guess.ids, people.ids)
    if (place < 0).any():
        raise ShapeError(
            f"{path}: guesses about {(place < 0).sum()} people who are not among --people (id "
            f"{guess.ids[place < 0][0]}); check it"
        )
    return np.asarray(people.truth(secret)[place])


def _why_none(guess: Guess) -> str:
    """Why nothing was claimed, where nothing was."""
    status = guess.basis.record().get("status")
    reasons = {
        "infeasible": " The program has no solution.",
        "time_limit": " No solution was found in time.",
    }
    return "" if guess.claimed.any() else reasons.get(str(status), "")
