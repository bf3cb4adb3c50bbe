"""The categorical decoder: one value of several for everyone, all values at once.

A loan's status is A, B, C or D, and a system that counts may be asked about each. Decoded one by
one, a person may end up with two values or with none. Decoded together every answer about one
value speaks about the others too, since each person has exactly one: the posterior is over values,
not bits. All else is as for bits: the noise is diagnosed from the answers, and where it has a bound
people are proven.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.check import check_fit
from countleak.attack.correlation import distinct
from countleak.attack.decoders import TIME_LIMIT
from countleak.attack.decoders.known import known_values
from countleak.attack.diagnosis import diagnose, tells_noise
from countleak.attack.exact import find_exact
from countleak.attack.guess import Guess, Sampled, WithinBound, names_from
from countleak.attack.noise import UNKNOWN, Noise, Threshold
from countleak.attack.posterior.evidence import Evidence, gather
from countleak.attack.posterior.fit import Known, Starts, fit_secrets
from countleak.attack.posterior.sampling import Effort, Posterior
from countleak.attack.posterior.secret_draws import OneOf
from countleak.attack.queries.ids import Id
from countleak.attack.readings import lowest_answer
from countleak.attack.rules import Rules, count_intervals, in_words, inferred_in_words
from countleak.attack.solvers.integer import WholeSolution, WholeStatus, solve_whole
from countleak.attack.solvers.intervals import CountIntervals
from countleak.attack.transcript import Transcript
from countleak.errors import InputError
from countleak.progress import Progress, silent

# A sample that never differed is no proof: nobody else is surer than this.
SUREST = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class Model:
    """The noise to decode under, and ``why``; what bounds it is ``stated`` or was inferred.

    ``starts`` and a ``solution`` are kept where they were found on the way.
    """

    noise: Noise
    why: str = ""
    stated: bool = True
    starts: Starts = ()
    solution: WholeSolution | None = None


@dataclass(frozen=True)
class Categorical:
    """Posterior probabilities of all values together.

    ``noise`` is that of the answers; unless given, it is what ``rules`` state, and the rest is
    diagnosed. ``rates`` are the shares of the values, estimated unless given; ``known`` maps ids to
    values known beforehand. Drawing takes ``seed``; ``effort`` says how long, by the size of the
    task if not given. Where noise is bounded, proofs take ``time_limit`` seconds at most; nobody is
    proven with 0. Rounds of sampling are reported to ``progress``.
    """

    noise: Noise | None = None
    rates: Mapping[str, float] | None = None
    known: Mapping[Id, str] = field(default_factory=dict)
    effort: Effort | None = None
    seed: int = 0
    rules: Rules = field(default_factory=Rules)
    time_limit: float = TIME_LIMIT
    progress: Progress = field(default=silent, repr=False, compare=False)

    def decode(self, transcript: Transcript) -> Guess:
        """Guess everyone's value from the answers about each."""
        if len(transcript.names) < 2:
            raise InputError(
                f"{len(transcript.names)} values; the secret must be one of two or more"
            )
        known = self._known(transcript.ids, transcript.names)
        rates = self._rates(transcript.names)
        self.rules.check(transcript)
        # What a system repeats of itself says nothing new.
        model, transcript = self.pick(transcript), distinct(transcript, self.rules.sticky)
        if model.noise.reach is None:
            return self._sampled(transcript, model, known, rates)
        return self._within_bounds(transcript, model, known, rates)

    def pick(self, transcript: Transcript) -> Model:
        """The noise that these answers have."""
        kept = distinct(transcript, self.rules.sticky)
        stated = self.rules.limits() or self.rules.noise()
        if self.noise is not None:
            return Model(self.noise)
        if stated.reach is not None:
            return Model(stated, f"{in_words(stated)}, as stated", self.rules.state(stated))
        exact = None
        if not self.known:
            exact = find_exact(kept, self.rules, self.time_limit, self.seed, self.progress)
        if exact is not None:
            noise, solution = exact
            why = f"{in_words(noise)}, by the answers"
            return Model(noise, why, self.rules.state(noise), solution=solution)
        if not tells_noise(kept):
            why = "too few answers to diagnose the noise: taken for normal"
            return Model(assumed_noise(kept, stated), why)
        diagnosis = diagnose(transcript, self.rules, seed=self.seed, progress=self.progress)
        if diagnosis.noise.reach is not None:
            why = f"{in_words(diagnosis.noise)}, by the answers"
            return Model(diagnosis.noise, why, self.rules.state(diagnosis.noise), diagnosis.starts)
        return Model(diagnosis.noise, "; ".join(diagnosis.reasons), starts=diagnosis.starts)

    def _sampled(
        self, transcript: Transcript, model: Model, known: Known, rates: tuple[float, ...] | None
    ) -> Guess:
        """The guess of samples; where the model does not fit, it is less sure, or not at all."""
        evidence, posterior = self._posterior(transcript, model, known, rates)
        names, check = transcript.names, check_fit(transcript, evidence, posterior, self.seed)
        asked = np.bincount(transcript.about, minlength=len(names)).tolist()
        basis = Sampled(
            decoder="categorical",
            known=len(self.known),
            answers={name: m for name, m in zip(names, asked, strict=True) if m},
            sigma=tuple(posterior.values.sigma.tolist()),
            offset=dict(zip(names, posterior.values.offsets.tolist(), strict=True)),
            wrong_answers=posterior.values.wrong or None,
            rates=dict(zip(names, posterior.rates.tolist(), strict=True)),
            disagreement=posterior.disagreement,
            doubt="; ".join(filter(None, (posterior.doubt, check.doubt))) or None,
            picked_because=model.why,
            stated=self.rules.words,
            inferred=inferred_in_words(
                model.noise, self.rules, float(posterior.values.sigma.mean())
            ),
            misfit=check.misfit,
            noise=model.noise,
        )
        is_known = np.isin(transcript.ids, list(self.known))
        shares = check.applied(_shares(posterior, len(names)), is_known)
        guess = names_from(transcript.ids, names, shares, basis)
        return replace(guess, probability=None) if check.misfit else guess

    def _within_bounds(
        self, transcript: Transcript, model: Model, known: Known, rates: tuple[float, ...] | None
    ) -> Guess:
        """The guess of samples within the bounds, which whatever is proven overrules."""
        k, solution = transcript.blocks, model.solution
        if solution is None and model.noise.reach == 0 and self.time_limit:
            # Exact counts are found by search, and sampled only where they leave a choice.
            solution = self._prove(transcript, model.noise, known, None)
        shares, disagreement = np.full((transcript.ids.size, k), 1 / k), 0.0
        settled = solution is not None and (
            solution.unique or solution.status is WholeStatus.INFEASIBLE
        )
        if not settled:
            starts = model.starts
            if solution is not None and solution.x is not None:
                known, starts = _proven(known, solution, k), (solution.x.astype(np.float64),)
            posterior = self._posterior(transcript, replace(model, starts=starts), known, rates)[1]
            shares, disagreement = _shares(posterior, k), posterior.disagreement
            if solution is None and self.time_limit:
                solution = self._prove(transcript, model.noise, known, posterior)
        return self._concluded(transcript, model, shares, disagreement, solution)

    def _posterior(
        self, transcript: Transcript, model: Model, known: Known, rates: tuple[float, ...] | None
    ) -> tuple[Evidence, Posterior]:
        evidence = gather(transcript, model.noise)
        posterior = fit_secrets(
            transcript,
            evidence,
            np.random.default_rng([self.seed, 4]),
            kind=OneOf(transcript.blocks, rates),
            known=known,
            effort=self.effort,
            starts=model.starts,
            progress=self.progress,
        )
        return evidence, posterior

    def _prove(
        self, transcript: Transcript, noise: Noise, known: Known, posterior: Posterior | None
    ) -> WholeSolution:
        """Bits within the bounds, and whose are the same in all such bits."""
        intervals = count_intervals(transcript, noise)
        assert intervals is not None
        kind = OneOf(transcript.blocks)
        fixed = np.tile(known.people, kind.count)
        if fixed.any():
            bits = kind.bits_of(known.value)[fixed]
            intervals = CountIntervals(
                np.vstack([intervals.A, np.eye(fixed.size, dtype=np.int8)[fixed]]),
                np.append(intervals.low, bits),
                np.append(intervals.high, bits),
            )
        witnesses = None
        if posterior is not None:
            rounded = kind.rounded(posterior.probability)
            samples = [sample.x for sample in posterior.samples]
            witnesses = np.array([rounded, *samples], np.int8)
        return solve_whole(
            intervals,
            time_limit=self.time_limit,
            witnesses=witnesses,
            progress=self.progress,
            seed=self.seed,
        )

    def _concluded(
        self,
        transcript: Transcript,
        model: Model,
        shares: NDArray[np.float64],
        disagreement: float,
        solution: WholeSolution | None,
    ) -> Guess:
        """The guess with what was proven; nobody is claimed where no values fit."""
        names, n = transcript.names, transcript.ids.size
        forced = np.zeros(n, np.bool_)
        fits = solution is None or solution.status is not WholeStatus.INFEASIBLE
        if solution is not None and solution.x is not None:
            has, value = _decided(solution, len(names))
            forced = has
            sure = np.clip(shares, (1 - SUREST) / len(names), SUREST)
            sure /= sure.sum(axis=1, keepdims=True)
            shares = np.where(has[:, None], np.eye(len(names))[value], sure)
        assert model.noise.reach is not None
        basis = WithinBound(
            decoder="categorical",
            known=len(self.known),
            bound=model.noise.reach,
            forced=int(forced.sum()),
            disagreement=disagreement,
            assuming="" if model.stated else in_words(model.noise),
            proofs="not looked for" if solution is None else solution.told,
            picked_because=model.why,
            stated=self.rules.words,
            inferred=inferred_in_words(model.noise, self.rules, None),
            noise=model.noise,
        )
        guess = names_from(transcript.ids, names, shares, basis)
        if not fits:
            return replace(guess, claimed=np.zeros(n, np.bool_), probability=None)
        return replace(guess, forced=forced)

    def _known(self, ids: NDArray[Any], names: tuple[str, ...]) -> Known:
        for person, name in self.known.items():
            if name not in names:
                raise InputError(
                    f"the known value of {person} is {name!r}; it must be one of {', '.join(names)}"
                )
        positions = {person: names.index(name) for person, name in self.known.items()}
        return Known(*known_values(ids, positions, np.int64))

    def _rates(self, names: tuple[str, ...]) -> tuple[float, ...] | None:
        if self.rates is None:
            return None
        if set(self.rates) != set(names) or not all(rate > 0 for rate in self.rates.values()):
            raise InputError(
                f"rates of {', '.join(self.rates)}; give {', '.join(names)} one above 0"
            )
        total = sum(self.rates.values())
        return tuple(self.rates[name] / total for name in names)


