"""`countleak tables`: published tables, each harmless, that pin people together."""

import pytest

FIRST = """region,sex,age,count
Leeds,F,30-64,10
Leeds,M,30-64,12
Leeds,F,65+,5
Leeds,M,65+,7
"""
SECOND = """region,sex,age,count
Leeds,F,35-64,9
Leeds,M,35-64,9
Leeds,F,65+,5
Leeds,M,65+,*
"""

TABLE = "[[table]]\nfile = 'b.csv'\nexact = true\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.csv").write_text(FIRST)
    (tmp_path / "b.csv").write_text(SECOND)
    return tmp_path


def test_neither_table_pins_anybody_and_both_together_do(run, files):
    assert run("tables", "a.csv", "--json").json["findings"] == []
    alone = run("tables", "b.csv", "--json").json
    assert alone["findings"] == []
    both = run("tables", "a.csv", "b.csv", "--json").json
    assert both["contradiction"] is None
    found = {tuple(each["cell"].values()): each for each in both["findings"]}
    assert set(found) == {("Leeds", "F", "30-34"), ("Leeds", "M", "65+")}
    women = found["Leeds", "F", "30-34"]
    assert women["low"] == women["high"] == 1
    assert sum(term["sign"] * term["value"] for term in women["terms"]) == 1
    assert women["equation"] == (
        "Leeds, F, 30-34 = a: Leeds, F, 30-64 (10) - b: Leeds, F, 35-64 (9) = 1"
    )
    assert women["rests_on"] == "implied, if the tables are exact and cover the same people"


def test_how_tables_were_read_is_said_and_more_than_is_allowed_fails(run, files):
    said = run("tables", "a.csv", "b.csv", "--fail-above", 1)
    assert said.code == 1
    assert "b: 4 numbers (1 not shown) by region, sex, age; read as: its counts" in said.err
    assert said.out.splitlines()[-1] == "FAILED: 2 findings; 1 are allowed"
    assert run("tables", "a.csv", "b.csv", "--fail-above", 2).code == 0


def test_tables_without_a_label_in_common_are_said_to_be_about_others(run, files):
    (files / "c.csv").write_text("sex,n\nWomen,15\nMen,19\n")
    said = run("tables", "a.csv", "c.csv").err
    assert "a and c have no sex in common: they are read as being about different people." in said
    assert len(run("tables", "a.csv", "c.csv", "--json").json["apart"]) == 1
    (files / "releases.toml").write_text(
        '[[table]]\nfile = "a.csv"\n[[table]]\nfile = "c.csv"\n'
        '[hierarchy.sex]\nWomen = ["F"]\nMen = ["M"]\n'
    )
    assert "in common" not in run("tables", "releases.toml").err


def test_tables_that_disagree_are_named_not_solved(run, files):
    (files / "b.csv").write_text(SECOND.replace("F,35-64,9", "F,35-64,11"))
    said = run("tables", "a.csv", "b.csv", "--json")
    assert said.code == 2
    terms = [(t["table"], t["cell"]["age"], t["value"]) for t in said.json["contradiction"]]
    assert sorted(terms) == [("a", "30-64", 10), ("b", "35-64", 11)]
    assert said.json["findings"] == []
    assert said.err.startswith("countleak: These numbers cannot all be true of the same people")


def test_a_proposal_is_a_description_that_can_be_used(run, files):
    proposal = run("tables", "a.csv", "b.csv", "--guess").out
    assert "# 1 numbers are not shown; the least shown above 0 is 5" in proposal
    stated = proposal.replace("# marks", "marks").replace("unknown", "secondary")
    (files / "releases.toml").write_text(stated)
    found = run("tables", "releases.toml", "--json").json
    assert {each["rests_on"] for each in found["findings"]} == {
        "the rules stated, and that the tables cover the same people"
    }


def test_rounded_tables_bound_what_they_do_not_say(run, tmp_path):
    rows = [f"{region},{sex},{15 + 3 * at}" for at, region in enumerate("ABCDEF") for sex in "MF"]
    (tmp_path / "r.csv").write_text("region,sex,n\n" + "\n".join(rows) + "\n")
    said = run("tables", "r.csv")
    assert "rounded to multiples of 3, up or down by chance" in said.err
    assert run("tables", "r.csv", "--json").json["findings"] == []


def test_regions_are_told_apart_by_a_code_list(run, tmp_path):
    (tmp_path / "north.csv").write_text("region,n\nNorth,31\nSouth,20\n")
    (tmp_path / "cities.csv").write_text("region,n\nLeeds,30\nKent,20\n")
    (tmp_path / "releases.toml").write_text(
        '[[table]]\nfile = "north.csv"\nexact = true\n'
        '[[table]]\nfile = "cities.csv"\nexact = true\n'
        '[hierarchy.region]\nNorth = ["Leeds", "York"]\nSouth = ["Kent"]\n'
    )
    found = run("tables", "releases.toml", "--json").json["findings"]
    assert [(each["cell"], each["low"]) for each in found] == [({"region": "York"}, 1)]


