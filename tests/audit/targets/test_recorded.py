import numpy as np
import pytest
from scipy.io import savemat

from countleak.audit.run import ask
from countleak.audit.targets.recorded import (
    Recorded,
    read_census,
    read_log,
    read_presence,
    read_ranges,
)
from countleak.errors import InputError


def statement(mult, offset, power, status):
    left = f"floor({offset} * pow((client_id * {mult}),{power}) + 0.5)"
    where = f"{left} = floor({offset} * pow((client_id * {mult}), {power}))"
    return f"SELECT count(*) FROM loans WHERE {where} AND status = '{status}'"


def record(power="0.5", mult="2", offset="5", answer="32", status="C", sql=None):
    return (
        '  { db => "banking",\n    table => "loans",\n'
        f"    power => {power},\n    mult => {mult},\n    offset => {offset},\n"
        f'    sql => "{sql or statement(mult, offset, power, status)}",\n'
        f'    answer => {answer},\n    sig => "x",\n  }},\n'
    )


def log(tmp_path, *records):
    path = tmp_path / "aircloak_output_cleaned_1_9.txt"
    path.write_text("".join(records))
    return read_log(path)


def test_records_are_read_with_their_lines(tmp_path):
    found = log(tmp_path, record(), record(power="0.7", mult="3", offset="100", answer="0"))
    assert [(e.line, e.prime, e.constant, e.exponent, e.answer) for e in found.entries] == [
        (1, 2, 5, 0.5, 32.0),
        (10, 3, 100, 0.7, 0.0),
    ]
    assert str(found.secret) == "status = 'C'"
    answers = found.answers()
    assert answers.released.tolist() == [True, False]


def test_integer_exponents_and_failed_queries_are_set_apart(tmp_path):
    found = log(
        tmp_path,
        record(),
        record(power="1"),
        record(mult="3", answer='"failed"'),
        record(power="2"),
    )
    assert len(found.entries) == 1
    assert [e.exponent for e in found.integer_exponents] == [1.0, 2.0]
    assert [e.line for e in found.failed] == [19]
    name = found.path.name
    assert found.remarks() == [
        f"{name}: 2 records with whole exponents left out (first: line 10)",
        f"{name}: 1 records without an answer left out (first: line 19)",
    ]


@pytest.mark.parametrize("answer", ['"failed"', "undef", '"error: timeout"', ""])
def test_words_in_place_of_a_number_are_failed_queries(tmp_path, answer):
    assert len(log(tmp_path, record(mult="3"), record(answer=answer)).failed) == 1


