"""Groups of options, what applies to what, and numbers that can be used."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer

from countleak.cli.option_rules import ABSENT, ANY_NUMBER, GIVEN, check_applies, needs
from countleak.cli.verbs import make_verb
from countleak.errors import InputError


@needs({"--bound": {"--mechanism": ("uniform",)}, "--sigma": {"--mechanism": ("gaussian", "l*")}})
@dataclass(frozen=True)
class Noise:
    people: Annotated[int, typer.Option()]
    mechanism: Annotated[str, typer.Option()] = "gaussian"
    sigma: Annotated[float, typer.Option()] = 4.0
    bound: Annotated[int, typer.Option()] = 5


def words_heard(*words, table=None):
    heard = {}

    def verb(
        noise: Noise,
        plan: Annotated[str | None, typer.Argument()] = None,
        demo: Annotated[bool, typer.Option("--demo")] = False,
        limit: Annotated[float, typer.Option(), ANY_NUMBER] = 0.0,
        pair: Annotated[tuple[float, float] | None, typer.Option()] = None,
    ) -> None:
        """Say hello."""
        heard.update(noise=noise, plan=plan, demo=demo, limit=limit)

    command = make_verb(needs(table or {})(verb), "verb")
    with command.make_context("verb", ["--people", "9", *words]) as context:
        command.invoke(context)
    return heard


def test_a_group_is_handed_over_as_one_object():
    heard = words_heard("plan", "--mechanism", "laplace", "--sigma", "2")
    assert heard["noise"] == Noise(9, "laplace", 2.0, 5)
    assert heard["plan"] == "plan"


def test_defaults_apply_to_everything():
    assert words_heard("--mechanism", "round")["noise"] == Noise(9, "round")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("--bound", "5"),
            "--bound does not apply to --mechanism gaussian; it needs --mechanism uniform",
        ),
        (
            ("--mechanism", "round", "--sigma", "4"),
            "--sigma does not apply to --mechanism round; it needs --mechanism gaussian or "
            "--mechanism l...",
        ),
        (("--sigma", "nan"), "--sigma is nan; give a finite number"),
        (("--sigma", "-inf"), "--sigma is -inf; give a finite number"),
        (("--pair", "1", "inf"), "--pair is inf; give a finite number"),
        (("--people", "99999999999999999999"), "--people is 1e[+]20; whole numbers go up to 9.22"),
    ],
    ids=str,
)
def test_what_does_not_apply_is_one_line(words, complaint):
    with pytest.raises(InputError, match=complaint):
        words_heard(*words)


def test_infinities_are_allowed_where_that_is_declared():
    assert words_heard("--limit", "inf")["limit"] == float("inf")


@pytest.mark.parametrize(
    ("table", "words", "complaint"),
    [
        ({"--sigma": {"--demo": GIVEN}}, ("--sigma", "4"), "--sigma does not apply without --demo"),
        ({"--sigma": {"--demo": GIVEN}}, ("--sigma", "4", "--demo"), None),
        ({"--demo": {"PLAN": ABSENT}}, ("plan", "--demo"), "--demo does not apply with PLAN"),
        ({"--demo": {"PLAN": ABSENT}}, ("--demo",), None),
        ({"--demo": {"PLAN": ("a", "b")}}, ("c", "--demo"), "does not apply to c; it needs a or b"),
        ({"--demo": {"PLAN": ("a",)}}, ("--demo",), "--demo does not apply without a"),
        ({"PLAN": {"--demo": ABSENT}}, ("a", "--demo"), "PLAN does not apply with --demo"),
    ],
    ids=str,
)
def test_a_verbs_own_table(table, words, complaint):
    if complaint is None:
        assert words_heard(*words, table=table)
    else:
        with pytest.raises(InputError, match=complaint):
            words_heard(*words, table=table)


def test_one_word_of_a_list_is_enough():
    table = {"--multiplier": {"--decoder": ("dini-*",)}}
    check_applies(table, ["--multiplier"], {"--decoder": ["dmt", "dini-centre"]})
    check_applies(table, ["--multiplier"], {"--decoder": "dmt,dini-centre"})
    with pytest.raises(InputError, match="does not apply to --decoder dmt; it needs"):
        check_applies(table, ["--multiplier"], {"--decoder": "dmt"})


def test_help_lists_the_options_of_a_group_under_what_it_says_of_itself(run):
    shown = run("audit", "--help").out
    titles = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles[:3] == ["Arguments:", "Options:", "The people asked about:"]
    assert shown.index("--folder") < shown.index("The people asked about:")
    assert "TargetWord" not in shown
