"""Questions that got no count: noted, so that the rest is asked, but not for ever."""

from dataclasses import dataclass, field

from countleak.errors import NoCount, Refused, TargetError

# So many in a row, and the rest is not asked.
NO_COUNTS = 10


@dataclass
class NoCounts:
    """What came instead of counts, with what was asked, and how many times in a row."""

    heard: list[tuple[str, NoCount | Refused]] = field(default_factory=list)
    in_a_row: int = 0

    def note(self, name: str, answer: object) -> bool:
        """Take in an answer to the question of that name; whether it is one too many."""
        if not isinstance(answer, NoCount | Refused):
            self.in_a_row = 0
            return False
        # Without the frames that it came through, which would keep the system from being closed.
        self.heard.append((name, answer.with_traceback(None)))
        self.in_a_row += 1
        return self.in_a_row == NO_COUNTS

    def fault(self) -> TargetError:
        """What to say of them all: a system that only refused says why in its own words."""
        odd = [(name, each) for name, each in self.heard if isinstance(each, NoCount)]
        if not odd:
            return Refused(str(self.heard[0][1]))
        (name, first), others = odd[0], len(odd) - 1
        more = f", and {others} other answers are no counts either" if others else ""
        return NoCount(
            f"{name}: {first}{more}; the counts are kept, so run it again to ask for what is "
            "missing, or work with them"
        )
