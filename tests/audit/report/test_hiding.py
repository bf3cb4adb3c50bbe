import pytest

from countleak.audit.report.hiding import HIDDEN, without_ids


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT COUNT(*) FROM t WHERE id IN (1, 2, 3) AND sex = 1",
            "SELECT COUNT(*) FROM t WHERE id IN (…) AND sex = 1",
        ),
        (
            'SELECT COUNT(*) FROM t WHERE "id" BETWEEN 20 AND 30 OR id = 7',
            'SELECT COUNT(*) FROM t WHERE "id" BETWEEN … AND … OR id = …',
        ),
        (
            "SELECT COUNT(*) FROM t WHERE (id, house) IN ((1, 2), (3, 4))",
            "SELECT COUNT(*) FROM t WHERE (id, house) IN (…)",
        ),
        (
            "SELECT COUNT(*) FROM t WHERE FLOOR(id * 2) = FLOOR(id) AND NOT id IN (5)",
            "SELECT COUNT(*) FROM t WHERE FLOOR(id * 2) = FLOOR(id) AND NOT id IN (…)",
        ),
        ("SELECT noisy_count('t', 'id IN (1)')", HIDDEN),
        ("not SQL at all (", HIDDEN),
    ],
)
def test_what_ids_are_compared_with_is_not_shown(sql, expected):
    assert without_ids(sql, ("id", "house")) == expected
