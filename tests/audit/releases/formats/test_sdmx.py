"""SDMX: CSV 1.0 and 2.0, XML generic and structure-specific, and JSON; status codes as marks."""

import json

import pytest

from countleak.audit.releases.formats import Why
from countleak.audit.releases.reading import read_release
from countleak.errors import InputError, MissingExtra

NAMESPACES = " ".join(
    f'xmlns:{short}="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/{long}"'
    for short, long in {
        "message": "message",
        "generic": "data/generic",
        "ss": "data/structurespecific",
        "common": "common",
    }.items()
)
URN = "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=X:D(1.0):ObsLevelDim:AllDimensions"
HEADER = f"""<message:Header><message:ID>T</message:ID><message:Test>true</message:Test>
<message:Prepared>2024-01-01T00:00:00</message:Prepared><message:Sender id="X"/>
<message:Structure structureID="S" namespace="{URN}" dimensionAtObservation="AllDimensions">
<common:Structure><Ref agencyID="X" id="D" version="1.0"/></common:Structure>
</message:Structure></message:Header>"""
GENERIC = f"""<message:GenericData {NAMESPACES}>{HEADER}<message:DataSet structureRef="S">
<generic:Obs><generic:ObsKey><generic:Value id="REF_AREA" value="LEEDS"/>
<generic:Value id="SEX" value="F"/></generic:ObsKey><generic:ObsValue value="10"/></generic:Obs>
<generic:Obs><generic:ObsKey><generic:Value id="REF_AREA" value="LEEDS"/>
<generic:Value id="SEX" value="M"/></generic:ObsKey><generic:Attributes>
<generic:Value id="OBS_STATUS" value="Q"/><generic:Value id="CONF_STATUS" value="C"/>
</generic:Attributes></generic:Obs></message:DataSet></message:GenericData>"""
SPECIFIC = f"""<message:StructureSpecificData {NAMESPACES} xmlns:ns1="{URN}"
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">{HEADER}
<message:DataSet ss:dataScope="DataStructure" xsi:type="ns1:DataSetType" ss:structureRef="S">
<Obs REF_AREA="LEEDS" SEX="F" OBS_VALUE="10"/>
<Obs REF_AREA="LEEDS" SEX="M" CONF_STATUS="C" OBS_STATUS="Q"/>
</message:DataSet></message:StructureSpecificData>"""
JSON = {
    "header": {"id": "x", "test": False, "prepared": "2024-01-01T00:00:00", "sender": {"id": "X"}},
    "dataSets": [{"action": "Information", "observations": {"0:0": [10, None], "0:1": [None, 0]}}],
    "structure": {
        "name": "x",
        "dimensions": {
            "dataSet": [],
            "series": [],
            "observation": [
                {"id": "REF_AREA", "name": "Area", "values": [{"id": "LEEDS", "name": "Leeds"}]},
                {
                    "id": "SEX",
                    "name": "Sex",
                    "values": [{"id": "F", "name": "F"}, {"id": "M", "name": "M"}],
                },
            ],
        },
        "attributes": {
            "dataSet": [],
            "series": [],
            "observation": [
                {"id": "CONF_STATUS", "name": "s", "values": [{"id": "C", "name": "Confidential"}]}
            ],
        },
    },
}
CSV_1 = """DATAFLOW,REF_AREA,SEX,OBS_VALUE,OBS_STATUS,CONF_STATUS
X:D(1.0),LEEDS,F,10,A,F
X:D(1.0),LEEDS,M,,Q,C
"""
CSV_2 = """STRUCTURE;STRUCTURE_ID;ACTION;REF_AREA;SEX;OBS_VALUE;CONF_STATUS
dataflow;X:D(1.0);I;LEEDS;F;10;F
dataflow;X:D(1.0);I;LEEDS;M;;C
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", CSV_1),
        ("t.csv", CSV_2),
        ("t.xml", GENERIC),
        ("t.xml", SPECIFIC),
        ("t.json", json.dumps(JSON)),
    ],
)
def test_observations_are_numbers_and_a_status_marks_what_is_not_shown(tmp_path, name, text):
    if not name.endswith("csv"):
        pytest.importorskip("sdmx")
    (tmp_path / name).write_text(text)
    release = read_release(tmp_path / name)
    assert release.dimensions == ("REF_AREA", "SEX")
    shown, hidden = release.numbers
    assert (shown.labels, shown.value) == (("LEEDS", "F"), 10)
    assert (hidden.labels, hidden.value) == (("LEEDS", "M"), None)
    assert (hidden.mark, hidden.why) == ("CONF_STATUS C", Why.PRIMARY)


@pytest.mark.parametrize(
    ("status", "why"),
    [("A,S", Why.SECONDARY), ("A,D", Why.SECONDARY), ("Q,F", Why.UNKNOWN), ("O,F", None)],
)
def test_codes_say_why_where_they_are_known(tmp_path, status, why):
    (tmp_path / "t.csv").write_text(CSV_1.replace("Q,C", status))
    assert read_release(tmp_path / "t.csv").numbers[1].why is why


def test_what_was_not_collected_says_nothing(tmp_path):
    (tmp_path / "t.csv").write_text(CSV_1.replace("Q,C", "L,F"))
    assert [n.labels for n in read_release(tmp_path / "t.csv").numbers] == [("LEEDS", "F")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not SDMX data"),
        ("<a>", "not SDMX data"),
        ("<a/>", "not SDMX data|without data"),
        (GENERIC[: len(GENERIC) // 2], "not SDMX data"),
    ],
)
def test_a_damaged_message_gets_one_line(tmp_path, text, complaint):
    pytest.importorskip("sdmx")
    (tmp_path / "t.xml").write_text(text)
    with pytest.raises(InputError, match=complaint) as raised:
        read_release(tmp_path / "t.xml")
    assert "\n" not in str(raised.value)


def test_counts_in_thousands_are_no_counts(tmp_path):
    text = CSV_1.replace("OBS_STATUS", "UNIT_MULT").replace("A,F", "3,F").replace("Q,C", "3,C")
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=r"units of 10\^3"):
        read_release(tmp_path / "t.csv")


def test_without_the_extra_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sdmx", None)
    (tmp_path / "t.xml").write_text(GENERIC)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[tables\]'"):
        read_release(tmp_path / "t.xml")
