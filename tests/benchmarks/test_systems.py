"""The systems of the battery: pure, documented, and as they describe themselves."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from benchmarks.honesty.battery import KINDS, SYSTEMS, system_named
from benchmarks.honesty.categories import NAMES
from countleak.errors import InputError

# A world of the rebuilt Diffix takes seconds; its own tests show that its answers replay.
DRAWN = [name for name in SYSTEMS if name != "diffix"]


@pytest.mark.parametrize("name", DRAWN)
def test_a_world_is_pure_in_system_and_number(name):
    system = SYSTEMS[name]
    first, again, other = system.world(1), system.world(1), system.world(2)
    for field in ("values", "released", "about"):
        one, two = (getattr(world.transcript, field) for world in (first, again))
        assert np.array_equal(one, two, equal_nan=field == "values")
    assert np.array_equal(first.transcript.queries.matrix, again.transcript.queries.matrix)
    assert np.array_equal(first.secret, again.secret)
    assert not np.array_equal(first.secret, other.secret) or not np.array_equal(
        first.transcript.values, other.transcript.values, equal_nan=True
    )


@pytest.mark.parametrize("name", DRAWN)
def test_a_world_has_a_secret_for_everyone_and_answers_that_speak_about_it(name):
    world = SYSTEMS[name].world(0)
    transcript, secret = world.transcript, world.secret
    assert secret.shape == transcript.ids.shape
    assert set(secret.tolist()) <= ({*NAMES} if transcript.names else {0, 1})
    asked = np.array([secret == value for value in transcript.names] or [secret == 1])
    counts = (transcript.queries.matrix * asked[transcript.about]).sum(axis=1, dtype=np.int64)
    # Grossly wrong answers and few ones weaken it, but the answers rise with the counts.
    released = transcript.released
    assert spearmanr(counts[released], transcript.values[released]).statistic > 0.1


def test_the_battery_is_large_and_says_what_each_system_does():
    assert len(SYSTEMS) >= 34
    assert sum(system.held for system in SYSTEMS.values()) >= 8
    for system in SYSTEMS.values():
        assert system.description.endswith("."), system.name
        assert 20 < len(system.description) < 100
    assert sum(len(systems) for systems in KINDS.values()) == len(SYSTEMS)
    with pytest.raises(InputError, match="there is no system 'cleen'; choose clean, "):
        system_named("cleen")


def test_repeated_questions_have_repeated_answers():
    transcript = SYSTEMS["repeated"].world(0).transcript
    matrix, values = transcript.queries.matrix, transcript.values
    assert np.array_equal(matrix[:250], matrix[750:]) and np.array_equal(values[:250], values[750:])


def test_near_repeated_questions_share_their_noise_where_the_same_people_match():
    world = SYSTEMS["near-repeated"].world(0)
    counted = world.transcript.queries.matrix * world.secret
    noise = world.transcript.values - counted.sum(axis=1)
    same = [
        (noise[4 * k], noise[4 * k + j])
        for k in range(250)
        for j in (1, 2, 3)
        if np.array_equal(counted[4 * k], counted[4 * k + j])
    ]
    # A change of one person who has a 0 changes nobody who matches.
    assert len(same) > 150 and all(a == b for a, b in same)


def test_suppressed_cells_are_those_of_one_and_two():
    world = SYSTEMS["tables-suppressed"].world(0)
    counts = world.transcript.queries.matrix @ world.secret.astype(np.int64)
    assert np.array_equal(~world.transcript.released, (counts == 1) | (counts == 2))
    assert np.array_equal(world.transcript.b, counts[world.transcript.released])


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("exact-told", 0),
        ("exact-ranges-told", 0),
        ("tables-exact-told", 0),
        ("uniform-told", 3),
        ("random-rounding-told", 2),
        ("rounding-5-told", 2),
    ],
)
def test_the_rules_that_are_told_are_true(name, bound):
    for number in range(5):
        world = SYSTEMS[name].world(number)
        counts = world.transcript.queries.matrix @ world.secret.astype(np.int64)
        assert np.abs(world.transcript.values - counts).max() == bound
