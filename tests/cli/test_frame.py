"""The frame of `sub`: finding commands, the style of errors, exit codes, bug reports."""

import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from subluminal.cli import frame
from subluminal.cli.table import COMMANDS, Command, Group
from subluminal.errors import InvalidInput, Problem

COMMAND_LINES = [
    words
    for name, entry in COMMANDS.items()
    for words in (
        [[name, verb] for verb in entry.commands] if isinstance(entry, Group) else [[name]]
    )
]


def test_without_words_the_commands_are_listed(sub: Any) -> None:
    ran = sub()
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Subluminal decides, ")
    assert re.search(r"^  version +show the versions of sub, ", ran.out, re.MULTILINE)
    assert "__complete" not in ran.out
    assert sub("--help") == sub("help") == sub("-h") == ran


@pytest.mark.parametrize("words", COMMAND_LINES, ids=" ".join)
def test_every_command_has_help_with_an_example(sub: Any, words: list[str]) -> None:
    ran = sub(*words, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"usage: sub {' '.join(words)} ")
    assert re.search(r"^example:\n  (\S.* )?sub ", ran.out, re.MULTILINE)


def test_help_is_as_wide_as_columns_says(sub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    narrow = sub("canonical", "--help").out.partition("options:")[2].partition("example:")[0]
    monkeypatch.delenv("COLUMNS")
    wide = sub("canonical", "--help").out.partition("options:")[2].partition("example:")[0]
    assert max(map(len, narrow.splitlines())) <= 50 < max(map(len, wide.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["verison"],
            "error: unknown command `verison`\nhint: did you mean `version`?\n",
        ),
        (["zzzzz"], "error: unknown command `zzzzz`\nhint: "),
        (
            ["canonical", "--hsah"],
            "error: unrecognized arguments: --hsah\nhint: did you mean `--hash`?\n",
        ),
        (
            ["canonical", "--zzzzz"],
            "error: unrecognized arguments: --zzzzz\nhint: see `sub canonical --help`\n",
        ),
        (
            ["canonical", "--profile", "x"],
            "error: argument --profile: invalid choice: 'x' (choose from ",
        ),
        (["canonical", "--prof", "jcs"], "error: unrecognized arguments: --prof jcs\nhint: "),
        (["version", "now"], "error: unrecognized arguments: now\nhint: see `sub version --help`"),
        (["ver\x1b[31msion"], "error: unknown command `ver\\x1b[31msion`\nhint: "),
    ],
    ids=repr,
)
def test_a_wrong_command_line_is_one_sentence_and_a_hint(
    sub: Any, words: list[str], error: str
) -> None:
    ran = sub(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(error)
    assert "Traceback" not in ran.err


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a command `broken` into the table that raises what it is told."""
    module = type(sys)("tests.cli.broken_command")

    def breaking_with(error: BaseException) -> None:
        def run(args: Any, out: Any) -> int:
            raise error

        module.EXAMPLE = "sub broken"
        module.add_arguments = lambda parser: None
        module.run = run
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(frame.COMMANDS, "broken", Command("breaks", module.__name__))

    return breaking_with


def test_a_bug_leaves_a_report_and_no_traceback(sub: Any, broken: Any, own_home: Path) -> None:
    broken(ZeroDivisionError("division by secret"))
    ran = sub("broken")
    (report,) = (own_home / "reports").iterdir()
    assert (ran.code, ran.out) == (70, "")
    assert ran.err == (
        f"error: a bug in sub: ZeroDivisionError\nhint: please report it and attach `{report}`\n"
    )
    text = report.read_text("utf-8")
    assert "command `broken`" in text
    assert "ZeroDivisionError: division by secret" in text
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert stat.S_IMODE(report.parent.stat().st_mode) == 0o700


def test_a_report_names_the_command_not_its_arguments(
    sub: Any, broken: Any, own_home: Path
) -> None:
    broken(KeyError("x"))
    sub("broken", "--token", "hunter2")
    # argparse refuses the words before the command runs, so there is no report at all.
    assert not (own_home / "reports").exists()
    sub("broken")
    (report,) = (own_home / "reports").iterdir()
    assert "hunter2" not in report.read_text("utf-8")


def test_a_report_that_cannot_be_written_at_home_goes_to_the_temporary_folder(
    sub: Any, broken: Any, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_home.write_text("a file where the home should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    broken(ValueError())
    assert str(tmp_path) in sub("broken").err
    assert len(list(tmp_path.iterdir())) == 1


def test_a_report_that_can_be_written_nowhere(
    sub: Any, broken: Any, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_home.write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(own_home / "x"))
    broken(ValueError())
    ran = sub("broken")
    assert ran.code == 70
    assert ran.err.endswith("hint: run it again with SUB_DEBUG=1\n")


def test_sub_debug_prints_the_traceback_besides(
    sub: Any, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUB_DEBUG", "1")
    broken(ZeroDivisionError())
    assert sub("broken").err.startswith("Traceback (most recent call last)")


def test_every_problem_of_a_file_is_printed(sub: Any, broken: Any) -> None:
    broken(InvalidInput([Problem("first", "f", 1, 2, hint="mend"), Problem("second", "f", 3)]))
    ran = sub("broken")
    assert ran.code == 2
    assert ran.err == "error: f:1:2: first\nhint: mend\nerror: f:3: second\n"


def test_an_interrupt_is_the_exit_code_of_its_signal(sub: Any, broken: Any) -> None:
    broken(KeyboardInterrupt())
    assert sub("broken") == (130, "", "")


def test_a_reader_that_has_seen_enough_is_no_bug() -> None:
    """`sub … | head -0`: no traceback, no report, the exit code of SIGPIPE."""
    script = "import sys; from subluminal.cli.main import main; sys.exit(main())"
    text = b'"' + b"x" * 1_000_000 + b'"'
    with subprocess.Popen(
        [sys.executable, "-c", script, "canonical"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(text)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 141


def test_a_group_lists_its_commands(sub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group("things to do", {"one": Command("the first", "subluminal.cli.commands.version")})
    monkeypatch.setitem(frame.COMMANDS, "thing", group)
    ran = sub("thing")
    assert ran.out == (
        "usage: sub thing COMMAND …\n\nThings to do.\n\n  one          the first\n\n"
        "See `sub thing COMMAND --help` for details and an example.\n"
    )
    assert sub("thing", "--help") == ran
    assert sub("thing", "one").out.startswith("sub 0.")
    assert sub("thing", "two") == (
        2,
        "",
        "error: unknown command `two`\nhint: one of `one`\n",
    )
