"""What a visitor may choose, within bounds, as the library's own objects.

Every choice raises ``InputError`` where it is out of bounds, in words for a page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Self

from countleak.attack.secrets import Bit
from countleak.audit.people import People, generated_bank
from countleak.audit.targets import Target
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    Simulated,
    SimulatedDiffix,
    Uniform,
)
from countleak.diffix.salt import Salt
from countleak.errors import InputError
from countleak.progress import Progress

if TYPE_CHECKING:
    from countleak.attack.decoders import Decoder

BANK_SEED = 7
SECRET = Bit("status = 'C'")
# A secret that everyone can read, so that the lab answers the same every day.
SALT = Salt(b"salt of the lab")
MOST_PEOPLE, MOST_QUESTIONS, LARGEST_SEED = 400, 3500, 9999
LONGEST_QUESTION = 2000
LEAST_SD, MOST_SD = 0.5, 50.0
RELEASES = {
    "18.1": "18.1, as it was attacked",
    "18.3": "18.3, the vendor's fix",
    "paper": "one layer per condition, as the paper tells it",
    "tables": "tables only, like today's successor",
}
# Of people by a system that is simulated, or by a release of Diffix itself.
NOISES = {
    "18.1": "the rebuilt Diffix 18.1",
    "18.3": "the rebuilt Diffix 18.3",
    "paper": "the rebuilt Diffix, one layer per condition",
    "gaussian": "normal noise",
    "laplace": "Laplace noise",
    "rounded": "Diffix, simulated",
    "uniform": "whole numbers within a bound",
    "base": "counts rounded to a base",
}
DIFFIX = ("18.1", "18.3", "paper")
WITH_SD = ("gaussian", "laplace", "rounded")
DECODERS = {
    "auto": "automatic, by its diagnosis",
    "lp": "the paper's linear program",
    "ls": "least squares",
}


@cache
def bank() -> People:
    """The generated people of the lab."""
    return generated_bank(seed=BANK_SEED)


def people_of(count: int) -> People:
    """The first so many of the bank's people."""
    ids = bank().ids
    return bank().between(int(ids[0]), int(ids[count - 1]))


