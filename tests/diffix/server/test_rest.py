"""The REST interface: what its description promises, and what it refuses."""

import re

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.diffix.server.conftest import QUERY
from tests.diffix.server.test_wire import COUNT, locked, wait_until_one_waits

# What has values that could be wrong.
TAKING_VALUES = ("/api/queries", "/api/queries/{query_id}")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_whatever_the_description_allows_or_forbids_is_answered_as_described(server, mode):
    schema = schemathesis.openapi.from_url(f"{server.rest}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == 5
    for operation in operations:

        @given(operation.as_strategy(generation_mode=mode))
        @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
        def check(case):
            case.call_and_validate(checks=CHECKS)

        if mode is GenerationMode.POSITIVE or operation.path in TAKING_VALUES:
            check()


def hand_in(server, statement, database="bank"):
    given = {"query": {"statement": statement, "data_source_name": database}}
    return httpx.post(f"{server.rest}/api/queries", json=given)


def test_an_unknown_data_source_or_query_is_not_found(server):
    assert hand_in(server, QUERY, "nothing").status_code == 404
    assert httpx.get(f"{server.rest}/api/queries/nothing").status_code == 404


@pytest.mark.parametrize(
    "statement", ["SELECT 1", "SHOW all", "SELECT relname FROM pg_class", "x ("]
)
def test_only_questions_are_answered(server, statement):
    found = hand_in(server, statement).json()["query_id"]
    answer = httpx.get(f"{server.rest}/api/queries/{found}?wait=10").json()["query"]
    assert answer["state"] == "error"
    assert answer["rows"] == []


def test_an_answer_comes_with_one_request(server):
    given = {"query": {"statement": QUERY, "data_source_name": "bank"}}
    both = httpx.post(f"{server.rest}/api/queries?wait=10", json=given).json()
    assert both["success"]
    assert both["query"]["completed"]
    assert both["query"]["id"] == both["query_id"]
    again = httpx.get(f"{server.rest}/api/queries/{both['query_id']}").json()["query"]
    assert again == both["query"]
    with server.connect() as connection:
        assert [list(connection.execute(QUERY).fetchone())] == [r["row"] for r in again["rows"]]
    assert httpx.post(f"{server.rest}/api/queries?wait=31", json=given).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        rb'{"query": {"statement": "\ud800", "data_source_name": "bank"}}',
        rb'{"query": {"statement": "SELECT 1", "data_source_name": "\udfff"}}',
        b'{"query": {"statement": "\xff", "data_source_name": "bank"}}',
        b"{",
        b"[" * 100_000,
        b"",
    ],
)
def test_what_is_no_json_is_a_bad_request(server, body):
    headers = {"content-type": "application/json"}
    found = httpx.post(f"{server.rest}/api/queries", content=body, headers=headers)
    assert found.status_code == 400
    assert found.json()["detail"].startswith("Invalid JSON")


@pytest.mark.parametrize("part", [b"[]", b"{}", b'""', b"1", b'"\\""', b'"k":[1'])
def test_a_body_of_many_parts_is_not_read(server, part):
    """Objects of them all would take a tenth of a second, in which nobody else is answered."""
    body = b'{"query": {"statement": [' + b",".join([part] * 100_000) + b"]}}"
    headers = {"content-type": "application/json"}
    found = httpx.post(f"{server.rest}/api/queries", content=body, headers=headers)
    assert (found.status_code, found.json()) == (
        400,
        {"detail": "Invalid JSON, or of more than 200 parts."},
    )


def test_a_long_statement_is_one_part_whatever_it_holds(server):
    chosen = ", ".join(f"'\"[{{{k}'" for k in range(2000))
    found = hand_in(server, f"SELECT count(*) FROM loans WHERE status IN ({chosen})").json()
    answer = httpx.get(f"{server.rest}/api/queries/{found['query_id']}?wait=10").json()["query"]
    assert answer["state"] == "completed"


def test_groups_come_with_their_stars_and_columns(server):
    sql = "SELECT duration, status, count(*) AS people FROM loans GROUP BY status, duration"
    found = hand_in(server, sql).json()["query_id"]
    answer = httpx.get(f"{server.rest}/api/queries/{found}?wait=10").json()["query"]
    assert answer["columns"] == ["duration", "status", "people"]
    assert all(row["released"] and row["row"][1] in "ABCD*" for row in answer["rows"])


def test_a_query_is_cancelled(server, postgres_loans):
    with locked(postgres_loans) as holder:
        found = hand_in(server, COUNT, "bank_pg").json()["query_id"]
        wait_until_one_waits(holder, server)
        running = httpx.get(f"{server.rest}/api/queries/{found}").json()["query"]
        assert (running["state"], running["completed"]) == ("running", False)
        cancelled = httpx.post(f"{server.rest}/api/queries/{found}/cancel", json={}).json()["query"]
        assert (cancelled["state"], cancelled["completed"]) == ("cancelled", True)
    again = hand_in(server, COUNT, "bank_pg").json()["query_id"]
    answer = httpx.get(f"{server.rest}/api/queries/{again}?wait=10").json()["query"]
    assert answer["state"] == "completed"


def test_where_no_token_is_needed_other_host_names_are_refused(server):
    for host in ("evil.example", "evil.example:80", ""):
        found = httpx.get(f"{server.rest}/api/data_sources", headers={"host": host})
        assert found.status_code == 400
    port = server.rest.rpartition(":")[2]
    for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", "[::1]", f"[::1]:{port}"):
        found = httpx.get(f"{server.rest}/api/data_sources", headers={"host": host})
        assert found.status_code == 200


def test_the_tables_are_listed(server):
    sources = httpx.get(f"{server.rest}/api/data_sources").json()["data_sources"]
    assert [source["name"] for source in sources] == ["bank", "bank_pg"]
    assert sources[0]["tables"]["loans"]["client_id"] == "whole"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_what_a_page_elsewhere_could_post_is_refused(server, kind):
    said = '{"query": {"statement": "SELECT count(*) FROM loans", "data_source_name": "bank"}}'
    headers = {"content-type": kind} if kind else {}
    found = httpx.post(f"{server.rest}/api/queries", content=said, headers=headers)
    assert found.status_code == 415
    assert "content-type: application/json" in found.text


def test_there_is_a_page_to_read(server):
    assert httpx.get(server.rest).headers["location"] == "/docs"
    page = httpx.get(f"{server.rest}/docs").text
    assert "POST /api/queries/{query_id}/cancel" in page
    # Nothing in it is loaded from anywhere.
    assert not re.search("https?:|<script|<link|src=", page)
    assert httpx.get(f"{server.rest}/api/health").json()["status"] == "ok"
