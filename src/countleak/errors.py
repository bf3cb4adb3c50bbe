"""The errors countleak raises.

* CountleakError
  + InputError      a file, a flag or a value is not what it should be
  + ShapeError      two arrays that must agree on people or on queries do not
  + TargetError     the target refused, timed out, or answered something that is not a count
    - Refused       the query system does not answer this question; the text says why
    - NoCount       what came back can be no count of people
    - Transient     the target is away for now; asking it again may help
  + NoPrediction    the closed form says nothing about such an attack
  + NoResult        an audit could not attack, so it shows nothing
  + SolverError     the solver stopped without a certified solution
  + MissingExtra    an optional part of countleak is not installed
"""

# What to do where a run ends before all is asked.
KEPT = "the answers so far are kept, so run it again to resume"


class CountleakError(Exception):
    """Base class: catch this to catch everything countleak raises on purpose."""


class InputError(CountleakError, ValueError):
    """A file, a flag or a value is not what it should be; the text says where and what to do."""


class ShapeError(CountleakError, ValueError):
    """Two arrays that must agree on people or on queries do not."""


class TargetError(CountleakError):
    """The target refused, timed out, or answered something that is not a count."""


class Refused(TargetError):
    """The query system does not answer this question; the text says why, in its words."""


class NoCount(TargetError):
    """What came back can be no count of people; the text says what it was."""


class Transient(TargetError):
    """The target is away for now; ``what`` happened, in words, and how long it asks to be left.

    ``retry_after`` is in seconds, None where the target asks for nothing.
    """

    def __init__(
        self,
        what: str,
        advice: str = KEPT,
        retry_after: float | None = None,
    ):
        super().__init__(f"{what}; {advice}")
        self.what, self.advice, self.retry_after = what, advice, retry_after


class NoPrediction(CountleakError):
    """The closed form says nothing about such an attack; the text says what to plan instead."""


class NoResult(CountleakError):
    """An audit could not attack, so it shows nothing; it has not passed."""


class SolverError(CountleakError):
    """The solver stopped without a certified solution."""


class MissingExtra(CountleakError, ImportError):
    """An optional part of countleak is not installed; the text names the extra that brings it."""

    def __init__(self, job: str, extra: str, *packages: str):
        """Say what brings the extra, and the ``packages`` that it leaves to be chosen."""
        wanted = " ".join([f"'.[{extra}]'", *packages])
        super().__init__(
            f"{job} needs an optional part; in a clone of countleak run: pip install {wanted}"
        )