def assumed_noise(transcript: Transcript, stated: Noise | None = None) -> Noise:
    """The noise to believe in where answers are few: as ``stated``, with what is seen of the rest.

    Where noise is Gaussian through and through there may be an offset, and errors per person.
    """
    noise = stated or Noise()
    if noise.floor is None and transcript.b.size:
        noise = replace(noise, floor=lowest_answer(transcript.b))
    if noise.threshold is None and not transcript.released.all():
        noise = replace(noise, threshold=Threshold())
    plain = noise.floor is None and noise.threshold is None and noise.base == 1
    return replace(noise, offset=UNKNOWN, per_person=UNKNOWN) if plain else noise


def _shares(posterior: Posterior, k: int) -> NDArray[np.float64]:
    """Everyone's probability (n, k) of each value."""
    shares = posterior.probability.reshape(k, -1).T
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _decided(solution: WholeSolution, k: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Whose value (n,) is the same in all solutions, and everyone's value in one."""
    assert solution.x is not None
    x, proven = solution.x.reshape(k, -1), solution.proven.reshape(k, -1)
    return ((x == 1) & proven).any(axis=0), x.argmax(axis=0)


def _proven(known: Known, solution: WholeSolution, k: int) -> Known:
    """What is known once it is proven as well: the sampler need not find it again."""
    has, value = _decided(solution, k)
    return Known(known.people | has, np.where(known.people, known.value, value))
