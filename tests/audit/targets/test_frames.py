import numpy as np
import pandas as pd
import polars as pl
import pytest

import countleak as cl
from countleak.errors import InputError


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("secret", ["status = 'C'", "status", "sum(amount)"])
def test_a_frame_counts_exactly(make, secret):
    frame = make({"id": [5, 3, 9, 7], "status": list("CABC"), "amount": [1.5, 2.0, 4.0, 8.0]})
    target = cl.FrameTarget(frame, id="id", secret=secret)
    # Somebody who is not in the frame counts for nothing.
    queries = cl.random_subsets(np.array([3, 5, 6, 9]), 12, np.random.default_rng(0))
    found = cl.ask(queries, target, target.secret)
    held = {
        "status = 'C'": [[0, 1, 0, 0]],
        "status": [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]],
        "sum(amount)": [[2.0, 1.5, 0, 4.0]],
    }[secret]
    expected = np.concatenate([queries.dot(np.array(each, dtype=float)) for each in held])
    assert np.array_equal(found.values, expected)
    assert str(target) == "a frame of 4 people"


def test_an_audit_of_a_frame():
    people = cl.generated_bank(seed=7).between(2000, 2400)
    frame = pd.DataFrame(people.all_columns)
    target = cl.FrameTarget(frame, id="client_id", secret="status = 'C'")
    result = cl.audit(
        frame, id="client_id", secret="status = 'C'", target=target, queries=60, rules=target.rules
    )
    assert result.score.accuracy == 1.0
    with pytest.raises(InputError, match="holds for nobody"):
        cl.FrameTarget(frame, id="client_id", secret="status = 'X'")
