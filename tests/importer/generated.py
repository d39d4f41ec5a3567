"""Random configurations as people and programs write them: layout, comments, line ends, marks."""

import json
from random import Random
from typing import Any

from hypothesis import strategies as st

NAMES = st.one_of(
    st.sampled_from(["fs", "git", "my server", "größe", "日本", "a.b", 'quo"te', "x-y_1", "🛰"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
)
WORDS = st.one_of(
    st.sampled_from(["npx", "-y", "${HOME}", "${A:-b}", "--", "a b", "/x/y", "", "sub", "shim"]),
    st.text(st.characters(codec="utf-8"), max_size=6),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    WORDS,
)
NOISE = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)

SEEDS = st.integers(0, 2**32)
"""Layout comes from a plain generator: it need not shrink, and is ten times as fast."""


@st.composite
def stdio_entries(draw: Any) -> dict[str, Any]:
    """An entry that starts a program, its keys in any order."""
    entry: dict[str, Any] = {"command": draw(WORDS.filter(bool))}
    if draw(st.booleans()):
        entry["args"] = draw(st.lists(WORDS, max_size=4))
    if draw(st.booleans()):
        entry["env"] = draw(st.dictionaries(st.sampled_from(["A", "PATH"]), WORDS, max_size=2))
    return {key: entry[key] for key in draw(st.permutations(list(entry)))}


@st.composite
def claude_values(draw: Any) -> dict[str, Any]:
    """What a `.claude.json` says."""
    entries = st.one_of(
        stdio_entries(),
        stdio_entries(),
        st.just({"type": "http", "url": "https://x.test"}),
        st.just({"command": "x", "url": "y"}),
    )
    servers = st.dictionaries(NAMES, entries, max_size=4)
    value: dict[str, Any] = {"mcpServers": draw(servers)}
    if draw(st.booleans()):
        value["projects"] = {"/p": {"mcpServers": draw(servers), "history": draw(NOISE)}}
    noise = draw(st.dictionaries(st.text(max_size=5), NOISE, max_size=3))
    noise.pop("projects", None)
    value = {**noise, **value}
    return {key: value[key] for key in draw(st.permutations(list(value)))}


class JsonWriter:
    """Writes a value in a random layout."""

    def __init__(self, random: Random, *, comments: bool) -> None:
        self._random = random
        self._comments = comments
        self._newline = random.choice(["\n", "\r\n"])
        self._minified = random.random() < 0.2

    def document(self, value: Any) -> bytes:
        text = self._gap() + self.value(value) + self._gap()
        mark = b"\xef\xbb\xbf" if self._random.random() < 0.2 else b""
        return mark + text.encode("utf-8")

    def value(self, value: Any) -> str:
        if isinstance(value, dict):
            pairs = [
                f"{self._string(key)}{self._gap()}:{self._gap()}{self.value(item)}"
                for key, item in value.items()
            ]
            return self._row("{", pairs, "}")
        if isinstance(value, list):
            return self._row("[", [self.value(item) for item in value], "]")
        return self._string(value) if isinstance(value, str) else json.dumps(value)

    def _row(self, opening: str, parts: list[str], closing: str) -> str:
        text = opening + self._gap()
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            trailing = self._comments and self._random.random() < 0.3
            text += part + self._gap() + ("," if not last or trailing else "") + self._gap()
        return text + closing

    def _string(self, value: str) -> str:
        text = json.dumps(value, ensure_ascii=self._random.random() < 0.5)
        return text.replace("/", "\\/") if self._random.random() < 0.2 else text

    def _gap(self) -> str:
        if self._minified:
            return ""
        choices = ["", "", " ", "  ", "\t", self._newline, self._newline + "    "]
        if self._comments:
            choices += [
                f' // a, "b" ]{self._newline}',
                "/* , } */",
                f" /* two{self._newline}lines */ ",
            ]
        return self._random.choice(choices)


@st.composite
def json_configs(draw: Any, *, comments: bool) -> bytes:
    """The bytes of a configuration in JSON, or JSONC."""
    value = draw(claude_values())
    return JsonWriter(Random(draw(SEEDS)), comments=comments).document(value)


class TomlWriter:
    """Writes servers in one of the forms that TOML has for tables."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._newline = random.choice(["\n", "\r\n"])

    def document(self, servers: dict[str, dict[str, Any]]) -> bytes:
        whole = self._random.choice(["headers", "headers", "inline", "dotted", "root"])
        lines = ['# größe, "x" [', 'model = "gpt" # the model', "when = 1979-05-27 07:32:00Z", ""]
        lines += ["pi = [1, 2.5, nan]", "long = '''", "[mcp_servers.no]", "'''"]
        if whole == "root" and servers:
            inner = ", ".join(f"{self._key(n)} = {self._inline(e)}" for n, e in servers.items())
            lines += [f"mcp_servers = {{ {inner} }}"]
        elif whole == "dotted":
            for name, entry in servers.items():
                key = f"mcp_servers.{self._key(name)}"
                lines += [f"{self._indent()}{key}.{k} = {self._value(v)}" for k, v in entry.items()]
        elif whole == "inline":
            lines += ["[mcp_servers]"]
            lines += [f"{self._key(n)} = {self._inline(e)}" for n, e in servers.items()]
        else:
            for name, entry in servers.items():
                lines += self._headed(name, entry)
        lines += ["", "[tui]", "theme = 'x'", "[[list]]", "a = 1", "[[list]]", "a = 2"]
        text = self._newline.join(lines)
        if self._random.random() < 0.5:
            text += self._newline
        mark = b"\xef\xbb\xbf" if self._random.random() < 0.2 else b""
        return mark + text.encode("utf-8")

    def _headed(self, name: str, entry: dict[str, Any]) -> list[str]:
        indent = self._indent()
        lines = [f"{indent}[ mcp_servers . {self._key(name)} ] # {name!a}"]
        below: list[str] = []
        for key, value in entry.items():
            if isinstance(value, dict) and self._random.random() < 0.5:
                below += [f"[mcp_servers.{self._key(name)}.{key}]"]
                below += [f"{self._key(k)} = {self._value(v)}" for k, v in value.items()]
                continue
            comment = self._random.choice(["", "", " # why", "  "])
            lines += [
                f"{indent}{key}{self._random.choice(['=', ' = '])}{self._value(value)}{comment}"
            ]
        return lines + below

    def _key(self, name: str) -> str:
        plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        return name if plain and self._random.random() < 0.7 else self._string(name)

    def _indent(self) -> str:
        return self._random.choice(["", "", "  ", "\t"])

    def _string(self, value: str) -> str:
        if "'" not in value and value.isprintable() and self._random.random() < 0.3:
            return f"'{value}'"
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    def _value(self, value: Any) -> str:
        if isinstance(value, dict):
            return self._inline(value)
        if isinstance(value, list):
            gaps = ["", " ", self._newline, self._newline + "  ", f" # , ]{self._newline} "]
            gap = self._random.choice
            parts = [gap(gaps) + self._string(item) + gap(gaps) for item in value]
            trailing = "," if parts and self._random.random() < 0.4 else ""
            return "[" + ",".join(parts) + trailing + gap(gaps) + "]"
        return self._string(value)

    def _inline(self, entry: dict[str, Any]) -> str:
        pairs = []
        for key, value in entry.items():
            flat = isinstance(value, list)
            items = f"[{', '.join(map(self._string, value))}]" if flat else self._value(value)
            pairs.append(f"{self._key(key)} = {items}")
        return "{ " + ", ".join(pairs) + " }" if pairs else "{}"


@st.composite
def toml_configs(draw: Any) -> bytes:
    """The bytes of a Codex configuration."""
    entries = st.one_of(stdio_entries(), stdio_entries(), st.just({"url": "https://x.test"}))
    servers = draw(st.dictionaries(NAMES, entries, max_size=4))
    for entry in servers.values():
        if "command" in entry and draw(st.booleans()):
            names = st.sampled_from(["HOME", "SUB_RUN_ID", "X"])
            entry["env_vars"] = draw(st.lists(names, max_size=3, unique=True))
    return TomlWriter(Random(draw(SEEDS))).document(servers)