def test_duplicates_count_once_when_they_agree_and_are_reported_when_not(tmp_path):
    found = log(tmp_path, record(), record(), record(mult="3"), record(mult="3", answer="9"))
    assert [(e.prime, e.answer) for e in found.entries] == [(2, 32.0)]
    assert [e.line for e in found.conflicting] == [19, 28]
    assert "1 records of queries answered before, alike" in found.remarks()[0]
    assert "2 records of queries answered twice, differently" in found.remarks()[1]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "there are no records"),
        (record() + record(answer="many"), "line 10: malformed record"),
        (record() + record(power="fast"), "line 10: malformed record"),
        (record() + record(answer="nan"), "line 10: answer is nan"),
        (record() + record(sql="SELECT 1"), "line 10: the fields say .* the SQL asks something"),
        (record(power="1") + record(answer='"no"'), "none of the 2 records can be used"),
        (record().replace("    mult => 2,\n", ""), "line 1: the record has no 'mult'"),
        (record() + record()[:60], "cut off in the record of line 10"),
        (record() + record()[:130], "line 15: a quote is not closed"),
        (record().replace("},\n", "\n") + record(), "starts before the one of line 1 ended"),
        (record() + "}\n", "line 10: a record ends that did not start"),
        (record().replace("'\",", "',"), "a quote is not closed"),
    ],
)
def test_a_malformed_log_is_reported_by_file_and_line(tmp_path, text, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        log(tmp_path, text)
    assert "aircloak_output_cleaned_1_9.txt" in str(caught.value)


def test_a_log_about_two_secrets_has_no_secret(tmp_path):
    found = log(tmp_path, record(), record(mult="3", status="A"))
    with pytest.raises(InputError, match="expected one"):
        _ = found.secret


def test_the_authors_folder_reads_as_it_is(recorded):
    low, high = recorded["2000-3000"], recorded["10000-12000"]
    assert (len(low.people), len(low.log.entries), len(low.log.integer_exponents)) == (
        73,
        3494,
        500,
    )
    assert (len(high.people), len(high.log.entries)) == (142, 3497)
    assert (low.secret.sum(), high.secret.sum()) == (48, 53)
    assert str(high.log.secret) == "status = 'A'"


def test_recorded_answers_are_a_target(recorded):
    log = recorded["2000-3000"].log
    queries = log.queries(recorded["2000-3000"].people.ids)
    assert np.array_equal(ask(queries, Recorded(log.answers())).values, log.answers().values)


def test_presence_and_census_of_the_authors(shared):
    folder = shared / "data" / "cohen-nissim"
    assert len(read_presence(folder)) == 12
    census = read_census(folder, 100)
    assert census.ids.tolist() == list(range(1000, 1100))
    assert set(census.columns["sex"].tolist()) == {0, 1}


def test_folders_that_are_not_the_authors_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        read_ranges(tmp_path / "absent")
    with pytest.raises(InputError, match="no file aircloak_output_cleaned"):
        read_ranges(tmp_path)
    (tmp_path / "aircloak_output_cleaned_1_9.txt").write_text(record())
    with pytest.raises(InputError, match=r"client_id_1_9_ordered\.mat: no such file"):
        read_ranges(tmp_path)
    for nonsense in ("nonsense" * 40, "", "x" * 50):
        (tmp_path / "client_id_1_9_ordered.mat").write_text(nonsense)
        with pytest.raises(InputError, match="not a MATLAB file"):
            read_ranges(tmp_path)


def folder(tmp_path, low, high, ids, truth, *records):
    data = tmp_path / "clone" / "data"
    data.mkdir(parents=True, exist_ok=True)
    savemat(data / f"client_id_{low}_{high}_ordered.mat", {"client_id": np.array([ids]).T})
    savemat(
        data / f"true_status_client_id_{low}_{high}_ordered.mat",
        {"true_status": np.array([truth]).T},
    )
    (data / f"aircloak_output_cleaned_{low}_{high}.txt").write_text("".join(records))
    return tmp_path / "clone"


def within(low, high, **fields):
    text = record(**fields)
    return text.replace("'\",", f"' AND client_id BETWEEN {low} and {high}\",")


def test_a_clone_with_several_ranges_and_other_files(tmp_path):
    folder(tmp_path, 30, 50, [31, 44, 49], [0, 1, 1], within(30, 50), within(30, 50, mult="3"))
    clone = folder(tmp_path, 5, 7, [5, 6], [1, 0], within(5, 7), within(5, 7, answer='"failed"'))
    (clone / "data" / "dataset").mkdir()
    savemat(clone / "data" / "experiments_dmt.mat", {"results": np.zeros(3)})
    for given in (clone, clone / "data"):
        found = read_ranges(given)
        assert [(r.name, len(r.people), len(r.log.entries)) for r in found] == [
            ("5-7", 2, 1),
            ("30-50", 3, 2),
        ]
        assert found[1].secret.tolist() == [0, 1, 1]


def test_a_log_or_truth_of_another_range_is_noticed(tmp_path):
    clone = folder(tmp_path, 5, 7, [5, 6], [1, 0], within(5, 9))
    with pytest.raises(InputError, match="line 1: the SQL does not ask about ids from 5 to 7"):
        read_ranges(clone)
    clone = folder(tmp_path, 5, 7, [5, 6], [1, 0, 1], within(5, 7))
    with pytest.raises(InputError, match="3 values for 2 ids"):
        read_ranges(clone)