def test_code_lists_that_are_not_nested_pin_where_they_cross(run, tmp_path):
    (tmp_path / "north.csv").write_text("region,n\nNorth,30\nSouth,20\n")
    (tmp_path / "cities.csv").write_text("region,n\nCities,49\n")
    (tmp_path / "releases.toml").write_text(
        '[[table]]\nfile = "north.csv"\nexact = true\n'
        '[[table]]\nfile = "cities.csv"\nexact = true\n'
        '[[hierarchy.region]]\nNorth = ["Leeds", "York"]\nSouth = ["Kent"]\n'
        '[[hierarchy.region]]\nCities = ["Leeds", "Kent"]\n'
    )
    (found,) = run("tables", "releases.toml", "--json").json["findings"]
    assert (found["cell"], found["low"], found["high"]) == ({"region": "York"}, 1, 1)
    assert found["rests_on"] == "the rules stated, and that the tables cover the same people"


def refused(run, *words):
    """What is said of bad input: one line after how tables were read, and the exit code 2."""
    said = run("tables", *words)
    assert said.code == 2
    *read, error = said.err.splitlines()
    assert all(" numbers (" in line for line in read)
    return error.removeprefix("countleak: ")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("region,n\nLeeds,3\nLeeds,3\n", "a.csv line 3: Leeds comes twice; keep one"),
        ("region,n\nLeeds,3,4\n", "a.csv line 2: 3 fields where the header has 2"),
        ("region,n\nLeeds\n", "a.csv line 2: 1 fields where the header has 2"),
        ("region,n\nLeeds,many\n", "a.csv: no column holds counts"),
        ("region;n\nLeeds;-3\n", "a.csv: no column holds counts; in line 2 the last field is '-3'"),
        ("region,n\nLeeds,3.5\n", "a.csv: no column holds counts; in line 2 the last field is"),
        ("region,n\nLeeds,nan\n", "a.csv: no column holds counts"),
        ("region,n\n,3\n", "a.csv line 2: no region; write a label"),
        ("region,region\nLeeds,3\n", "a.csv line 1: two columns have the same name"),
        ("region,n\nTotal,3\n", "the dimension 'region' has no label but 'Total'"),
        ("region,n\n", "a.csv: there is a header and no row below it"),
        ('region,n\n"Leeds,3\n', "a.csv line 2: not CSV"),
        ("", "a.csv: the file is empty"),
        (b"region,n\nM\xfcnchen,3\n", "a.csv: cannot be read as text"),
    ],
)
def test_a_table_that_cannot_be_read_gets_one_line(run, tmp_path, text, complaint):
    (tmp_path / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert refused(run, "a.csv").startswith(complaint)


def test_ten_million_rows_are_refused_before_they_are_read(run, tmp_path):
    with (tmp_path / "a.csv").open("wb") as file:
        file.write(b"region,n\n")
        for _ in range(100):
            file.write(b"a,1\n" * 10**5)
    assert refused(run, "a.csv") == (
        "a.csv: more than 2,000,000 numbers; split the table or leave dimensions out"
    )


def test_a_total_that_is_wrong_is_named_with_its_parts(run, tmp_path):
    rows = "region,sex,n\nA,F,3\nA,M,4\nA,Total,8\nB,F,3\nB,M,4\nB,Total,7\n"
    (tmp_path / "a.csv").write_text(rows)
    said = run("tables", "a.csv", "--json")
    assert said.code == 2
    assert sorted(term["value"] for term in said.json["contradiction"]) == [3, 4, 8]
    assert "Without any one of them counts fit." in said.err


def test_a_sheet_with_merged_cells_gets_one_line(run, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Region", "2020", None], [None, "F", "M"], ["Leeds", 3, 4]):
        book.active.append(row)
    book.active.merge_cells("B1:C1")
    book.save(tmp_path / "a.xlsx")
    assert refused(run, "a.xlsx").startswith("a.xlsx row 2: more fields than the header has")
    book.active["A1"] = None
    book.save(tmp_path / "a.xlsx")
    assert refused(run, "a.xlsx").startswith("a.xlsx row 1: the header has empty or equal names")
    book = openpyxl.Workbook()
    for row in (["region", "sex", "n"], ["Leeds", "F", 3], [None, "M", 4]):
        book.active.append(row)
    book.save(tmp_path / "b.xlsx")
    assert refused(run, "b.xlsx").startswith("b.xlsx row 3: no region; write a label")
    (tmp_path / "c.xlsx").write_text("region,n\n")
    assert refused(run, "c.xlsx").startswith("c.xlsx: not an XLSX file")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[table]]\n", "releases.toml: a [[table]] needs its file"),
        ("x = 1\n", "releases.toml: unknown key 'x'"),
        ('[[table]]\nfile = "a.csv"\nsuppressed = "few"\n', "releases.toml: suppressed is 'few'"),
        ('[[table]]\nfile = "a.csv"\nrounded = 5\n', "releases.toml: unknown key 'rounded'"),
        ("= 1\n", "releases.toml: not TOML"),
        ('[[table]]\nfile = "b.csv"\nmarks = { "*" = "odd" }\n', "releases.toml: the mark * is"),
        ('[[table]]\nfile = "b.csv"\nexact = true\nnoise_sd = 1\n', "releases.toml: exact and"),
        ('[[table]]\nfile = "b.csv"\nrounded_to = 5\n', "b: Leeds, F, 35-64 (9) is a number that"),
        ('[[table]]\nfile = "b.csv"\ncount = "no"\n', "b.csv: there is no column 'no'"),
        ('[[table]]\nfile = "b.csv"\ncount = 3\n', "releases.toml: count is 3"),
        ('[[table]]\nfile = "none.csv"\n', "none.csv: no such file"),
        (f"{TABLE}[hierarchy.Region]\nN = ['Leeds']\n", "releases.toml: no table has the dim"),
        (f"{TABLE}[hierarchy.region]\nN = ['Leed']\n", "the code lists of 'region' do not have"),
        (f"{TABLE}[hierarchy.region]\nLeeds = ['Leeds']\n", "the code list says that 'Leeds'"),
        (f"{TABLE}[hierarchy]\nregion = 3\n", "releases.toml: the hierarchy of 'region' cannot"),
    ],
)
def test_a_description_that_cannot_be_read_gets_one_line(run, files, text, complaint):
    (files / "releases.toml").write_text(text)
    assert refused(run, "releases.toml").startswith(complaint)


