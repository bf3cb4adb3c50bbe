"""The decoder for those who do not want to choose: it diagnoses the system, then picks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from countleak.attack.decoders import Decoder, Guess
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.decoders.known import Informed
from countleak.attack.diagnosis import ENOUGH, Diagnosis, diagnose
from countleak.attack.noise import Noise, Shape, Threshold
from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers

# A threshold's mean, this many SDs up: no suppressed count is larger.
SURELY = 4.0


@dataclass(frozen=True)
class Automatic:
    """Decode as the diagnosis of the answers advises; the guess says what was picked and why."""

    prior: float | None = None
    known: Mapping[int, int] = field(default_factory=dict)
    prove: bool = True
    seed: int = 0

    def decode(self, queries: Queries, answers: Answers) -> Guess:
        """Diagnose, pick, decode."""
        decoder, why = self.pick(queries, answers)
        guess = Informed(decoder, self.known).decode(queries, answers)
        if not guess.claimed.any() and isinstance(decoder, Bounded):
            # The bound was read off the answers; where it allows nothing it was misread.
            decoder, why = self._plain(), "the noise looked bounded, but no bits keep to the bound"
            guess = Informed(decoder, self.known).decode(queries, answers)
        return replace(guess, basis={**guess.basis, "picked_because": why})

    def pick(self, queries: Queries, answers: Answers) -> tuple[Decoder, str]:
        """The decoder for these answers, and the reason in words."""
        if answers.released.sum() < ENOUGH * queries.ids.size:
            some = None if answers.released.all() else Threshold()
            return self._plain(threshold=some), "too few answers to diagnose the noise"
        return self._advised(queries, diagnose(queries, answers, seed=self.seed))

    def _advised(self, queries: Queries, found: Diagnosis) -> tuple[Decoder, str]:
        if found.bound is not None:
            limit = found.threshold
            most = None if limit is None else max(limit.minimum, limit.mean + SURELY * limit.sd)
            law = f"rounding to {found.base}" if found.base else "uniform noise"
            return (
                Bounded(found.bound, most, prove=self.prove),
                f"{law}: no answer is further than {found.bound:g} from its count",
            )
        reasons = [f"{found.shape.value} noise of SD {found.sigma:.2f}"]
        groups = None
        if found.by is not None:
            groups = queries.groups_by(found.by)
            odd = ", ".join(f"{group.value:g}" for group in found.odd)
            reasons.append(f"noise differs by {found.by}" + (f" (odd: {odd})" if odd else ""))
        if found.wrong:
            reasons.append(f"{found.wrong:.1%} of the answers grossly wrong")
        if found.has_offset:
            reasons.append(f"all answers off by {found.offset:+.2f}")
        if found.threshold is not None:
            reasons.append(f"counts below about {found.threshold.mean:g} suppressed")
        # Where all is Gaussian the sampler weighs by itself whether there is an offset.
        plain = not found.wrong and found.threshold is None and found.floor is None
        may_be_off = found.has_offset or (plain and found.shape is Shape.GAUSSIAN)
        noise = Noise(
            None,
            None if may_be_off else 0.0,
            None if found.wrong else 0.0,
            groups,
            found.shape,
            found.floor,
            found.threshold,
        )
        return Bayes(noise, self.prior, seed=self.seed), "; ".join(reasons)

    def _plain(self, threshold: Threshold | None = None) -> Bayes:
        noise = Noise(None, 0.0, 0.0, None, Shape.GAUSSIAN, None, threshold)
        return Bayes(noise, self.prior, seed=self.seed)
