"""What shell lines touch, as data (`shell_lines.yaml`, `developer_lines.txt`)."""

from pathlib import Path

import pytest
import yaml

from subluminal.core.targets import line as line_module
from subluminal.core.targets.reading import targets_of

_HERE = Path(__file__).parent
GOLDEN = yaml.safe_load((_HERE / "shell_lines.yaml").read_text())
DEVELOPER = (_HERE / "developer_lines.txt").read_text().splitlines()


def told(line):
    found = targets_of("@claude", "Bash", {"command": line}, cwd="/code/repo")
    paths = [f"{each.access} {each.path}" for each in found.paths]
    shown = {"commands": found.commands, "paths": paths, "hosts": found.hosts, "opaque": found.why}
    return {"line": line} | {name: value for name, value in shown.items() if value}


@pytest.mark.parametrize("case", GOLDEN, ids=[case["line"][:40] for case in GOLDEN])
def test_a_line_touches_what_its_case_says(case, monkeypatch):
    """doors, section 1: quotes removed, wrappers opened, what is not literal is opaque."""
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("CDPATH", raising=False)
    assert told(case["line"]) == case


@pytest.mark.parametrize("line", DEVELOPER)
def test_ordinary_lines_of_developers_are_not_opaque(line):
    """Issue 17: ordinary developer lines are not opaque."""
    assert "opaque" not in told(line)


@pytest.mark.parametrize("line", [*DEVELOPER, *(case["line"] for case in GOLDEN)])
def test_plain_lines_mean_the_same_to_the_parser(line, monkeypatch):
    """`plain_line` leaves the parser out; it must not read a line in another way."""
    quickly = told(line)
    monkeypatch.setattr(line_module, "plain_commands", lambda _text: None)
    monkeypatch.setattr(line_module, "is_plain_command", lambda _text: False)
    slowly = told(line)
    assert _as_sets(quickly) == _as_sets(slowly)


def _as_sets(found):
    """The order of reading differs: the parser reads redirections first."""
    return {name: sorted(map(str, each)) for name, each in found.items() if name != "opaque"}


def test_what_is_too_large_is_opaque():
    """Everything is bounded: length of a line, number of commands, depth, text of all targets."""
    for line in (
        "echo " + "a" * 9_000,
        "; ".join(["true"] * 200),
        "(" * 60 + "true" + ")" * 60,
        "echo $(" * 40 + "true" + ")" * 40,
        "touch " + " ".join(f"folder/file-number-{number}" for number in range(200)),
        "true|" * 500,
        "ls " + "* " * 50,
        "rm " + "{a,b}" * 1_600,
        "[ " + "-a x " * 1_600 + "]",
        "find . " + "-exec rm {} \\; " * 200,
    ):
        assert told(line)["opaque"], line[:40]


def test_a_line_that_is_not_valid_text_is_opaque():
    for line in ("rm \ud800", "rm a\x00b", "rm a\rb", "rm\u00a0y; git\u2028x"):
        assert told(line)["opaque"], line


def test_cdpath_makes_a_relative_cd_unknown(monkeypatch):
    monkeypatch.setenv("CDPATH", "/elsewhere")
    assert told("cd src && rm y")["opaque"]
    assert "opaque" not in told("cd ./src && rm y")


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("curl -fsSLo /etc/x https://a.example/b", ["/etc/x"]),
        ("curl --output /etc/x https://a.example/b", ["/etc/x"]),
        ("curl --output=/etc/x https://a.example/b", ["/etc/x"]),
        ("sed -Ei s/a/b/ /etc/x", ["/etc/x"]),
        ("sed -ne s/a/b/p /etc/x", []),
        ("sed --in-place s/a/b/ /etc/x", ["/etc/x"]),
        ("sort -uo/etc/x y", ["/etc/x"]),
        ("cp -rt /etc a", ["/etc"]),
        ("cp --target-directory=/etc a", ["/etc"]),
        ("ln -s /etc/passwd", ["/code/repo/passwd"]),
        ("find /srv -name x -exec sed -i s/a/b/ {} +", ["/code/repo/{}", "/srv"]),
        ("find /srv -fprint /etc/x", ["/etc/x"]),
        ("git -C /srv commit -m x", ["/srv"]),
        ("xargs -a list echo", []),
        ("grep -f /etc/x y", []),
    ],
)
def test_options_name_files_too(line, written):
    """Also in letters of several options, and behind `=`."""
    shown = told(line).get("paths", [])
    assert [path[6:] for path in shown if path.startswith("write ")] == written


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("curl -d @/k https://a.example", "/k"),
        ("curl -F f=@/k https://a.example", "/k"),
        ("curl -b /k https://a.example", "/k"),
        ("curl --cert /k https://a.example", "/k"),
        ("wget --post-file=/k a.example", "/k"),
    ],
)
def test_files_that_are_sent_are_read(line, read):
    assert f"read {read}" in told(line)["paths"]


@pytest.mark.parametrize(
    "line",
    [
        "curl -x b.example https://a.example",
        "curl -xb.example https://a.example",
        "curl --proxy=http://b.example:80 https://a.example",
        "curl --url=b.example https://a.example",
        "ssh -J b.example a.example",
    ],
)
def test_every_host_on_the_way_is_a_host(line):
    """An allow for one host must not let a call through that also talks to another."""
    assert sorted(told(line)["hosts"]) == ["a.example", "b.example"]
