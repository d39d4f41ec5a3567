"""`config.toml`: valid settings are read, mistakes are reported with their line."""

from pathlib import Path

import pytest

from subluminal.config.loading import MAX_SETTINGS_BYTES, line_of, load_settings, parse_settings
from subluminal.config.settings import Settings
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import InvalidInput, SubluminalError

DOCUMENTED = b"""
[ledger]
keep_days = 30
[record]
mode = "full"            # off | metadata | full

[limits]
max_inspect_bytes = 2097152

[servers.github]
grace_ms = 5000
[[servers.github.secret_bindings]]
inject_as = "GITHUB_TOKEN"
secret_ref = "github_token"
source = "keychain"
"""


def problems(text: str) -> list[tuple[str, str | None]]:
    with pytest.raises(InvalidInput) as refused:
        parse_settings(text.encode(), "config.toml")
    return [(str(problem), problem.hint) for problem in refused.value.problems]


def test_the_documented_example_is_read() -> None:
    settings = parse_settings(DOCUMENTED, "config.toml")
    assert settings.ledger.keep_days == 30
    assert settings.record.mode == "full"
    assert settings.limits.max_inspect_bytes == 2_097_152
    assert settings.limits.max_preview_bytes == 16_384
    (binding,) = settings.servers["github"].secret_bindings
    assert (binding.source, binding.redact) == (SecretSource.KEYCHAIN, True)


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    assert load_settings(str(tmp_path / "config.toml")) == Settings()


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"")
    assert load_settings(str(file)) == Settings()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[ledger]\n\nkeep_day = 3\n",
            ("config.toml:3: unknown field `keep_day` in `[ledger]`", "did you mean `keep_days`?"),
        ),
        (
            '# settings\n[record]\nmode = "all"\n',
            ("config.toml:3: `mode`: unknown value `all`", "one of `full`, `metadata`, `off`"),
        ),
        (
            "[ledger]\nkeep_days = '90'\n",
            ("config.toml:2: `keep_days`: expected a whole number, got a string `90`", None),
        ),
        (
            "[ledger]\nkeep_days = -1\n",
            ("config.toml:2: `keep_days`: expected a whole number of at least 1, got `-1`", None),
        ),
        (
            "ledgers = 1\n",
            ("config.toml:1: unknown field `ledgers`", "did you mean `ledger`?"),
        ),
        (
            "servers.git.grace = 1\n",
            (
                "config.toml:1: unknown field `grace` in `[servers.git]`",
                "did you mean `grace_ms`?",
            ),
        ),
        (
            "[servers]\ngit = { grace_ms = 'x' }\n",
            ("config.toml:2: `grace_ms`: expected a whole number, got a string `x`", None),
        ),
        (
            '[servers."my server"]\ngrace_ms = true\n',
            ("config.toml:2: `grace_ms`: expected a whole number, got true or false", None),
        ),
        (
            "[[servers.git.secret_bindings]]\ninject_as = 'A'\nsecret_ref = 'a'\nsource = 'env'\n"
            "[[servers.git.secret_bindings]]\ninject_as = 'B'\nsecret_ref = 'b'\nsource = 'vault'\n",
            (
                "config.toml:8: `source`: unknown value `vault`",
                "one of `env`, `keychain`, `file`",
            ),
        ),
        (
            "[[servers.git.secret_bindings]]\ninject_as = 'A'\nsource = 'env'\n",
            ("config.toml:1: `secret_bindings`: missing field `secret_ref`", None),
        ),
        ("[ledger]\nkeep_days = \n", ("config.toml:2:13: invalid value", None)),
        ("[ledger\n", ("config.toml:1:8: expected ']' at the end of a table declaration", None)),
        ("a = [", ("config.toml: invalid value", None)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_mistake_is_reported_with_its_line(text: str, expected: tuple[str, str | None]) -> None:
    assert problems(text) == [expected]


def test_all_mistakes_are_reported_at_once() -> None:
    text = "[ledger]\nkeep_day = 3\n[record]\nmode = 1\n[nonsense]\n"
    assert sorted(message.partition(": ")[0] for message, _ in problems(text)) == [
        "config.toml:2",
        "config.toml:4",
        "config.toml:5",
    ]


def test_text_that_is_not_utf8_is_reported_with_its_line() -> None:
    with pytest.raises(InvalidInput, match=r"config\.toml:2: the file is not UTF-8 text"):
        parse_settings(b"[ledger]\nkeep_days = '\xff'\n", "config.toml")


def test_nesting_that_exhausts_the_parser_is_no_bug() -> None:
    with pytest.raises(InvalidInput, match="nested too deeply"):
        parse_settings(b"a = " + b"[" * 100_000, "config.toml")


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        SubluminalError, match=r"cannot read `.*`: it is a directory, not a regular file"
    ):
        load_settings(str(tmp_path))


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"#" * (MAX_SETTINGS_BYTES + 1))
    with pytest.raises(SubluminalError, match="larger than"):
        load_settings(str(file))


