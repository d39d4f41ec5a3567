"""Literal lines: their words are exactly those that a shell makes of them; all others are none."""

import subprocess
from pathlib import Path

import pytest
import yaml

from subluminal.core.targets.found import Found
from subluminal.core.targets.line import read_line
from subluminal.core.targets.literal import literal_commands

ORDINARY = yaml.safe_load(
    (Path(__file__).parents[2] / "packs" / "shell_lines.yaml").read_text("utf-8")
)["ordinary"]
LITERAL = {
    "ls": [["ls"]],
    "git log --oneline 2>&1 | head -3 && ls 'a b' > /dev/null 2>&1; echo x || true": [
        ["git", "log", "--oneline"],
        ["head", "-3"],
        ["ls", "a b"],
        ["echo", "x"],
        ["true"],
    ],
    "ls &>/dev/null </dev/null": [["ls"]],
    'grep --include="*.py" x .': [["grep", "--include=*.py", "x", "."]],
    "git diff HEAD^ -- x": [["git", "diff", "HEAD^", "--", "x"]],
    "git show HEAD~1": [["git", "show", "HEAD~1"]],
    "echo a\\ b \"c\\$d\" 'e'f": [["echo", "a b", "c$d", "ef"]],
    "echo ''": [["echo", ""]],
    "echo {} {a}": [["echo", "{}", "{a}"]],
    "a;b;": [["a"], ["b"]],
}
NOT_LITERAL = [
    *("echo $x", 'echo "$x"', "echo ${x}", "echo $(id)", "echo `id`", 'echo "`id`"', "echo $((1))"),
    *("echo ~", "echo ~/x", "echo ~me", "echo a*", "echo a?", "echo [ab]", "echo {a,b}", "=ls"),
    *(
        "echo $'a'",
        'echo $"a"',
        "X=1 ls",
        "X=1",
        "ls > x",
        "ls 2> x",
        "ls >> x",
        "ls < x",
        "ls >| x",
    ),
    *("ls 3>&1", "ls 1>&2", "ls >&2", "ls 2>&-", "ls >/dev/nullx", "ls >/dev/null x", "cat <<< x"),
    *("a & b", "a &", "a |& b", "a\nb", "a\rb", "a\tb", "a # b", "(a)", "{ a; }", "! a", "a;;b"),
    *("if a; then b; fi", "for x in a; do b; done", "while a; do b; done", "case x in x) a;; esac"),
    *("f() { a; }", "[ -f x ]", "[[ -f x ]]", "((1))", "export X=1", "unset X", "a <(b)", "a >(b)"),
    *(
        "echo 'a",
        'echo "a',
        "a &&",
        "| a",
        "a \u00a0b",
        "a\u200b",
        "ls " + "a" * 9_000,
        "a | " * 500,
    ),
    "cat <<E\nE",
]


@pytest.mark.parametrize("line", LITERAL)
def test_the_words_of_a_literal_line(line: str) -> None:
    assert literal_commands(line) == LITERAL[line]


@pytest.mark.parametrize("line", NOT_LITERAL)
def test_a_line_with_anything_else_is_not_literal(line: str) -> None:
    assert literal_commands(line) is None


@pytest.mark.parametrize("line", [*LITERAL, *ORDINARY])
@pytest.mark.parametrize("status", [0, 1])
def test_a_real_bash_runs_the_same_words(line: str, status: int, tmp_path: Path) -> None:
    """Every program is a function that tells its words, and succeeds or fails."""
    commands = literal_commands(line)
    assert commands is not None
    functions = [TOLD.format(name=argv[0], status=status) for argv in commands]
    printed = bash("\n".join([*functions, "exec 9>&1", line]), tmp_path)
    expected = {"".join(f"<{word}>" for word in argv) for argv in commands}
    assert printed
    assert set(printed.splitlines()) <= expected


TOLD = """function {name} {{
    builtin printf -v told '<%s>' {name} "$@"; builtin printf '%s\\n' "$told" >&9; return {status}
}}"""


def bash(script: str, cwd: Path) -> str:
    words = ["bash", "--noprofile", "--norc", "-c", script]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False).stdout


def test_reading_without_a_look_at_the_machine(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "a.py").touch()
    cwd = str(tmp_path)
    for looks, paths in ((True, {f"{cwd}/link/x", "/etc/x"}), (False, {f"{cwd}/link/x"})):
        found = Found(cwd, "/home/me", looks=looks)
        read_line("touch link/x", found, (cwd,))
        assert {target.path for target in found.targets([]).paths} == paths
    for looks, opaque in ((True, False), (False, True)):
        found = Found(cwd, "/home/me", looks=looks)
        read_line("cat *.py", found, (cwd,))
        assert found.targets([]).opaque is opaque
