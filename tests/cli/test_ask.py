PAPERS = (
    "SELECT count(DISTINCT client_id) FROM loans WHERE {} AND status = 'C' "
    "AND client_id BETWEEN 2000 and 3000"
)
DIGITS = "floor(100 * pow((client_id * 2),0.7) + 0.5) = floor(100 * pow((client_id * 2), 0.7))"


def test_diffix_answers_one_question_alike_until_the_salt_changes(run, tmp_path):
    def asked(sql, *more):
        return run("ask", "--target", "diffix", "--people", "bank:7", "--sql", sql, *more)

    plain = asked(PAPERS.format(DIGITS), "--json").json
    turned = asked(
        "SELECT count(DISTINCT client_id) FROM loans WHERE client_id BETWEEN 2000 and 3000 AND "
        f"status = 'C' AND {DIGITS}",
        "--json",
    ).json
    assert plain == turned
    assert (tmp_path / "salt").stat().st_mode & 0o777 == 0o600
    others = {
        asked(PAPERS.format(DIGITS), "--salt-file", f"salt-{k}", "--json").json["rows"][0]["count"]
        for k in range(4)
    }
    assert others != {plain["rows"][0]["count"]}
    refused = asked("SELECT count(*) FROM loans WHERE status = 'A' OR status = 'B'")
    assert refused.code == 2
    assert refused.err == "countleak: Combining conditions with `OR` is not allowed.\n"
    unknown = asked("VACUUM loans")
    assert unknown.err == "countleak: Only SELECT statements over one table are answered.\n"
    held_back = asked("SELECT count(*) FROM loans WHERE client_id = 2")
    assert "held back" in held_back.err
    secret = (tmp_path / "salt").read_text().strip()
    assert secret not in asked("SELECT count(*) FROM loans").out


def test_diffix_answers_a_file_of_queries_and_a_journal_knows_its_salt(run):
    assert run("plan", "--people", "bank:7", "--between", 2000, 2999, "--primes", 1).code == 0
    words = ("ask", "queries.jsonl", "--people", "bank:7", "--target", "diffix")
    assert run(*words, "--json").json["answers"] == 140
    assert "salt" in run(*words).out
    other = run(*words, "--salt-file", "other")
    assert other.code == 2
    assert "these answers came from" in other.err
    assert run("ask").code == 2
    assert run("ask", "--sql", "SELECT 1").code == 2


def test_diffix_asks_a_file_or_a_server_in_place_of_people(run, tmp_path, bank):
    bank.write_csv(tmp_path / "bank.csv")
    words = ("ask", "--target", "diffix", "--json", "--sql", "SELECT count(*) FROM loans")
    expected = run(*words, "--people", "bank:7").json
    assert run(*words, "--database", "bank.csv").json == expected
    url = "postgresql://127.0.0.1:1/none"
    assert "no PostgreSQL server" in run(*words, "--database", url).err
    assert "no such file" in run(*words, "--database", "absent.parquet").err
    assert "need --target diffix" in run("ask", "--sql", "SELECT 1").err
    assert "there is no target" in run("ask", "--target", "oracle", "--sql", "SELECT 1").err
