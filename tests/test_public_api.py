import types

import countleak


def test_all_names_every_public_member():
    public = {
        name
        for name, member in vars(countleak).items()
        if not name.startswith("_") and not isinstance(member, types.ModuleType)
    }
    assert public == set(countleak.__all__)


def test_the_public_face_reads_like_the_sentence():
    people = countleak.generated_bank(seed=7).between(2000, 3000)
    condition = countleak.Condition.parse("status = 'C'")
    queries = countleak.digit_queries(people.ids, primes=25)
    system = countleak.Simulated(people, condition, countleak.SimulatedDiffix(sigma=4.0), seed=1)
    run = countleak.reconstruct(queries, system)
    found = countleak.score(run.guess, people.secret(condition))
    assert found.accuracy > 0.95 > found.baseline