def test_several_marks_need_their_meaning_where_a_threshold_is_stated(run, tmp_path):
    (tmp_path / "a.csv").write_text("sex,n\nF,c\nM,x\nTotal,14\n")
    stated = '[[table]]\nfile = "a.csv"\nsuppressed = "0..4"\n'
    (tmp_path / "releases.toml").write_text(stated)
    assert refused(run, "releases.toml").startswith("releases.toml: a has several marks, 'c' (1)")
    (tmp_path / "releases.toml").write_text(f'{stated}marks = {{ c = "primary", x = "secondary" }}')
    assert run("tables", "releases.toml", "--json").json["findings"] == []


def test_a_workbook_and_a_parquet_file_are_tables_too(run, files):
    openpyxl = pytest.importorskip("openpyxl")
    import duckdb

    book = openpyxl.Workbook()
    for line in FIRST.splitlines():
        book.active.append([int(part) if part.isdecimal() else part for part in line.split(",")])
    book.save(files / "a.xlsx")
    with duckdb.connect() as connection:
        path = files / "b.parquet"
        connection.from_csv_auto(str(files / "b.csv")).write_parquet(str(path))
    found = run("tables", "a.xlsx", "b.parquet", "--json").json["findings"]
    assert sorted(each["low"] for each in found) == [1, 7]


def test_a_cure_is_written_read_again_and_never_over_a_file(run, files):
    said = run("tables", "a.csv", "b.csv", "--cure", "suppress", "--write", "new")
    assert said.code == 0
    assert "Audited again: 0 findings, 0 without a proof, every interval exact." in said.out
    again = run("tables", "new/releases.toml", "--json").json
    assert again["findings"] == []
    assert again["unproven"] == 0
    said = run("tables", "a.csv", "b.csv", "--cure", "round", "--write", "new")
    assert said.code == 2
    assert "is there already" in said.err
    assert (files / "a.csv").read_text() == FIRST


def test_a_cure_without_the_time_for_it_fails(run, files):
    said = run("tables", "a.csv", "b.csv", "--cure", "coarsen", "--time-limit", 0, "--json")
    assert said.code == 1
    assert said.json["failed"]
    assert said.json["cure"]["failure"].startswith("time ran out")


def test_groups_people_records_and_probabilities_are_in_the_json(run, files):
    found = run(
        "tables", "a.csv", "b.csv", "--secret", "sex", "--person", "region=Leeds,sex=F,age=32",
        "--records", "people.csv", "--likely", "--json",
    ).json  # fmt: skip
    assert found["disclosures"]["found"] == []
    assert found["person"]["in_tables"] == "certainly"
    assert found["records"]["people"] == 34
    assert found["records"]["determined"]
    assert len((files / "people.csv").read_text().splitlines()) == 35
    assert found["likely"]["groups"] == []


def test_counts_that_rules_leave_out_between_others_are_no_all_clear(run, monkeypatch, tmp_path):
    """Of 0, 3 and 4 people each can be shown as 0, where 1 and 2 are hidden: not 0 to 4."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("region,count\nLeeds,0\nYork,20\nTotal,25\n")
    (tmp_path / "releases.toml").write_text(
        '[[table]]\nfile = "a.csv"\nrounded_to = 5\nrounding = "random"\nsuppressed = "1..2"\n'
    )
    said = run("tables", "releases.toml", "--fail-above", 0)
    assert said.code == 2
    assert "passed" not in said.out
    assert "this can neither pass nor fail: the rules of a leave out counts" in said.err
    told = run("tables", "releases.toml", "--json")
    assert told.code == 0
    assert len(told.json["not_looked_at"]) == 1
