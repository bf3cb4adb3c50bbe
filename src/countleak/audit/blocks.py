"""Audits of tables too large for one program: in blocks of ids, put together with one score.

The people are cut into blocks in the order of their ids. Each block is an attack of its own, whose
questions count people of the block only, with its own plan, journal and guess in its own folder.
Nothing grows with people times questions but one block at a time for each worker; of all people
only their columns and their guess are held.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from countleak.attack.decoders import TIME_LIMIT
from countleak.attack.decoders.auto import decoder_for
from countleak.attack.guess import Guess
from countleak.attack.guess_file import read_guess, write_guess
from countleak.attack.queries import Queries
from countleak.attack.queries.ids import are_integers, id_list
from countleak.attack.rules import Rules
from countleak.attack.secrets import Number, Secret
from countleak.audit.joining import Block, BlocksResult, joined
from countleak.audit.people import People
from countleak.audit.result import AuditResult, Step, nothing_shown
from countleak.audit.run import Asking, Keeping, ask_in_steps, default_queries, journal_of
from countleak.audit.scores import score
from countleak.audit.targets import Target
from countleak.audit.targets.simulated import Mechanism, Simulated
from countleak.errors import InputError, Refused, SolverError
from countleak.files import replacing
from countleak.progress import Progress, silent

FILE, GUESS = "block.json", "guess.jsonl"
# Fewer people are no attack: nobody hides among them.
FEWEST = 10

Plan = Callable[[People, int], Queries]


@dataclass(frozen=True)
class Cut:
    """Blocks of at most ``size`` people, attacked on ``jobs`` cores (-1: all) or on a ``cluster``.

    ``cluster`` is a Dask scheduler's address, or `local:2`. Only simulated systems are attacked
    side by side; any other is asked about one block after the other.
    """

    size: int
    jobs: int = -1
    cluster: str | None = None

    def __post_init__(self) -> None:
        if self.size < FEWEST:
            raise InputError(f"blocks of {self.size} people; take at least {FEWEST}")
        if self.jobs == 0 or self.jobs < -1:
            raise InputError(f"jobs is {self.jobs}; give a number of cores, or -1 for all")

    def count(self, people: int) -> int:
        """How many blocks so many people are cut into."""
        return -(-people // self.size)

    def parts(self, people: int) -> Iterator[slice]:
        """Where each block begins and ends: as nearly equal as can be, in order."""
        count = self.count(people)
        ends = [people * number // count for number in range(count + 1)]
        yield from map(slice, ends[:-1], ends[1:])


@dataclass(frozen=True, eq=False)
class _Attack:
    """All that a worker needs for one block; ``held`` (n,) is the truth where it is known."""

    number: int
    people: People
    held: NDArray[Any] | None
    secret: Secret
    target: Target
    plan: Plan
    keeping: Keeping
    asking: Asking
    rules: Rules
    time_limit: float

    @property
    def folder(self) -> Path:
        """Where the files of the block are."""
        return self.keeping.folder

    def run(self) -> Block:
        """Ask, decode and compare; what was finished before is not done again."""
        queries = self.plan(self.people, self.asking.seed)
        check_within(queries, self.people)
        settings = self._settings(queries)
        if (before := self._finished(settings)) is not None:
            return before
        (self.folder / GUESS).unlink(missing_ok=True)
        block = self._attacked(queries, settings)
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / FILE) as file:
            file.write(json.dumps(asdict(block)) + "\n")
        return block

    def _attacked(self, queries: Queries, settings: str) -> Block:
        seed = self.asking.seed
        decoder = decoder_for(self.secret, seed, self.rules, time_limit=self.time_limit)
        journal = journal_of(self.keeping, queries, self.secret)
        try:
            with journal.writing():
                steps = ask_in_steps(
                    queries, self.target, self.secret, self.asking, journal, silent, decoder
                )
                (last,) = deque(steps, maxlen=1)
        except (Refused, SolverError) as error:
            return self._shown_nothing(str(error), queries, len(journal.answers), settings)
        finally:
            journal.close()
        return self._judged(last, settings)

    def _shown_nothing(self, why: str, queries: Queries, answers: int, settings: str) -> Block:
        family = queries.family.name
        return Block(
            self.number, len(self.people), answers, 0, 0, None, why, "", "", family, settings
        )

    def _judged(self, step: Step, settings: str) -> Block:
        found = None if self.held is None else score(step.guess, self.held)
        result = AuditResult(self.people, self.secret, (step,), found, self.held)
        simulated = isinstance(self.target, Simulated)
        nothing = nothing_shown(result, is_live=not simulated)
        if nothing is None:
            write_guess(self.folder / GUESS, step.guess, self.secret)
        transcript = step.transcript
        return Block(
            self.number,
            len(self.people),
            len(transcript),
            int((~transcript.released).sum()),
            int(step.guess.claimed.sum()),
            None if found is None else found.right,
            nothing or "",
            "" if nothing else result.unfit or "" if found else step.guess.basis.misfit,
            step.refused or "",
            transcript.queries.family.name,
            settings,
        )

    def _settings(self, queries: Queries) -> str:
        parts = (queries.digest, str(self.secret), self.keeping.system, self.rules, self.asking)
        return sha256(repr((*parts, self.time_limit)).encode()).hexdigest()[:16]

    def _finished(self, settings: str) -> Block | None:
        """The block as it was finished before, the same way and against the same truth."""
        try:
            fields = json.loads((self.folder / FILE).read_text(encoding="utf-8"))
            before = Block(**fields)
        except (OSError, ValueError, TypeError):
            return None
        # A block that shows nothing is tried again: the system may answer now.
        if before.settings != settings or before.nothing or before.refused:
            return None
        try:
            guess, _ = read_guess(self.folder / GUESS)
        except (OSError, InputError):
            return None
        if id_list(guess.ids) != id_list(self.people.ids):
            return None
        right = None if self.held is None else score(guess, self.held).right
        return replace(before, number=self.number) if right == before.right else None


def check_within(queries: Queries, people: People) -> None:
    """Raise unless the questions can be asked of a system about the people of a block alone."""
    family = queries.family
    ranged = len(people.key) == 1 and are_integers(people.ids)
    if family.name == "tables" or not (family.explicit or ranged):
        raise InputError(
            f"{family.name} count everyone, not the people of a block; ask subsets, or digits, "
            "modular or hashed about whole-number ids"
        )


def audit_in_blocks(
    people: People,
    *,
    secret: str | Secret,
    target: Target | Mechanism,
    cut: Cut,
    keeping: Keeping,
    plan: Plan | None = None,
    asking: Asking | None = None,
    rules: Rules | None = None,
    truth: People | None = None,
    time_limit: float = TIME_LIMIT,
    progress: Progress = silent,
) -> BlocksResult:
    """Attack people block by block, and compare all guesses together with the truth.

    ``plan`` makes the questions about the people of a block from a seed; ``asking`` is how those of
    each block are asked. A mechanism, or a simulated target, is simulated block by block with a
    seed of its own each; any other ``target`` is asked about one block after the other. Files go to
    the folder of ``keeping``, those of each block to one of their own below it, and a run that was
    interrupted is resumed. ``progress`` hears how many of how many blocks are done.
    """
    known = people if truth is None else truth.among(people.ids)
    named = known.named(secret)
    if isinstance(named, Number):
        raise InputError("blocks are attacked for conditions and values, not for sums of a number")
    held = known.truth(named) if known.knows(named) else None
    seed = 0 if asking is None else asking.seed
    system = target if isinstance(target, Target) else Simulated(people, named, target, seed)
    common = _Attack(
        0,
        people,
        held,
        named,
        system,
        plan or _default_plan,
        keeping,
        asking or Asking(),
        rules or Rules(),
        time_limit,
    )
    count = cut.count(len(people))
    blocks: list[Block] = []
    progress(0, count)
    for block in _run(common, cut):
        blocks.append(block)
        progress(len(blocks), count)
    blocks.sort(key=lambda block: block.number)
    return _together(common, blocks)


def _default_plan(people: People, seed: int) -> Queries:
    return default_queries(people, seed=seed)


def _attacks(common: _Attack, cut: Cut) -> Iterator[_Attack]:
    """The blocks, each made when it is wanted; a simulated system holds only those of its block."""
    people, target = common.people, common.target
    for number, part in enumerate(cut.parts(len(people)), 1):
        columns = {name: values[part].copy() for name, values in people.columns.items()}
        own = replace(people, ids=people.ids[part].copy(), columns=columns)
        keeping = replace(common.keeping, folder=folder_of(common.keeping.folder, number))
        if isinstance(target, Simulated):
            base = (target.seed,) if isinstance(target.seed, int) else target.seed
            system: Target = replace(target, people=own, seed=(*base, number))
        else:
            system = target
        yield replace(
            common,
            number=number,
            people=own,
            held=None if common.held is None else common.held[part].copy(),
            target=system,
            keeping=keeping,
        )


def folder_of(folder: Path, number: int) -> Path:
    """Where the files of a block are."""
    return folder / "blocks" / f"{number:05}"


def _run(common: _Attack, cut: Cut) -> Iterator[Block]:
    attacks = _attacks(common, cut)
    if not isinstance(common.target, Simulated):
        # The pace is kept within a block; between two it takes a pause.
        limits = getattr(common.target, "limits", None)
        pause = 1 / limits.rate if limits is not None and limits.rate else 0.0
        for attack in attacks:
            yield attack.run()
            time.sleep(pause)
    elif cut.jobs == 1 and cut.cluster is None:
        yield from (attack.run() for attack in attacks)
    else:
        # Loaded here: most audits run in one process.
        from joblib import delayed

        from countleak.parallel import workers

        with workers(cut.jobs, cut.cluster) as work:
            yield from work(delayed(_Attack.run)(attack) for attack in attacks)


def _together(common: _Attack, blocks: Sequence[Block]) -> BlocksResult:
    """One guess file and one score of all blocks."""
    guess = joined(common.people, common.secret, _guesses(common, blocks), blocks)
    write_guess(common.folder / GUESS, guess, common.secret)
    found = None if common.held is None else score(guess, common.held)
    simulated = isinstance(common.target, Simulated)
    return BlocksResult(
        common.people, common.secret, guess, found, common.held, tuple(blocks), simulated
    )


def _guesses(common: _Attack, blocks: Sequence[Block]) -> Iterator[Guess | None]:
    """The guess about each block from its file; None where it shows nothing."""
    for block in blocks:
        if block.nothing:
            yield None
            continue
        path = folder_of(common.folder, block.number) / GUESS
        if not path.exists():
            raise InputError(f"{path}: not there; name a folder that all machines share")
        guess, _ = read_guess(path)
        if guess.ids.size != block.people:
            raise InputError(f"{path}: a guess about others; run the audit in a new folder")
        yield guess
