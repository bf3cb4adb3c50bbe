"""What the user states of a system: the options that `solve`, `audit` and `diagnose` share.

They describe the system that gave the answers, whatever it is. Those of a simulated system
(`--sigma`, `--bound`, `--base`) say what the simulation does, and tell no decoder of it.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from countleak.attack.noise import Range, Shape, Threshold
from countleak.attack.rules import Rules
from countleak.cli.option_rules import ABSENT, GIVEN, NOT_GIVEN, Needs, needs
from countleak.errors import InputError

# Options that bound the counts, which bits can be proven from.
BOUNDING = ("--exact", "--noise-within", "--rounded-to", "--rounded-by-chance")
RULE_OPTIONS = (*BOUNDING, "--noise", "--noise-sd", "--suppressed", "--lowest", "--sticky")
# The noise of numbers has an SD, and nothing else is known of it.
RULES_BY_SECRET: Needs = {
    option: {"the secret": ("a bit", "a category")}
    for option in RULE_OPTIONS
    if option != "--noise-sd"
}


@needs(
    {
        "--noise": {"--exact": ABSENT},
        "--noise-sd": {"--exact": ABSENT, "--noise": ("gaussian", "laplace", NOT_GIVEN)},
        "--noise-within": {
            "--exact": ABSENT,
            "--noise-sd": ABSENT,
            "--noise": ("uniform", NOT_GIVEN),
        },
        "--rounded-by-chance": {"--rounded-to": GIVEN, "--noise-sd": ABSENT},
    }
)
@dataclass(frozen=True)
class StatedRules:
    """What you state of the system; the rest is inferred."""

    exact: Annotated[
        bool,
        typer.Option("--exact", help="No noise is added: a count is answered as it is."),
    ] = False
    noise: Annotated[
        Literal["gaussian", "laplace", "uniform"] | None,
        typer.Option(help="The law of the noise that is added."),
    ] = None
    noise_sd: Annotated[
        float | None,
        typer.Option(help="The noise has this standard deviation (gaussian, unless laplace)."),
    ] = None
    noise_within: Annotated[
        float | None, typer.Option(help="The noise is never larger than this.")
    ] = None
    rounded_to: Annotated[
        int | None, typer.Option(help="Answers are rounded to multiples of this.")
    ] = None
    rounded_by_chance: Annotated[
        bool,
        typer.Option(
            "--rounded-by-chance",
            help="... up or down by chance, right on average.",
        ),
    ] = False
    suppressed: Annotated[
        str | None,
        typer.Option(
            metavar="LOW..HIGH",
            help="These counts are not answered, and all others are: 1..2 (zeros are shown), 0..4 "
            '(zeros are not), or "below about 4" (Diffix draws the limit).',
        ),
    ] = None
    lowest: Annotated[
        float | None, typer.Option(help="Lower answers are raised to this, like 0.")
    ] = None
    sticky: Annotated[
        bool | None,
        typer.Option(
            "--sticky/--fresh", help="A question asked again gets the same answer, or fresh noise."
        ),
    ] = None

    def rules(self) -> Rules:
        """What is stated, as an object."""
        shape = Shape.EXACT if self.exact else None if self.noise is None else Shape(self.noise)
        if shape is Shape.UNIFORM and self.noise_within is None:
            raise InputError("--noise uniform needs its bound; write --noise-within 2")
        return Rules(
            shape,
            self.noise_sd,
            self.noise_within,
            self.rounded_to,
            self.rounded_by_chance,
            None if self.suppressed is None else _suppressed_from(self.suppressed),
            self.lowest,
            self.sticky,
        )


def _suppressed_from(text: str) -> Range | Threshold:
    """What is suppressed, as it is written: 1..2, or below about 4."""
    if match := re.fullmatch(r"\s*([0-9]{1,9})\s*\.\.\s*([0-9]{1,9})\s*", text):
        return Range(int(match[1]), int(match[2]))
    if match := re.fullmatch(r"\s*below\s+about\s+([0-9]{1,9}(?:\.[0-9]+)?)\s*", text):
        return Threshold(float(match[1]))
    raise InputError(
        f"--suppressed {text!r} cannot be read; write the lowest and the highest count that is "
        'not answered, like 1..2, or "below about 4"'
    )
