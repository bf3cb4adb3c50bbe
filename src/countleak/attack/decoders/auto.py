"""The decoder for those who do not want to choose: it diagnoses the system, then picks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from countleak.attack.decoders import Decoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.decoders.categorical import Categorical
from countleak.attack.decoders.known import Informed
from countleak.attack.decoders.sums import Sums
from countleak.attack.diagnosis import ENOUGH, Diagnosis, diagnose
from countleak.attack.guess import Guess
from countleak.attack.noise import UNKNOWN, Noise, Shape, Threshold
from countleak.attack.queries import Queries
from countleak.attack.queries.ids import Id
from countleak.attack.secrets import Category, Number, Secret
from countleak.attack.transcript import Transcript

# A threshold's mean, this many SDs up: no suppressed count is larger.
SURELY = 4.0


@dataclass(frozen=True)
class AutoDecoder:
    """Decode as the diagnosis of the answers advises; the guess says what was picked and why."""

    prior: float | None = None
    known: Mapping[Id, int] = field(default_factory=dict)
    prove: bool = True
    seed: int = 0

    def decode(self, transcript: Transcript) -> Guess:
        """Diagnose, pick, decode."""
        decoder, why = self.pick(transcript)
        guess = self._informed(decoder).decode(transcript)
        if not guess.claimed.any() and isinstance(decoder, Bounded):
            # The bound was read off the answers; where it allows nothing it was misread.
            why = "the noise looked bounded, but no bits keep to the bound"
            guess = self._informed(self._plain()).decode(transcript)
        return replace(guess, basis=replace(guess.basis, picked_because=why))

    def pick(self, transcript: Transcript) -> tuple[Decoder, str]:
        """The decoder for these answers, and the reason in words."""
        released = transcript.released
        if released.sum() < ENOUGH * transcript.ids.size:
            some = None if released.all() else Threshold()
            return self._plain(threshold=some), "too few answers to diagnose the noise"
        return self._advised(transcript.queries, diagnose(transcript, seed=self.seed))

    def _advised(self, queries: Queries, diagnosis: Diagnosis) -> tuple[Decoder, str]:
        if diagnosis.bound is not None:
            limit = diagnosis.threshold
            most = None if limit is None else max(limit.minimum, limit.mean + SURELY * limit.sd)
            law = f"rounding to {diagnosis.base}" if diagnosis.base else "uniform noise"
            return (
                Bounded(diagnosis.bound, most, prove=self.prove),
                f"{law}: no answer is further than {diagnosis.bound:g} from its count",
            )
        groups = None if diagnosis.by is None else queries.groups_by(diagnosis.by)
        # Where all is Gaussian the sampler weighs by itself whether there is an offset.
        plain = not diagnosis.wrong and diagnosis.threshold is None and diagnosis.floor is None
        may_be_off = diagnosis.has_offset or (plain and diagnosis.shape is Shape.GAUSSIAN)
        noise = Noise(
            UNKNOWN,
            UNKNOWN if may_be_off else 0.0,
            UNKNOWN if diagnosis.wrong else 0.0,
            groups,
            diagnosis.shape,
            diagnosis.floor,
            diagnosis.threshold,
        )
        decoder = Bayes(noise, self.prior, seed=self.seed, starts=diagnosis.starts)
        return decoder, "; ".join(_reasons(diagnosis))

    def _informed(self, decoder: Decoder) -> Decoder:
        return Informed(decoder, self.known) if self.known else decoder

    def _plain(self, threshold: Threshold | None = None) -> Bayes:
        return Bayes(Noise(threshold=threshold), self.prior, seed=self.seed)


def decoder_for(secret: Secret, seed: int = 0) -> Decoder:
    """The decoder to use for a secret where nobody names one."""
    if isinstance(secret, Category):
        return Categorical(seed=seed)
    return Sums() if isinstance(secret, Number) else AutoDecoder(seed=seed)


def _reasons(diagnosis: Diagnosis) -> list[str]:
    """What of a diagnosis decided how to decode, in words."""
    reasons = [f"{diagnosis.shape.value} noise of SD {diagnosis.sigma:.2f}"]
    if diagnosis.by is not None:
        odd = ", ".join(f"{group.value:g}" for group in diagnosis.odd)
        reasons.append(f"noise differs by {diagnosis.by}" + (f" (odd: {odd})" if odd else ""))
    if diagnosis.wrong:
        reasons.append(f"{diagnosis.wrong:.1%} of the answers grossly wrong")
    if diagnosis.has_offset:
        reasons.append(f"all answers off by {diagnosis.offset:+.2f}")
    if diagnosis.threshold is not None:
        reasons.append(f"counts below about {diagnosis.threshold.mean:g} suppressed")
    return reasons
