"""Colour only on a terminal, and nothing from outside that a terminal would act on."""

from typing import Any

import pytest
from tests.cli.conftest import Stream

from subluminal.cli.output import Output, shown


def test_errors_are_coloured_on_a_terminal_only(sub: Any) -> None:
    assert sub("zzzzz").err.startswith("error: ")
    assert sub("zzzzz", terminal=True).err.startswith("\x1b[31merror\x1b[0m: ")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_refused(
    sub: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert sub("zzzzz", terminal=True).err.startswith("error: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("grüße 日本 😀", "grüße 日本 😀"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x7f\x9b", "\\x7f\\x9b"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("lone\ud800", "lone\\ud800"),
    ],
    ids=ascii,
)
def test_hidden_characters_are_shown(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_data_to_stdout_and_talk_to_stderr() -> None:
    out, err = Stream(), Stream()
    output = Output(out, err)
    output.line("row")
    output.json({"a": 1})
    output.data(b"\xff"[:0] + b"raw\n")
    output.talk("working")
    output.warning("odd \x1b", "look")
    assert out.text() == 'row\n{"a":1}\nraw\n'
    assert err.text() == "working\nwarning: odd \\x1b\nhint: look\n"


def test_paint_follows_stdout() -> None:
    assert Output(Stream(), Stream()).paint("x", "green") == "x"
    assert Output(Stream(terminal=True), Stream()).paint("x", "green") == "\x1b[32mx\x1b[0m"


def test_progress_is_one_line_of_a_terminal_and_nothing_in_a_pipe():
    screen, pipe = Stream(terminal=True), Stream()
    for stream in (screen, pipe):
        out = Output(Stream(), stream)
        out.progress("1 of 2")
        out.progress()
    assert screen.text() == "\r\x1b[K1 of 2\r\x1b[K"
    assert pipe.text() == ""