def test_only_newlines_count_as_lines() -> None:
    """U+2028 ends a line for Python's splitlines, not for TOML."""
    text = "# a\u2028b\n[ledger]\nkeep_day = 1\n"
    assert problems(text)[0][0].startswith("config.toml:3:")


TEXT = """\
top = 1
[a]
b = 2
"quoted key" = 3
'literal' = 4
c.d = 5

[[list]]
x = 1
[list.inner]
y = 2

[[list]]
x = 3
[[list.deep]]
z = 4
[a.sub] # comment
w = 1
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 1),
        (("a",), 2),
        (("a", "b"), 3),
        (("a", "quoted key"), 4),
        (("a", "literal"), 5),
        (("a", "c", "d"), 6),
        (("list", 0), 8),
        (("list", 0, "x"), 9),
        (("list", 0, "inner", "y"), 11),
        (("list", 1), 13),
        (("list", 1, "x"), 14),
        (("list", 1, "deep", 0, "z"), 16),
        (("a", "sub", "w"), 18),
        (("a", "sub", "missing"), 17),
        (("missing",), 0),
        ((), 0),
    ],
)
def test_line_of(path: tuple[str | int, ...], line: int) -> None:
    assert line_of(TEXT, path) == line


def test_targets_of_a_tool_name_an_argument() -> None:
    """doors, section 1: `[servers.NAME.targets] TOOL = {command|path|url|patch = "arg"}`."""
    text = b'[servers.files.targets]\nwrite = {path = "file", access = "write"}\n'
    settings = parse_settings(text, "config.toml")
    assert settings.servers["files"].targets["write"].path == "file"
    assert problems("[servers.a.targets]\nx = {}\n") == [
        (
            "config.toml:2: `x`: needs `command`, `path`, `url` or `patch`",
            'write the name of an argument, such as `path = "file"`',
        )
    ]
    assert problems('[servers.a.targets]\nx = {url = "u", access = "read"}\n') == [
        ("config.toml:2: `x`: `access` has no effect without `path`", None)
    ]
    assert problems('[servers.a.targets]\nx = {paths = "u"}\n')


def test_the_key_of_policies_has_an_absolute_path() -> None:
    """A relative one would be read from the repository, which the agent can write."""
    for good in ("/etc/policy.key", "~/policy.key"):
        found = parse_settings(f'[policy]\nhmac_key_file = "{good}"\n'.encode(), "c.toml")
        assert found.policy.hmac_key_file == good
    for bad in ("policy.key", "./policy.key", "", "~other/key"):
        with pytest.raises(InvalidInput) as caught:
            parse_settings(f'[policy]\nhmac_key_file = "{bad}"\n'.encode(), "c.toml")
        assert str(caught.value) == "c.toml:2: `hmac_key_file`: not an absolute path"
