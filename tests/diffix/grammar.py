"""Questions put together at random from what is allowed, and from what is not."""

from collections.abc import Iterator

import numpy as np

NUMBERS = ("client_id", "amount", "duration")


def generated_statements(
    count: int, seed: int, *, finished: bool = True, joined: bool = False
) -> Iterator[str]:
    """Questions over the loans table, nearly all allowed; ``finished`` with HAVING and the like.

    ``joined`` asks of loans and cards, which have an owner, a region and a credit.
    """
    rng = np.random.default_rng(seed)

    def pick(*options: str) -> str:
        return str(options[rng.integers(len(options))])

    def number() -> str:
        return pick("1", "2", "0.5", "10", "1000", "24", "3.7", "50000", "1e4")

    def numeric() -> str:
        column = pick(*NUMBERS)
        return pick(
            f"floor({column} / {number()})",
            f"ceil({column} * {number()})",
            f"round({column})",
            f"trunc({column}) / 10",
            f"abs({column} - {number()})",
            f"floor({number()} * pow(({column} * 3), 0.7) + 0.5)",
            f"pow({column}, 2)",
            f"round({column}, {pick('-3', '0', '1')})",
            f"trunc({column}, {pick('-2', '1')})",
            f"bucket({column} BY {pick('10', '50', '2000')})",
            f"CAST({column} AS integer)",
            f"CAST(status || '{number()}' AS double precision)",
            "CAST(left(status, 1) AS integer)",
        )

    def text() -> str:
        return pick(
            "lower(status)", "upper(status)", "left(status, 1)", "substring(status, 1, 2)",
            "concat(status, status)", "status || 'x'",
            "CAST(duration AS text)", "CAST(floor(amount) AS varchar)",
        )  # fmt: skip

    def condition() -> str:
        low = int(rng.integers(0, 5000))
        return pick(
            f"status = '{pick('A', 'B', 'C', 'D')}'",
            f"status <> '{pick('A', 'C')}'",
            f"status IN ('A', '{pick('B', 'C')}')",
            f"status LIKE '{pick('%C', '_', 'A%', 'C')}'",
            "status IS NOT NULL",
            f"{pick(*NUMBERS)} BETWEEN {low} AND {low + int(rng.integers(1, 300000))}",
            f"duration = {pick('12', '24', '36')}",
            f"duration IN (12, {pick('24', '60')})",
            f"duration NOT IN (12, {pick('24', '60')})",
            f"{numeric()} = {numeric()}",
            f"{numeric()} = {number()}",
            f"{text()} = '{pick('c', 'C', 'a')}'",
            "floor(10 * pow((client_id * 2), 0.5) + 0.5) = floor(10 * pow((client_id * 2), 0.5))",
        )

    def of_cards() -> str:
        """A condition on a column of the cards, or one of each table."""
        return pick(
            "region = 'X'", "region <> 'Y'", "region LIKE '_'", "cards.region IS NOT NULL",
            f"credit BETWEEN 0 AND {int(rng.integers(1, 3000))}", f"floor(credit / {number()}) = 3",
            "credit = duration", "lower(region) = lower(status)", f"owner <> {number()}",
            f"amount - credit = {number()}",
        )  # fmt: skip

    def source(conditions: list[str]) -> str:
        """What stands behind FROM, with all conditions."""
        if not joined:
            return f"loans{' WHERE ' + ' AND '.join(conditions) if conditions else ''}"
        conditions = [*conditions, of_cards()]
        link = pick("client_id = owner", "cards.owner = loans.client_id")
        return pick(
            f"loans JOIN cards ON {link} WHERE {' AND '.join(conditions)}",
            f"cards, loans WHERE {' AND '.join([*conditions, link])}",
            f"cards INNER JOIN (SELECT * FROM loans) AS q ON owner = q.client_id "
            f"WHERE {' AND '.join(conditions)}",
        )

    def per_user(rows: str) -> str:
        """A question about what a subquery makes of each user's rows."""
        aggregates = (
            "count(*) AS n, sum(amount) AS s, max(duration) AS m, avg(amount) AS a, "
            "min(amount) AS l, count(DISTINCT status) AS d"
        )
        outer = pick(
            "", "", "n = 1", "m <> 12", f"s BETWEEN 0 AND {int(rng.integers(1, 300000))}",
            "a >= 0 AND a < 50000", f"floor(a / {number()}) = 1", "l IS NOT NULL", "d IN (1, 2)",
        )  # fmt: skip
        group = pick("", "n", "m", "floor(s / 100000)", "d, m")
        aggregate = pick("count(*)", "sum(n)", "avg(a)", "count(m), sum(s)", "max(m)", "median(s)")
        return (
            f"SELECT {group + ', ' if group else ''}{aggregate} FROM (SELECT client_id, "
            f"{aggregates} FROM {rows} GROUP BY client_id) AS q"
            f"{' WHERE ' + outer if outer else ''}{' GROUP BY ' + group if group else ''}"
        )

    for number_of in range(count):
        conditions = [condition() for _ in range(int(rng.integers(0, 4)))]
        rows = source(conditions)
        if number_of % 5 == 4:
            yield per_user(rows)
            continue
        aggregate = pick(
            "count(*)", "count(DISTINCT client_id)", "count(amount)", "sum(amount)",
            "avg(duration)", "count(DISTINCT duration)", "count(*), sum(duration)",
            "min(amount), max(duration)", "median(amount)", "stddev(duration)", "variance(amount)",
            "count_noise(*)", "sum_noise(amount), avg_noise(duration)",
        )  # fmt: skip
        group = pick("", "", "status", "duration", "status, duration", "floor(amount / 50000)")
        grouped = f" GROUP BY {group}" if group else ""
        chosen = f"{group}, {aggregate}" if group else aggregate
        finish = pick(
            "", "", "", " ORDER BY 1 DESC", " HAVING count(*) > 20", " ORDER BY count(*) LIMIT 3",
            " HAVING sum(amount) > 5 ORDER BY 1 OFFSET 1",
        )  # fmt: skip
        distinct = pick("", "", "DISTINCT ")
        plain = f"{chosen} FROM {rows}{grouped}"
        yield f"SELECT {distinct}{plain}{finish}" if finished else f"SELECT {plain}"
