"""PX files: keywords, dots, and numbers in the order of their dimensions."""

import pytest

from countleak.audit.releases.reading import Reading, read_release
from countleak.errors import InputError

TABLE = """CHARSET="ANSI";
AXIS-VERSION="2000";
LANGUAGE="en";
TITLE="people; by region = all";
STUB="region";
HEADING="sex";
VALUES("region")="Leeds","Yo"
"rk";
VALUES[sv]("region")="a","b";
VALUES("sex")="Men","Women";
CODES("sex")="1","2";
DATA=
12 ".."
"-" 7;
"""


@pytest.fixture
def read(tmp_path):
    def read(text, how=None, encoding="utf-8"):
        path = tmp_path / "t.px"
        path.write_bytes(text.encode(encoding))
        return read_release(path, how)

    return read


def test_numbers_are_read_dots_are_not_shown_and_a_dash_is_nobody(read):
    release = read(TABLE)
    assert release.dimensions == ("region", "sex")
    assert [(n.labels, n.value, n.mark) for n in release.numbers] == [
        (("Leeds", "Men"), 12, ""),
        (("Leeds", "Women"), None, ".."),
        (("York", "Men"), 0, ""),
        (("York", "Women"), 7, ""),
    ]


def test_of_several_measures_one_is_named(read):
    text = TABLE.replace("DATA=", 'CONTVARIABLE="sex";\nDATA=')
    with pytest.raises(InputError, match="it has 'Men', 'Women' by 'sex'"):
        read(text)
    release = read(text, Reading(count="Women"))
    assert [(n.labels, n.value) for n in release.numbers] == [(("Leeds",), None), (("York",), 7)]


def test_the_code_page_is_that_of_windows_where_it_is_not_named(read):
    release = read(TABLE.replace("Leeds", "Malmö"), encoding="windows-1252")
    assert release.numbers[0].labels == ("Malmö", "Men")


@pytest.mark.parametrize(
    ("was", "now", "complaint"),
    [
        (TABLE, "", "not a PX file"),
        ('STUB="region";\nHEADING="sex";', "", "not a PX file"),
        ('VALUES("sex")="Men","Women";', "", "no VALUES of 'sex'"),
        ("12 ", "12 13 ", "5 numbers where the VALUES make 4"),
        ("7;", "7", "DATA has no end"),
        ("7;", "-7;", "'-7' is no count"),
        ("DATA=", 'KEYS("region")="VALUES";\nDATA=', "a PX file with KEYS"),
        ("STUB=", "stub!=", "is no keyword"),
        ("AXIS-VERSION", "\udcff", "no keyword|cannot be read"),
    ],
)
def test_a_damaged_file_gets_one_line(tmp_path, was, now, complaint):
    path = tmp_path / "t.px"
    path.write_bytes(TABLE.replace(was, now).encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=complaint) as raised:
        read_release(path)
    assert "\n" not in str(raised.value)
