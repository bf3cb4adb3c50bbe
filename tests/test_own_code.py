"""Modules of the current folder, by `module:name`."""

import sys

import pytest

from countleak.errors import InputError
from countleak.own_code import load


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_things.py").write_text(
        "class Noise: ...\n\n\ndef count(): ...\n\n\nvalue = 3\n"
    )
    (tmp_path / "needs_more.py").write_text("import not_installed_anywhere\n")
    yield
    sys.modules.pop("own_things", None)


def test_a_function_and_a_class_are_found():
    assert load("own_things:count").__name__ == "count"
    assert load("own_things:Noise", "class").__name__ == "Noise"


@pytest.mark.parametrize(
    ("word", "kind", "said"),
    [
        ("absent:count", "function", "there is no module 'absent' in this folder; write module:fu"),
        ("absent:Noise", "class", "write module:class"),
        ("own_things:value", "function", "has no function of that name; it has Noise, count"),
        ("own_things:count", "class", "has no class of that name; it has Noise"),
        ("needs_more:count", "function", "needs_more.py needs the module 'not_installed_anywhere'"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(word, kind, said):
    with pytest.raises(InputError, match=said) as refused:
        load(word, kind)
    assert "\n" not in str(refused.value)
