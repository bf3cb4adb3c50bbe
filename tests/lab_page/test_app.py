"""The lab over HTTP: its pages, what it refuses, and whom."""

import re
from html import unescape

import httpx
import pytest

from countleak.lab_page.app import ASSETS
from countleak.lab_page.asking import EXAMPLES

ONE = "SELECT count(*) FROM loans WHERE client_id = 2"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def client(lab):
    with httpx.Client(base_url=lab.url, timeout=120) as client:
        yield client


def text_of(response):
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", response.text)).split())


@pytest.mark.parametrize("address", ["/", "/attack", "/map"])
def test_a_page_loads_only_what_is_here_and_holds_no_script_or_style(client, address):
    page = client.get(address)
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "set-cookie" not in page.headers
    loaded = re.findall(r'<(?:script|link)[^>]*(?:src|href)="([^"]*)"', page.text)
    assert {address.split("?")[0] for address in loaded} == {
        f"/assets/{name}" for name in ASSETS if not name.endswith(".txt")
    }
    for address in loaded:
        asset = client.get(address)
        assert asset.status_code == 200
        assert "max-age" in asset.headers["cache-control"]
    assert "<script>" not in page.text
    assert not re.search(r"<[^>]*\s(style|on\w+)=", page.text)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_answered_or_refused_as_it_says(client, name):
    page = client.get("/", params={"statement": EXAMPLES[name]})
    assert page.status_code == 200
    assert ("No answer" in page.text) == (name == "Refused")
    assert ("How it came about" in page.text) == (name != "Refused")


def test_the_truth_is_shown_as_such(client):
    page = text_of(client.get("/", params={"statement": EXAMPLES["A plain count"]}))
    assert "Truth, of invented people" in page
    assert "This is all that an analyst sees." in page


def test_a_suppressed_count_is_the_0_that_an_analyst_reads(client):
    page = text_of(client.get("/", params={"statement": ONE}))
    assert "0 suppressed This is all that an analyst sees." in page
    assert "1 client matches. That is fewer than" in page


def test_a_release_answers_by_its_own_rules(client):
    page = client.get("/", params={"statement": EXAMPLES["The attack"], "release": "18.3"})
    assert "isolating" in page.text
    assert client.get("/", params={"statement": "SELECT 1", "release": "19"}).status_code == 422


@pytest.mark.parametrize(
    "address",
    [
        "/?statement={}",
        "/?statement=SELECT count(*) FROM loans WHERE status = '{}'",
        "/?statement=SELECT count(*) FROM loans&release={}",
        "/attack?noise={}",
        "/attack?people={}",
        "/map?law={}",
        "/map?sd={}",
        "/attacks/{}",
    ],
)
def test_a_script_is_text(client, address):
    page = client.get(address.format(SCRIPT.replace("/", "%2F")))
    assert "<script>alert" not in page.text


def test_bounds_are_told_in_a_line(client, lab):
    for form, complaint in (
        ({"people": "100000"}, "people: 100000 is out of bounds"),
        ({"questions": "nothing"}, "write a whole number"),
        ({"noise": SCRIPT}, "there is no"),
    ):
        page = lab.start(**form)
        assert page.status_code == 422
        assert complaint in text_of(page)
    assert client.get("/map", params={"people": "1e99"}).status_code == 422
    too_long = client.get("/", params={"statement": "SELECT " + "x" * 3000})
    assert too_long.status_code == 422
    assert "write at most 2000" in too_long.text
    assert client.get("/attacks/nothing").status_code == 404
    assert client.get("/assets/..%2Fapp.py").status_code == 404
    many = "&".join(f"people{i}=1" for i in range(100))
    assert client.get(f"/attack?{many}").status_code == 200


def test_a_body_that_is_too_long_or_no_form_is_refused(client, lab):
    assert lab.start(people="1" * 30_000).status_code == 413
    posted = client.post("/attacks", json={"people": 50}, headers=lab.own)
    assert posted.status_code == 415


FOREIGN = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_another_origin_cannot_start_anything(client, lab, headers):
    given = {"origin": lab.url, **headers} if "sec-fetch-site" in headers else headers
    posted = client.post("/attacks", data={"people": "20"}, headers=given)
    assert posted.status_code == 403


def test_another_port_of_this_machine_is_another_origin(client, lab):
    port = int(lab.url.rpartition(":")[2])
    headers = {"origin": f"http://127.0.0.1:{port + 1}", "sec-fetch-site": "same-site"}
    assert client.post("/attacks", data={"people": "20"}, headers=headers).status_code == 403


def test_another_site_may_link_here_but_load_nothing(client):
    crossing = {"sec-fetch-site": "cross-site"}
    assert client.get("/map", headers=crossing).status_code == 403
    opened = client.get("/map", headers={**crossing, "sec-fetch-mode": "navigate"})
    assert opened.status_code == 200
    assert "frame-ancestors 'none'" in opened.headers["content-security-policy"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.168.0.1", ""])
def test_another_name_for_this_machine_is_refused(client, host):
    found = client.get("/", headers={"host": f"{host}:8050" if host else host})
    assert found.status_code == 400


def test_an_attack_is_streamed_to_its_end_and_can_be_kept(client, lab):
    begun = lab.start(people=30, questions=240, noise="gaussian", size=2, seed=5)
    assert begun.status_code == 303
    address = begun.headers["location"]
    streamed = client.get(f"{address}/events").text
    assert "Done: " in streamed
    assert streamed.rstrip().endswith("event: rest\ndata:")
    assert "240 of 240 answers" in streamed
    result = client.get(f"{address}/result.json")
    assert "attachment" in result.headers["content-disposition"]
    record = result.json()
    assert record["settings"]["seed"] == 5
    page = text_of(client.get(address))
    assert f"Done: {record['score']['right']} of 30" in page
    for name in ("answers.jsonl", "queries.jsonl", "guess.jsonl"):
        kept = client.get(f"{address}/files/{name}")
        assert kept.status_code == 200
        assert kept.text.startswith('{"countleak"')
    report = client.get(f"{address}/files/report.html")
    assert "attachment" in report.headers["content-disposition"]
    assert f"{record['score']['right']} of 30" in text_of(report)
    assert "simulated" in text_of(report)
    assert client.get(f"{address}/files/..%2F..%2Fetc%2Fpasswd").status_code == 404


def test_a_system_that_refuses_the_attack_is_quoted(client, lab):
    address = lab.start(people=20, questions=40, noise="18.3").headers["location"]
    streamed = client.get(f"{address}/events").text
    assert "The attack ended without a result." in streamed
    assert "isolating" in streamed


def test_an_attack_stops_and_resumes(client, lab):
    begun = lab.start(people=20, questions=100, noise="gaussian", slowly="yes")
    address = begun.headers["location"]
    with client.stream("GET", f"{address}/events") as stream:
        lines = stream.iter_lines()
        assert any("Asking" in line for line in lines)
        stopped = client.post(f"{address}/stop", data={}, headers={**lab.own, **FORM})
        assert stopped.status_code == 303
        assert any("Stopped. All answers so far are kept." in line for line in lines)
    page = client.get(address)
    assert "Resume" in page.text
    assert "90 of" not in page.text
    resumed = client.post(f"{address}/resume", data={}, headers={**lab.own, **FORM})
    assert resumed.status_code == 303
    assert "Done: " in client.get(f"{address}/events").text


FORM = {"content-type": "application/x-www-form-urlencoded"}