@dataclass(frozen=True)
class AttackSettings:
    """An attack, as a visitor chose it; ``size`` is the SD, the bound or the base of the noise.

    Asked ``slowly`` a person can follow it; nothing else about it is different.
    """

    people: int = 100
    questions: int = 2500
    noise: str = "rounded"
    size: float = 4.0
    decoder: str = "auto"
    seed: int = 7
    slowly: bool = False

    def __post_init__(self) -> None:
        within("people", self.people, 10, MOST_PEOPLE)
        within("questions", self.questions, 20, MOST_QUESTIONS)
        within("seed", self.seed, 0, LARGEST_SEED)
        among("noise", self.noise, NOISES)
        among("decoder", self.decoder, DECODERS)
        within("the size of the noise", self.size, LEAST_SD, MOST_SD)
        if self.noise in ("uniform", "base") and not self.size.is_integer():
            raise InputError(f"{self.size:g} is no whole number; a bound or a base is one")
        # Whatever the mechanism itself does not take, such as a base of 1.
        self.mechanism()

    @classmethod
    def of_form(cls, form: Mapping[str, str]) -> Self:
        """The settings that a form sends; what it leaves out stays as it is."""
        known = {field.name: field for field in fields(cls)}
        given = {name: text for name, text in form.items() if name in known}
        values: dict[str, object] = dict(given)
        for name in ("people", "questions", "seed"):
            if name in given:
                values[name] = whole(name, given[name])
        if "size" in given:
            values["size"] = number("the size of the noise", given["size"])
        values["slowly"] = given.get("slowly") == "yes"
        return cls(**values)  # type: ignore[arg-type]

    def mechanism(self) -> Mechanism | None:
        """What simulates the noise; None where the rebuilt Diffix answers itself."""
        match self.noise:
            case "gaussian":
                return Gaussian(self.size)
            case "laplace":
                return Laplace(self.size)
            case "rounded":
                return SimulatedDiffix(self.size)
            case "uniform":
                return Uniform(int(self.size))
            case "base":
                return RoundedToBase(int(self.size))
        return None

    def target(self, people: People) -> Target:
        """The system that is attacked."""
        mechanism = self.mechanism()
        if mechanism is not None:
            return Simulated(people, SECRET, mechanism, self.seed)
        from countleak.audit.targets.diffix import Diffix

        return Diffix(people, SECRET, self.noise, Salt(self.salt.encode()))

    @property
    def salt(self) -> str:
        """The secret of the Diffix that is attacked."""
        return f"salt of attack {self.seed}"

    def chosen_decoder(self, progress: Progress) -> "Decoder":
        """The decoder, which tells ``progress`` where it takes long."""
        if self.decoder == "lp":
            from countleak.attack.decoders.rounding import Rounding

            return Rounding()
        if self.decoder == "ls":
            from countleak.attack.decoders.least_squares import LeastSquares

            return LeastSquares()
        from countleak.attack.decoders.auto import decoder_for

        return decoder_for(SECRET, self.seed, progress=progress)

    @property
    def system_in_words(self) -> str:
        """The system that is attacked, for a sentence."""
        size = f"{self.size:g}"
        match self.noise:
            case "uniform":
                return f"a simulated system with whole-number noise within ±{size}"
            case "base":
                return f"a simulated system that rounds to multiples of {size}"
            case "18.1" | "18.3" | "paper":
                return NOISES[self.noise]
            case "rounded":
                return f"a simulation of Diffix with noise of SD {size}"
        return f"a simulated system with {NOISES[self.noise]}, SD {size}"

    @property
    def in_python(self) -> str:
        """The same attack as a program."""
        made = {
            "gaussian": f"cl.Gaussian({self.size!r})",
            "laplace": f"cl.Laplace({self.size!r})",
            "rounded": f"cl.SimulatedDiffix({self.size!r})",
            "uniform": f"cl.Uniform({int(self.size)})",
            "base": f"cl.RoundedToBase({int(self.size)})",
        }
        last = int(bank().ids[self.people - 1])
        lines = [
            "import countleak as cl",
            "",
            f"bank = cl.generated_bank(seed={BANK_SEED})",
            f"people = bank.between({int(bank().ids[0])}, {last})",
            f'secret = cl.Bit("{SECRET}")',
        ]
        if self.noise in DIFFIX:
            lines.insert(1, "from countleak.diffix.salt import Salt")
            lines.append(
                f'system = cl.Diffix(people, secret, "{self.noise}", Salt(b"{self.salt}"))',
            )
        else:
            made_of = f"people, secret, {made[self.noise]}, seed={self.seed}"
            lines.append(f"system = cl.Simulated({made_of})")
        chosen = {"lp": "cl.decoders.Rounding()", "ls": "cl.decoders.LeastSquares()"}
        lines += [
            "result = cl.audit(",
            "    people,",
            "    secret=secret,",
            "    target=system,",
            f"    queries={self.questions},",
            f"    asking=cl.Asking(seed={self.seed}),",
            *([f"    decoder={chosen[self.decoder]},"] if self.decoder in chosen else []),
            ")",
            "print(result)",
        ]
        return "\n".join(lines)


def whole(name: str, text: str) -> int:
    """A whole number that was typed."""
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{name} is {_quoted(text)}; write a whole number") from None


def number(name: str, text: str) -> float:
    """A number that was typed."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name} is {_quoted(text)}; write a number") from None


def within(name: str, value: float, least: float, most: float) -> None:
    """Raise unless a value lies within its bounds; a number that is none does not."""
    if not least <= value <= most:
        raise InputError(f"{name}: {value:g} is out of bounds; choose from {least:g} to {most:g}")


def among(name: str, word: str, words: Mapping[str, str]) -> None:
    """Raise unless a word is one of those there are."""
    if word not in words:
        raise InputError(f"{name}: there is no {_quoted(word)}; choose {', '.join(words)}")


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 30 else f"{text[:30]}...")
