"""The attack of the page is the library's: the same questions, the same answers, the same end."""

import numpy as np
import pytest

import countleak as cl
from countleak.attack.secrets import Bit
from countleak.diffix.salt import Salt
from countleak.lab_page.attack import LOOKS, Attack, Decoding, Look, Stopped
from countleak.lab_page.settings import NOISES, SECRET, AttackSettings, people_of

# The attack of the page and the library sample as briefly.
pytestmark = pytest.mark.usefixtures("briefly")
SMALL = {"people": 20, "questions": 120, "seed": 5}


def library(target, people, **more):
    return cl.audit(
        people,
        secret="status = 'C'",
        target=target,
        queries=120,
        asking=cl.Asking(seed=5),
        **more,
    )


def run(settings, folder, tell=lambda _: None, check=lambda: None):
    return Attack(settings, folder, tell, check).run()


TARGETS = {
    "18.1": lambda people: cl.Diffix(people, SECRET, "18.1", Salt(b"salt of attack 5")),
    "paper": lambda people: cl.Diffix(people, SECRET, "paper", Salt(b"salt of attack 5")),
    "gaussian": lambda people: cl.Simulated(people, SECRET, cl.Gaussian(2.0), 5),
    "laplace": lambda people: cl.Simulated(people, SECRET, cl.Laplace(2.0), 5),
    "rounded": lambda people: cl.Simulated(people, SECRET, cl.SimulatedDiffix(2.0), 5),
    "uniform": lambda people: cl.Simulated(people, SECRET, cl.Uniform(2), 5),
    "base": lambda people: cl.Simulated(people, SECRET, cl.RoundedToBase(2), 5),
}


def test_every_system_but_the_one_that_refuses_is_compared_here():
    assert set(TARGETS) == set(NOISES) - {"18.3"}


@pytest.mark.parametrize("noise", TARGETS)
def test_an_attack_ends_as_the_library_ends_it(noise, tmp_path):
    people = people_of(20)
    expected = library(TARGETS[noise](people), people)
    found = run(AttackSettings(noise=noise, size=2.0, **SMALL), tmp_path)
    assert found.lines == tuple(str(expected).splitlines())
    assert found.record["score"] == expected.score.record()
    assert found.record["people"] == expected.people.columns()


@pytest.mark.parametrize(
    ("word", "decoder"), [("lp", cl.decoders.Rounding()), ("ls", cl.decoders.LeastSquares())]
)
def test_so_it_does_with_a_decoder_that_was_chosen(word, decoder, tmp_path):
    people = people_of(20)
    expected = library(TARGETS["gaussian"](people), people, decoder=decoder)
    found = run(AttackSettings(noise="gaussian", size=2.0, decoder=word, **SMALL), tmp_path)
    assert found.record["people"] == expected.people.columns()


@pytest.mark.parametrize("noise", ["gaussian", "paper"])
@pytest.mark.parametrize("decoder", ["auto", "lp"])
def test_the_program_that_is_shown_prints_the_same(noise, decoder, tmp_path, capsys):
    settings = AttackSettings(noise=noise, size=2.0, decoder=decoder, **SMALL)
    exec(compile(settings.in_python, "shown", "exec"), {})
    assert capsys.readouterr().out.splitlines() == list(run(settings, tmp_path).lines)


def test_whoever_watches_sees_the_answers_come_in_and_the_decoder_work(tmp_path):
    heard = []
    end = run(AttackSettings(noise="gaussian", **SMALL), tmp_path, heard.append)
    looks = [each for each in heard if isinstance(each, Look)]
    assert [look.answered for look in looks] == [5 * i for i in range(1, LOOKS + 1)]
    assert any(isinstance(each, Decoding) for each in heard)
    truth = people_of(20).truth(Bit("status = 'C'")) == 1
    right = [int((look.values == truth).sum()) for look in (looks[0], end.look)]
    assert right[0] < right[1] == end.record["score"]["right"]


@pytest.mark.parametrize("looks", [1, 7])
def test_an_attack_that_was_stopped_and_resumed_ends_the_same(looks, tmp_path):
    settings = AttackSettings(noise="rounded", size=2.0, **SMALL)
    (tmp_path / "whole").mkdir()
    whole = run(settings, tmp_path / "whole")
    heard = []

    def check():
        if len(heard) == looks:
            raise Stopped

    with pytest.raises(Stopped):
        run(settings, tmp_path, heard.append, check)
    assert len(heard) == looks
    resumed = []
    found = run(settings, tmp_path, resumed.append)
    # All that was answered before is there at once.
    assert resumed[0].answered == 5 * looks
    assert np.array_equal(resumed[0].probability, heard[-1].probability)
    assert found.record == whole.record
    assert found.lines == whole.lines
