"""The decoder for noise with a hard bound: whatever breaks the bound is impossible.

Exact answers, uniform noise within ± e and rounding to a base say of every count that it lies in
an interval. Someone is proven where no bits at all with the other value fit every interval
(``solvers.integer``). The posterior of the others, by the law of the noise, is that of all bits
that fit, where these can be listed (``posterior.enumeration``); else it is sampled. A proof
overrules a sample.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from countleak.attack.check import check_fit
from countleak.attack.decoders import TIME_LIMIT
from countleak.attack.decoders.known import known_bits
from countleak.attack.guess import Guess, WithinBound
from countleak.attack.noise import Noise, Values
from countleak.attack.posterior.enumeration import Enumerated, enumerate_bits
from countleak.attack.posterior.evidence import Evidence, gather
from countleak.attack.posterior.fit import (
    Known,
    Starts,
    fit_secrets,
    quick_starts,
    sensible_effort,
    start_bits,
)
from countleak.attack.posterior.sampling import Effort, Posterior
from countleak.attack.posterior.secret_draws import Bits
from countleak.attack.queries.ids import Id
from countleak.attack.rules import count_intervals, in_words
from countleak.attack.solvers.integer import WholeSolution, WholeStatus, solve_whole
from countleak.attack.solvers.intervals import CountIntervals
from countleak.attack.solvers.search import best_engine
from countleak.attack.transcript import Transcript
from countleak.errors import InputError
from countleak.progress import Progress, silent

# Exact counts are searched for as long as there is time. Where intervals are wide a search proves
# someone soon or never: it is given up after so many seconds without success.
PATIENCE = 4.0
# The sampler tries again from other places where nothing that it saw fits, so often at most.
ATTEMPTS = 3
# A system with more entries than this is not listed.
LARGEST = 20_000_000


@dataclass(frozen=True, eq=False)
class Bounded:
    """Probabilities under the bounded law ``noise``, and proofs of what no other value fits.

    The law is ``stated`` by whoever runs the system, or was inferred: what follows from it is then
    implied, not proven. Proofs stop after ``time_limit`` seconds; nobody is proven with 0. A
    ``solution`` that was found before is not searched for again. The other fields are those of
    ``Bayes``.
    """

    noise: Noise
    stated: bool = True
    time_limit: float = TIME_LIMIT
    prior: float | None = None
    known: Mapping[Id, int] = field(default_factory=dict)
    seed: int = 0
    starts: Starts = ()
    progress: Progress = field(default=silent, repr=False)
    solution: WholeSolution | None = None

    def __post_init__(self) -> None:
        if self.noise.reach is None:
            raise InputError(f"{self.noise.shape.value} noise has no bound; decode it as bayes")
        if self.prior is not None and not 0 < self.prior < 1:
            raise InputError(f"the prior rate is {self.prior:g}; it lies between 0 and 1")

    def decode(self, transcript: Transcript) -> Guess:
        """Prove what can be proven, list or sample the rest; a proof overrules a sample."""
        evidence = gather(transcript, self.noise)
        if not self.time_limit:
            starts = self.starts or quick_starts(transcript, self.noise)
            posterior = self._sample(transcript, evidence, self._known(transcript, None), starts)
            return self._guess(transcript, posterior, None)
        intervals = self._intervals(transcript)
        starts = self.starts
        solution = self.solution
        if solution is None:
            if self.noise.reach:
                starts = starts or quick_starts(transcript, self.noise)
            solution = self._prove(intervals, starts)
        if solution.status is WholeStatus.INFEASIBLE or solution.unique:
            return self._guess(transcript, None, solution)
        listed = self._list(transcript, evidence, intervals, solution)
        if listed is not None and (listed.complete or not listed.feasible):
            return self._guess(transcript, listed, _settled(solution, listed))
        seen = tuple(x.astype(np.float64) for x in solution.seen)
        starts = seen or starts or quick_starts(transcript, self.noise)
        known = self._known(transcript, solution)
        posterior = self._fit(transcript, evidence, intervals, known, starts)
        if solution.undecided.any() and self.noise.reach:
            samples = np.array([sample.x for sample in posterior.samples], np.int8)
            solution = self._search(intervals, samples, solution)
        misfit = check_fit(transcript, evidence, posterior, self.seed).misfit
        if listed is not None:
            probability = np.where(listed.people, listed.probability, posterior.probability)
            posterior = replace(posterior, probability=probability)
        guess = self._guess(transcript, posterior, solution)
        if not misfit:
            return guess
        basis = replace(guess.basis, misfit=misfit)
        return replace(guess, probability=None, margin=None, basis=basis)

    def applied(self, transcript: Transcript, guess: Guess) -> Guess:
        """A guess with what the bound proves, whatever law of the noise the guess rests on."""
        solution = self._search(
            self._intervals(transcript), guess.values.astype(np.int8)[None, :], None
        )
        if solution.status is WholeStatus.INFEASIBLE:
            return self._guess(transcript, None, solution)
        proven = solution.proven & (solution.status is WholeStatus.SOLVED)
        values = np.where(proven, solution.box.lower, guess.values)
        probability = guess.probability
        if probability is not None:
            probability = np.where(proven, solution.box.lower, _open(probability))
        basis = replace(guess.basis, assuming="")
        return replace(guess, values=values, probability=probability, forced=proven, basis=basis)

    def _intervals(self, transcript: Transcript) -> CountIntervals:
        """What every count lies in, and every known bit."""
        intervals = count_intervals(transcript, self.noise)
        assert intervals is not None
        people, bits = known_bits(transcript.ids, self.known)
        if not people.any():
            return intervals
        rows = np.eye(people.size, dtype=np.int8)[people]
        return CountIntervals(
            np.vstack([intervals.A, rows]),
            np.append(intervals.low, bits[people]),
            np.append(intervals.high, bits[people]),
        )

    def _prove(self, intervals: CountIntervals, starts: Starts) -> WholeSolution:
        """All that can be proven of exact counts; without a search where intervals are wide."""
        witnesses = np.array([start_bits(start) for start in starts], np.int8)
        return solve_whole(
            intervals,
            time_limit=self.time_limit,
            witnesses=witnesses if len(witnesses) else None,
            engine=best_engine(patience=0.0 if self.noise.reach else inf),
            progress=self.progress,
            seed=self.seed,
        )

    def _search(
        self, intervals: CountIntervals, samples: NDArray[np.int8], before: WholeSolution | None
    ) -> WholeSolution:
        """What a search adds, which starts at samples: those that fit show who is free."""
        return solve_whole(
            intervals,
            time_limit=max(self.time_limit - (before.seconds if before else 0.0), 0.1),
            witnesses=samples,
            before=before,
            engine=best_engine(patience=PATIENCE),
            progress=self.progress,
            seed=self.seed,
        )

    def _list(
        self,
        transcript: Transcript,
        evidence: Evidence,
        intervals: CountIntervals,
        solution: WholeSolution,
    ) -> Enumerated | None:
        """Everything that fits, as far as it can be listed."""
        if intervals.A.size + evidence.said.size * evidence.n > LARGEST:
            return None
        # Within a bound all groups of answers have the noise that is given, or one each.
        groups = int(evidence.group_of.max(initial=0)) + 1
        sigma = np.broadcast_to(np.asarray(self.noise.sigma, np.float64), groups)
        values = Values(sigma, np.zeros(1), 0.0)
        people = known_bits(transcript.ids, self.known)[0]
        return enumerate_bits(
            intervals, evidence, values, solution.box, prior=self.prior, known=people
        )

    def _known(self, transcript: Transcript, solution: WholeSolution | None) -> Known:
        """Bits that need not be drawn: those known beforehand, and those proven."""
        people, bits = known_bits(transcript.ids, self.known)
        if solution is None:
            return Known(people, bits)
        proven = solution.proven & ~people
        bits = np.where(proven, solution.box.lower, bits)
        return Known(people | proven, bits, alike=proven)

    def _fit(
        self,
        transcript: Transcript,
        evidence: Evidence,
        intervals: CountIntervals,
        known: Known,
        starts: Starts,
    ) -> Posterior:
        """Samples, again with more effort while none of them fits: those are not of the posterior.

        What fits is where the next attempt starts.
        """
        effort = sensible_effort(len(transcript), evidence.n)
        for attempt in range(ATTEMPTS):
            posterior = self._sample(transcript, evidence, known, starts, effort, attempt)
            bits = np.unique([sample.x for sample in posterior.samples], axis=0)
            fits = intervals.holds(bits)
            if fits.any() and posterior.settled:
                break
            starts = (*(x.astype(np.float64) for x in bits[fits][:2]), *starts)
            effort = replace(effort, replicas=max(effort.replicas, 8), seconds=10.0)
        return posterior

    def _sample(
        self,
        transcript: Transcript,
        evidence: Evidence,
        known: Known,
        starts: Starts,
        effort: Effort | None = None,
        attempt: int = 0,
    ) -> Posterior:
        return fit_secrets(
            transcript,
            evidence,
            np.random.default_rng([self.seed, 5, attempt]),
            kind=Bits(self.prior, known.seen),
            known=known,
            effort=effort,
            starts=starts,
            progress=self.progress,
        )

    def _guess(
        self,
        transcript: Transcript,
        found: Posterior | Enumerated | None,
        solution: WholeSolution | None,
    ) -> Guess:
        """The guess with what was proven; nobody is claimed where no bits fit."""
        n = transcript.ids.size
        probability = np.full(n, 0.5) if found is None else found.probability
        proven = np.zeros(n, np.bool_)
        if solution is not None:
            # Without bits that fit the rules might be wrong, and prove nothing.
            proven = solution.proven & (solution.status is WholeStatus.SOLVED)
            probability = np.where(proven, solution.box.lower, _open(probability))
        basis = WithinBound(
            decoder="bounded",
            known=len(self.known),
            bound=self.noise.reach or 0.0,
            forced=int(proven.sum()),
            exact=found is None or isinstance(found, Enumerated),
            prior=_rate(found),
            assuming="" if self.stated else in_words(self.noise),
            stated=(in_words(self.noise),) if self.stated else (),
            proofs="not looked for" if solution is None else _told(solution),
        )
        if isinstance(found, Posterior):
            basis = replace(basis, disagreement=found.disagreement, doubt=found.doubt or None)
        if solution is not None and solution.status is WholeStatus.INFEASIBLE:
            nobody = np.zeros(n, np.bool_)
            return Guess(transcript.ids, nobody.astype(np.int8), nobody, basis)
        return Guess(
            transcript.ids,
            (probability >= 0.5).astype(np.int8),
            np.ones(n, np.bool_),
            basis,
            margin=2 * np.abs(probability - 0.5),
            probability=probability,
            forced=proven,
        )


def _settled(solution: WholeSolution, listed: Enumerated) -> WholeSolution:
    """The solution with what the list of all that fits decides of those left undecided."""
    forced: NDArray[np.bool_] = ~np.all(listed.possible, axis=1)
    box = solution.box.fix(forced, listed.possible[:, 1].astype(np.int8))
    nobody = np.zeros(forced.size, np.bool_)
    status = WholeStatus.SOLVED if listed.feasible else WholeStatus.INFEASIBLE
    if not listed.feasible:
        forced = nobody
    engines = (*solution.engines, "a list of all that fits")
    return replace(
        solution, status=status, proven=forced, undecided=nobody, box=box, engines=engines
    )


def _rate(found: Posterior | Enumerated | None) -> float | None:
    if found is None:
        return None
    return found.rate if isinstance(found, Enumerated) else float(found.rates[0])


def _open(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of those not proven: a sample that never differed is no proof."""
    return np.clip(probability, 1e-6, 1 - 1e-6)


def _told(solution: WholeSolution) -> str:
    """How the search for proofs ended."""
    told = solution.engine
    if solution.status is not WholeStatus.SOLVED:
        told += f"; {solution.status.value}"
    if solution.trouble:
        told += f"; {solution.trouble}"
    undecided = int(solution.undecided.sum())
    if solution.status is WholeStatus.SOLVED and undecided:
        told += f"; stopped after {solution.seconds:.0f} s with {undecided} people undecided"
    return told
