"""Decoders: from everything asked and answered to a guess of every secret, one file each."""

from typing import Protocol

from countleak.attack.guess import Guess
from countleak.attack.transcript import Transcript
from countleak.lazy import lazy_names

# Seconds that a decoder may take for proofs unless told.
TIME_LIMIT = 30.0


class Decoder(Protocol):
    """Anything that turns a transcript into a Guess."""

    def decode(self, transcript: Transcript) -> Guess:
        """Guess every secret; suppressed answers are there to be used."""
        ...


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AutoDecoder": f"{__name__}.auto",
        "Bayes": f"{__name__}.bayes",
        "Bounded": f"{__name__}.bounded",
        "Categorical": f"{__name__}.categorical",
        "Informed": f"{__name__}.known",
        "LeastSquares": f"{__name__}.least_squares",
        "Messages": f"{__name__}.messages",
        "Polished": f"{__name__}.polish",
        "Robust": f"{__name__}.robust",
        "Rounding": f"{__name__}.rounding",
        "Sums": f"{__name__}.sums",
    },
)
