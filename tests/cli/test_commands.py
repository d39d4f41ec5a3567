"""Snapshots of the first commands: exit code, stdout, stderr."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from subluminal import __version__
from subluminal.cli.table import COMMANDS


def test_version(sub: Any) -> None:
    ran = sub("version")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"sub {__version__} (Interface Pack 0.1.0, Python 3.")
    assert sub("--version") == sub("-V") == ran


def test_version_as_json(sub: Any) -> None:
    ran = sub("version", "--json")
    assert ran.code == 0
    assert list(json.loads(ran.out)) == ["version", "pack", "python"]
    assert ran.out.count("\n") == 1


EMPTY_HASH = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize(
    ("words", "stdin", "expected"),
    [
        ([], b' { "b": 2, "a": 1.0 }\n', (0, '{"a":1,"b":2}', "")),
        (["--hash"], b"{}", (0, f"{EMPTY_HASH}\n", "")),
        (
            ["--json"],
            b"{}",
            (0, f'{{"profile":"pack","canonical":"{{}}","sha256":"{EMPTY_HASH}"}}\n', ""),
        ),
        (["--profile", "jcs"], b"[1E21]", (0, "[1e+21]", "")),
        (["--profile", "jcs_nfc"], '"e\u0301"'.encode(), (0, '"\u00e9"', "")),
        ([], b'{"a":1,"a":2}', (2, "", "error: duplicate key 'a'\n")),
        ([], b"", (2, "", "error: not JSON: expecting value at line 1 column 1\n")),
        ([], b"NaN", (2, "", "error: NaN is not JSON\n")),
        ([], b"[" * 600 + b"]" * 600, (2, "", "error: nested deeper than 512 levels\n")),
        (
            ["--profile", "jcs"],
            b"9007199254740993",
            (
                2,
                "",
                "error: an integer cannot be written as a double without changing it\n"
                "hint: RFC 8785 only has doubles: write the number as a string, "
                "or use profile `pack`\n",
            ),
        ),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_canonical(
    sub: Any, words: list[str], stdin: bytes, expected: tuple[int, str, str]
) -> None:
    assert sub("canonical", *words, stdin=stdin) == expected


def test_canonical_leaves_a_line_for_the_prompt(sub: Any) -> None:
    assert sub("canonical", stdin=b"{}", terminal=True).out == "{}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_ask_sub_itself(sub: Any, shell: str) -> None:
    ran = sub("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert "sub __complete" in ran.out


def completed(sub: Any, *words: str) -> list[str]:
    ran = sub("__complete", *words)
    assert (ran.code, ran.err) == (0, "")
    return str(ran.out).splitlines()


def test_completion_of_a_command(sub: Any) -> None:
    assert completed(sub, "ver") == ["version"]
    assert completed(sub, "zzz") == []
    assert completed(sub, "") == [name for name in COMMANDS if not name.startswith("__")]
    assert completed(sub) == completed(sub, "")


def test_completion_of_options_and_their_values(sub: Any) -> None:
    assert completed(sub, "canonical", "--h") == ["--help", "--hash"]
    assert completed(sub, "canonical", "--profile", "j") == ["jcs", "jcs_nfc"]
    assert completed(sub, "completion", "f") == ["fish"]
    assert completed(sub, "canonicle", "--") == []


def test_completion_of_a_group(sub: Any) -> None:
    assert "lint" in completed(sub, "policy", "")
    assert completed(sub, "policy", "li") == ["lint"]


def test_the_bash_script_completes_in_bash(sub: Any, tmp_path: Path) -> None:
    """The script runs in a real shell, against a `sub` that answers as ours would."""
    answer = "\n".join(completed(sub, "comp"))
    fake = tmp_path / "sub"
    fake.write_text(f"#!/bin/sh\nprintf '%s\\n' '{answer}'\n")
    fake.chmod(0o755)
    script = sub("completion", "bash").out + (
        'COMP_WORDS=(sub comp); COMP_CWORD=1; _sub; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    shell = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (shell.stdout, shell.stderr) == ("completion\n", "")
