"""What an attacker concludes about everyone, and what that rests on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import Noise
from countleak.attack.programs import Certificate, Solution
from countleak.errors import InputError, ShapeError

# How far the expected share of right values may be off for systems that differ from every model:
# what `python -m benchmarks.honesty` allows.
MODEL_DOUBT = 0.02


# What of a basis is told in words: the fields of Basis that are text.
WORDS = ("picked_because", "stated", "inferred", "assuming", "misfit")


@dataclass(frozen=True, kw_only=True)
class Basis:
    """What a guess rests on, whichever ``decoder`` made it.

    ``known`` people were known beforehand; ``picked_because`` is why the decoder was picked, where
    nobody named one; ``polish`` how a search for the likeliest bits ended, where there was one.
    ``stated`` are the rules of the system that were stated, ``inferred`` those that were read off
    the answers, each in words. ``assuming`` is what was inferred of that bounds the counts;
    ``misfit`` is why the model does not fit the answers, where it does not. ``noise`` is the law
    that was stated or inferred, where there is one.
    """

    decoder: str
    known: int = 0
    picked_because: str = ""
    stated: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()
    assuming: str = ""
    misfit: str = ""
    polish: "Polish | None" = None
    solution: Solution | None = None
    certificate: Certificate | None = None
    noise: Noise | None = field(default=None, compare=False, repr=False)

    def record(self) -> dict[str, Any]:
        """All of it as plain fields, in the order a reader wants them; what is absent is left out.

        Solver, status and effort of a program come first, then its certificate.
        """
        solved: dict[str, Any] = {}
        if self.solution is not None:
            solved = {
                "solver": self.solution.solver,
                "status": self.solution.status.name.lower(),
                "iterations": self.solution.iterations,
                "seconds": round(self.solution.seconds, 6),
            }
            if self.solution.point is not None:
                solved["point"] = self.solution.point.value
        if self.certificate is not None:
            parts = asdict(self.certificate)
            solved["certificate"] = {
                "kind": type(self.certificate).__name__,
                **{k: v for k, v in parts.items() if not isinstance(v, float) or isfinite(v)},
            }
        words = {name: _plain(getattr(self, name)) for name in WORDS}
        skipped = {"solution", "certificate", "noise", "polish", "known", "decoder", *words}
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in skipped}
        return {
            **solved,
            "decoder": self.decoder,
            **{name: _plain(value) for name, value in own.items() if value is not None},
            **({"known": self.known} if self.known else {}),
            **(asdict(self.polish) if self.polish is not None else {}),
            **{name: text for name, text in words.items() if text},
        }


@dataclass(frozen=True)
class Polish:
    """How the descent to bits of least squared error ended.

    ``polished_bits`` changed; no bits have fewer ``squares`` than ``squares_at_least``; ``optimal``
    says whether these are proven to be the least.
    """

    polished_bits: int
    squares: float
    squares_at_least: float
    optimal: str


@dataclass(frozen=True, kw_only=True)
class Squares(Basis):
    """A least-squares fit: its noise, its standard error per person, and how near the optimum."""

    sigma: float
    mean_standard_error: float
    squares: float
    gap: float
    iterations: int


@dataclass(frozen=True, kw_only=True)
class Sampled(Basis):
    """Samples from the posterior: the noise found, and how far independent chains differ.

    ``doubt`` says in words that they differ too much to be believed as they are, and what was done
    about it. ``prior`` is the share of ones; a secret of several values has ``rates`` of each, and
    ``answers`` and an ``offset`` about each. ``groups`` names the parameter by which noise
    differed.
    """

    sigma: tuple[float, ...]
    offset: float | Mapping[str, float]
    disagreement: float
    wrong_answers: float | None = None
    prior: float | None = None
    rates: Mapping[str, float] | None = None
    answers: Mapping[str, int] | None = None
    groups: str | None = None
    doubt: str | None = None


@dataclass(frozen=True, kw_only=True)
class Passing(Basis):
    """Message passing: the noise's ``law`` and ``sigma``, and the share of ones, ``prior``.

    After ``rounds`` every bit was seen through normal noise of SD ``tau``. Queries count a share
    ``density`` of the people; ``computed`` says where products with them were.
    """

    law: str
    sigma: float
    prior: float
    density: float
    tau: float
    rounds: int
    computed: str = "on the processor"


@dataclass(frozen=True, kw_only=True)
class WithinBound(Basis):
    """Samples inside bounds: no answer is further than ``bound`` from its count.

    Of ``forced`` people no other value fits; ``proofs`` says how that was found. Probabilities are
    ``exact`` where all that fits was listed, and else come from samples; ``doubt`` is as in
    ``Sampled``.
    """

    bound: float
    forced: int
    exact: bool = False
    doubt: str | None = None
    disagreement: float = 0.0
    prior: float | None = None
    proofs: str = ""


@dataclass(frozen=True, kw_only=True)
class Summed(Basis):
    """A fit of numbers with this ``mean`` and ``sd`` to ``answers`` sums of noise ``sigma``.

    All were off by ``offset``, and a share of ``wrong_answers`` was left out, where there were any.
    """

    answers: int
    sigma: float
    mean: float
    sd: float
    bounds: tuple[float, float]
    offset: float | None = None
    wrong_answers: float | None = None


@dataclass(frozen=True, kw_only=True)
class FromFile(Basis):
    """What a file says that its guess rests on, word for word."""

    fields_of_file: Mapping[str, Any]

    def record(self) -> dict[str, Any]:
        return dict(self.fields_of_file)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Where numbers lie: with probability ``level`` between ``low`` (n,) and ``high`` (n,).

    ``error`` (n,) are standard errors, all in the units of the answers.
    """

    error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    level: float = 0.95


