"""Whose turn it is: users share the time alike, however many jobs each has."""

from collections import Counter

from countleak.diffix.server.turns import Turns


def test_a_user_with_many_jobs_gets_no_more_time_than_others():
    turns = Turns(at_once=1)
    for number in range(1000):
        turns.add("greedy", ("greedy", number))
    for number in range(100):
        turns.add("honest", ("honest", number))
    spent = Counter()
    order = []
    for _ in range(80):
        user, number = turns.next()
        order.append((user, number))
        seconds = 1.0 if user == "greedy" else 0.1
        spent[user] += seconds
        turns.end(user, seconds)
    assert abs(spent["greedy"] - spent["honest"]) <= 1.0
    for user in spent:
        numbers = [number for name, number in order if name == user]
        assert numbers == sorted(numbers)


def test_whoever_was_away_has_saved_nothing():
    turns = Turns(at_once=1)
    for _ in range(100):
        turns.add("busy", "busy")
        assert turns.next() == "busy"
        turns.end("busy", 1.0)
    turns.add("busy", "busy")
    for _ in range(50):
        turns.add("new", "new")
    order = []
    for _ in range(3):
        order.append(turns.next())
        turns.end(order[-1], 1.0)
        turns.add("busy", "busy")
    assert order.count("busy") >= 1


def test_no_user_has_more_than_its_share_at_once():
    turns = Turns(at_once=2)
    for _ in range(5):
        turns.add("one", "one")
    assert [turns.next(), turns.next(), turns.next()] == ["one", "one", None]
    turns.add("two", "two")
    assert turns.next() == "two"
    turns.end("one", 1.0)
    assert turns.next() == "one"
    assert turns.count("one") == 4


def test_a_job_that_is_given_up_has_no_turn():
    turns = Turns(at_once=1)
    turns.add("one", "first")
    turns.add("one", "second")
    turns.drop("one", "first")
    turns.drop("one", "first")
    assert turns.next() == "second"
    assert turns.count("one") == 1
    turns.end("one", 0.0)
    assert turns.next() is None
    assert turns.count("one") == 0
