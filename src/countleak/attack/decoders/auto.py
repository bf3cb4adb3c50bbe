"""The decoder for those who do not want to choose: it diagnoses the system, then picks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.correlation import distinct
from countleak.attack.decoders import TIME_LIMIT, Decoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.decoders.categorical import Categorical
from countleak.attack.decoders.known import Informed
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.messages import Messages
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.decoders.sums import Sums
from countleak.attack.diagnosis import diagnose, tells_noise
from countleak.attack.exact import find_exact
from countleak.attack.guess import Guess, Sampled
from countleak.attack.law import fit_normal
from countleak.attack.noise import Noise, Threshold
from countleak.attack.queries.ids import Id
from countleak.attack.queries.rows import Dense
from countleak.attack.readings import zeros_hidden
from countleak.attack.rules import Rules, in_words, inferred_in_words
from countleak.attack.secrets import Category, Number, Secret
from countleak.attack.transcript import Transcript
from countleak.progress import Progress, silent

# More released answers than this, or so many times people, are decoded by a program: there are
# enough for that to be good, and sampling would take many minutes.
MOST_SAMPLED, MOST_ENTRIES = 10_000, 3_000_000
# Messages are passed among so many people or more: their law is that of many.
FEWEST_PASSED = 300
# People up to whom least squares with a standard error each take seconds.
MOST_SQUARES = 3000
# Noise with a larger kurtosis has wild answers among usual ones (normal: 3, Laplace: 6).
HEAVY = 8.0
# What rounding to whole people leaves at least.
LEAST_SD = 0.3
# The paper's program fits clearly better if it leaves this share of the residuals, or less.
CLEARLY = 0.9


@dataclass(frozen=True)
class AutoDecoder:
    """Decode as the diagnosis of the answers advises; the guess says what was picked and why.

    What ``rules`` state of the system is used as it is. Proofs take ``time_limit`` seconds at most.
    """

    prior: float | None = None
    known: Mapping[Id, int] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    time_limit: float = TIME_LIMIT
    seed: int = 0
    progress: Progress = field(default=silent, repr=False)

    def decode(self, transcript: Transcript) -> Guess:
        """Diagnose, pick, decode."""
        self.rules.check(transcript)
        asked = zeros_hidden(transcript, self.rules)
        released = int(asked.released.sum())
        if released > MOST_SAMPLED or released * asked.ids.size > MOST_ENTRIES:
            return self._decode_many(asked)
        # What a system repeats of itself says nothing new.
        transcript = distinct(asked, self.rules.sticky)
        decoder, why = self.pick(asked)
        guess = decoder.decode(transcript)
        if not guess.claimed.any() and isinstance(decoder, Bounded) and not decoder.stated:
            # The bound was read off the answers; where it allows nothing it was misread.
            why = f"{why}, it seemed, but no bits keep to that"
            decoder = self._bayes(Noise(threshold=_default_threshold(transcript)))
            guess = decoder.decode(transcript)
        if guess.basis.misfit:
            guess = _without_a_model(transcript, guess)
        limits = self.rules.limits()
        if limits is not None and self.rules.shape is None and self.time_limit:
            # A bound was stated without a law: it proves people, whatever the law was read as.
            proofs = Bounded(limits, True, self.time_limit, progress=self.progress, seed=self.seed)
            guess = proofs.applied(transcript, guess)
        return self._labelled(guess, decoder.noise, why)

    def _decode_many(self, transcript: Transcript) -> Guess:
        """The guess by message passing; where that does not settle, by ``_decode_few_people``."""
        released = transcript.where(transcript.released)
        if isinstance(released.queries.rows, Dense):
            # What a system repeats of itself says nothing new.
            released = distinct(released, self.rules.sticky)
        passing = Messages(self.prior, self.rules, self.progress)
        guess = Informed(passing, self.known).decode(released)
        few = transcript.ids.size < FEWEST_PASSED
        if few or (guess.basis.misfit and transcript.ids.size <= MOST_SQUARES):
            return self._decode_few_people(transcript, released, guess.basis.misfit)
        why = f"of {len(transcript)} answers about {transcript.ids.size} people, more than are "
        why += "sampled from, message passing takes all in"
        return self._labelled(guess, guess.basis.noise or Noise(), why)

    def _decode_few_people(
        self, transcript: Transcript, released: Transcript, misfit: str
    ) -> Guess:
        """The guess by least squares, or by the paper's program where many answers are far off.

        More answers than the sampler takes in are enough for either; what is hidden is left out.
        Neither gives a probability where messages found a ``misfit``.
        """
        guess = Informed(LeastSquares(), self.known).decode(released)
        off = released.residuals(guess.values.astype(np.float64))
        why = f"of {len(transcript)} answers, more than are sampled from, "
        spread = max(float(off.std()), LEAST_SD)
        if float(((off - off.mean()) ** 4).mean()) / spread**4 > HEAVY:
            why += "some are far off: the paper's program"
            guess = Informed(Rounding(), self.known).decode(released)
        else:
            why += "none is far off: least squares, which is cautious about how sure it is"
        if misfit:
            guess = replace(guess, probability=None, basis=replace(guess.basis, misfit=misfit))
        return self._labelled(guess, Noise(spread), why)

    def _labelled(self, guess: Guess, noise: Noise, why: str) -> Guess:
        """The guess with what it rests on: what was stated, and what of ``noise`` was inferred."""
        size = None
        if isinstance(guess.basis, Sampled) and guess.basis.sigma:
            size = sum(guess.basis.sigma) / len(guess.basis.sigma)
        inferred = inferred_in_words(noise, self.rules, size)
        basis = replace(
            guess.basis,
            picked_because=why,
            stated=self.rules.words,
            inferred=inferred,
            noise=noise,
        )
        return replace(guess, basis=basis)

    def pick(self, transcript: Transcript) -> tuple[Bounded | Bayes, str]:
        """The decoder for these answers, and the reason in words."""
        kept = distinct(transcript, self.rules.sticky)
        exact = None
        if not self.known:
            exact = find_exact(kept, self.rules, self.time_limit, self.seed, self.progress)
        if exact is not None:
            decoder, why = self._bounded(exact[0])
            return replace(decoder, solution=exact[1]), why
        stated = self.rules.noise()
        if stated.reach is not None and (kept.released.all() or self.rules.suppressed is not None):
            # All that bounds the counts is stated: there is nothing to diagnose.
            return self._bounded(stated)
        if not tells_noise(kept):
            return self._with_few(kept)
        diagnosis = diagnose(transcript, self.rules, seed=self.seed, progress=self.progress)
        if diagnosis.noise.reach is not None:
            return self._bounded(diagnosis.noise)
        bayes = self._bayes(diagnosis.noise)
        return replace(bayes, starts=diagnosis.starts), "; ".join(diagnosis.reasons)

    def _with_few(self, transcript: Transcript) -> tuple[Bounded | Bayes, str]:
        """The decoder where answers are too few to diagnose the noise."""
        noise = self.rules.limits() or self.rules.noise()
        if noise.threshold is None and not transcript.released.all():
            rng = np.random.default_rng([self.seed, 6])
            reading = fit_normal(transcript, self.rules, rng, self.progress)
            noise = replace(noise, threshold=reading.noise.threshold)
        if noise.reach is not None:
            return self._bounded(noise)
        if self.rules.shape is not None:
            return self._bayes(noise), f"{noise.shape.value} noise, as stated"
        return self._bayes(noise), "too few answers to diagnose the noise: taken for normal"

    def _bounded(self, noise: Noise) -> tuple[Bounded, str]:
        stated = self.rules.state(noise)
        why = f"{in_words(noise)}, {'as stated' if stated else 'by the answers'}"
        decoder = Bounded(
            noise, stated, self.time_limit, self.prior, self.known, self.seed,
            progress=self.progress,
        )  # fmt: skip
        return decoder, why

    def _bayes(self, noise: Noise) -> Bayes:
        return Bayes(noise, self.prior, self.known, seed=self.seed, progress=self.progress)


def decoder_for(
    secret: Secret,
    seed: int = 0,
    rules: Rules | None = None,
    *,
    time_limit: float = TIME_LIMIT,
    progress: Progress = silent,
) -> Decoder:
    """The decoder to use for a secret where nobody names one; ``rules`` it cannot use raise."""
    rules = rules or Rules()
    if isinstance(secret, Category):
        return Categorical(rules=rules, time_limit=time_limit, seed=seed, progress=progress)
    if isinstance(secret, Number):
        rules.require_only("a number", ("sigma",))
        return Sums(sigma=rules.sigma)
    return AutoDecoder(rules=rules, time_limit=time_limit, seed=seed, progress=progress)


def _without_a_model(transcript: Transcript, guess: Guess) -> Guess:
    """The guess of the paper's program, which knows of no noise, if it clearly fits better."""
    if not transcript.b.size:
        return guess
    program = Rounding().decode(transcript)

    def left(values: NDArray[Any]) -> float:
        return float(np.abs(transcript.b - transcript.A @ values.astype(np.float64)).sum())

    if not program.claimed.all() or left(program.values) > CLEARLY * left(guess.values):
        return guess
    return replace(program, margin=None, basis=replace(program.basis, misfit=guess.basis.misfit))


def _default_threshold(transcript: Transcript) -> Threshold | None:
    return None if transcript.released.all() else Threshold()