@dataclass(frozen=True, eq=False)
class Guess:
    """A guess about n people: ``values`` (n,) for those ``claimed`` (n,), the others mean nothing.

    Values are bits, names (one of ``names``) or numbers, as the secret is. ``probability`` is that
    of a 1 (n,), or of each name (n, k), where the decoder knows it; ``margin`` (n,) in [0, 1] says
    how far a rounded solution was from undecided and is no probability; numbers have
    ``intervals``. ``forced`` (n,) marks those for whom no other value fits the answers: ``proven``
    under what is stated of the system, ``implied`` if what was inferred of it is right. Nobody is
    claimed when a program had no solution or none was found in time.
    """

    ids: NDArray[Any]
    values: NDArray[Any]
    claimed: NDArray[np.bool_]
    basis: Basis
    margin: NDArray[np.float64] | None = None
    probability: NDArray[np.float64] | None = None
    names: tuple[str, ...] = ()
    intervals: Intervals | None = None
    forced: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    def __post_init__(self) -> None:
        if self.values.dtype.kind == "i":
            # Bits of one byte would overflow when they are summed up to a count.
            object.__setattr__(self, "values", self.values.astype(np.int64))
        if not self.forced.size:
            object.__setattr__(self, "forced", np.zeros(self.ids.size, np.bool_))
        n = self.ids.size
        for name in ("values", "claimed", "margin", "forced"):
            held = getattr(self, name)
            if held is not None and held.shape != (n,):
                raise ShapeError(f"{n} ids but {held.size} {name}")
        shape = (n, len(self.names)) if self.names else (n,)
        if self.probability is not None and self.probability.shape != shape:
            raise ShapeError(f"{shape} probabilities expected, not {self.probability.shape}")

    def __repr__(self) -> str:
        return (
            f"<guess about {int(self.claimed.sum())} of {self.ids.size} people, "
            f"{int(self.proven.sum())} proven, {int(self.implied.sum())} implied, by "
            f"{self.basis.decoder}>"
        )

    @property
    def proven(self) -> NDArray[np.bool_]:
        """For whom (n,) no other value fits the answers under the rules that are stated."""
        return self.forced & (bool(self.basis.stated) and not self.basis.assuming)

    @property
    def implied(self) -> NDArray[np.bool_]:
        """For whom (n,) no other value fits the answers if what ``basis.assuming`` says is true."""
        return self.forced & ~self.proven

    @property
    def confidence(self) -> NDArray[np.float64] | None:
        """The probability (n,) that each value is right, where the decoder knows it."""
        if self.probability is None:
            return None
        if not self.names:
            return np.where(self.values == 1, self.probability, 1 - self.probability)
        column = np.array([self.names.index(value) for value in self.values.tolist()])
        return np.asarray(self.probability[np.arange(self.ids.size), column])

    @property
    def expected_right(self) -> float | None:
        """The share of right values to expect about everyone, by the decoder's probabilities.

        Missing where it gives none, unless no other values fit.
        """
        if self.confidence is not None:
            return float(self.confidence.mean())
        return 1.0 if self.forced.all() else None

    @property
    def expected_interval(self) -> tuple[float, float] | None:
        """Where the share of right values should lie, with 95% probability, the model in doubt.

        Chance alone, how far the sampler's chains disagree, and MODEL_DOUBT add up; the last is
        left out where everyone is proven.
        """
        confidence, expected = self.confidence, self.expected_right
        if expected is None or self.proven.all():
            return None if expected is None else (1.0, 1.0)
        doubt = MODEL_DOUBT + float(getattr(self.basis, "disagreement", 0.0))
        if confidence is not None:
            doubt += 1.96 * float(np.sqrt((confidence * (1 - confidence)).sum())) / confidence.size
        return max(expected - doubt, 0.0), min(expected + doubt, 1.0)

    def claims_at(self, precision: float) -> "Guess":
        """The same guess with claims about those only whose value is at least that probable."""
        if self.confidence is None:
            raise InputError("this decoder gives no probabilities; decode with `auto` or `bayes`")
        least = 0.0 if self.names else 0.5
        if not (least <= precision < 1 and precision > 0):
            raise InputError(f"the precision is {precision:g}; choose one from {least} to below 1")
        return replace(self, claimed=self.claimed & (self.confidence >= precision))

    def about(self, name: str) -> "Guess":
        """The guess about one value of several: who has it and who does not."""
        if name not in self.names or self.probability is None:
            raise InputError(f"there is no value {name!r}; choose {', '.join(self.names)}")
        return bits_from(self.ids, self.probability[:, self.names.index(name)], self.basis)


def bits_from(
    ids: NDArray[Any],
    probability: NDArray[np.float64],
    basis: Basis,
) -> Guess:
    """The guess that probabilities (n,) of a 1 lead to: the likelier value of everyone."""
    return Guess(
        ids,
        (probability >= 0.5).astype(np.int8),
        np.ones(ids.size, np.bool_),
        basis,
        margin=2 * np.abs(probability - 0.5),
        probability=probability,
    )


def names_from(
    ids: NDArray[Any], names: tuple[str, ...], probability: NDArray[np.float64], basis: Basis
) -> Guess:
    """The guess that probabilities (n, k) of each name lead to: the likeliest of everyone."""
    values = np.array(names)[probability.argmax(axis=1)]
    claimed = np.ones(ids.size, np.bool_)
    return Guess(ids, values, claimed, basis, probability=probability, names=names)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
