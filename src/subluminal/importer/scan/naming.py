"""Compares the tools of the servers of one client: equal names, look-alikes, references.

An attacker's tool is near another server's in name. Honest servers are so as well, which is why
plurals, versions, other spellings and copies of the same server are left out.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from subluminal.importer.scan.definitions import Tool, texts_of, told_name
from subluminal.importer.scan.rules import Finding, Level, Rule

_CONFUSABLE = str.maketrans(
    # Cyrillic, Greek, Armenian and Latin letters that look like ASCII ones
    "авсԁеғɡһіјкӏмпорԛгѕтцѵԝхуαβϲεηικνορτυχωγıօսցɑᴏᴄᴜᴠᴡᴢ",
    "abcdefghijklmnopqrstuvwxyabcenikvoptuxwyiougaocuvwz",
)
_DIGITS = (str.maketrans("035781", "oestbl"), str.maketrans("035781", "oestbi"))
_SEPARATORS = re.compile(r"[\s_./:-]+")
_TOKEN = re.compile(r"[A-Za-z_][\w.-]*\w")
_PREFIXED = re.compile(r"\bmcp__([\w-]+?)__([\w-]+)\b")
_QUOTED_TOOL = re.compile(r"[`'\"“]([\w.-]{3,64})[`'\"”] tool\b")
_QUOTED_SERVER = re.compile(
    r"[`'\"“]([\w.-]{2,64})[`'\"”] (?:MCP )?server\b|\b([\w.-]{2,64}) MCP server\b"
)
_DISTINCTIVE = re.compile(r"\w[_-]\w|[a-z][A-Z]")
_MIN_DISTINCTIVE = 6
_MIN_ONE_EDIT, _MAX_ONE_EDIT = 6, 128
"""Lengths of names that are compared letter by letter."""
_MAX_SHARED = 64
_MIN_WORD = 4
_MIN_SWAPPED_WORD = 6
_MAX_TOOLS = 5_000
"""Most tools of one client that are compared. No client would work with more."""


class Offer(NamedTuple):
    """What one server of a client lists."""

    server: str
    tools: Sequence[Tool]
    program: str = ""
    """the software that it is; empty if that is not known"""


def compare(offers: Sequence[Offer]) -> dict[str, list[Finding]]:
    """Returns the findings about each server's tools, by the server's name."""
    found: dict[str, list[Finding]] = {offer.server: [] for offer in offers}
    if sum(len(offer.tools) for offer in offers) > _MAX_TOOLS:
        return found
    for offer, finding in (*_shadowed(offers), *_lookalikes(offers), *_references(offers)):
        found[offer.server].append(finding)
    return found


def _same_software(one: Offer, other: Offer, left: Tool, right: Tool) -> bool:
    if one.program and other.program:
        return one.program == other.program
    return bool(left.definition == right.definition)


def _shadowed(offers: Sequence[Offer]) -> Iterator[tuple[Offer, Finding]]:
    known: dict[str, list[tuple[Offer, Tool]]] = {}
    for offer in offers:
        for tool in offer.tools:
            known.setdefault(tool.name, []).append((offer, tool))
    for name, holders in known.items():
        for offer, tool in holders:
            others = [
                other.server
                for other, its in holders
                if other.server != offer.server and not _same_software(offer, other, tool, its)
            ]
            if others:
                told = ", ".join(f"`{each}`" for each in dict.fromkeys(others))
                message = f"tool `{told_name(name)}` is also a tool of {told}"
                hint = "rename or leave out one of the two, if the client can"
                yield offer, Finding(Rule.SHADOWED_TOOL, Level.LOW, message, tool.line, hint)


class _Held(NamedTuple):
    """A tool, with what is compared of it."""

    offer: Offer
    tool: Tool
    words: list[str]
    parameters: frozenset[str]


def _lookalikes(offers: Sequence[Offer]) -> Iterator[tuple[Offer, Finding]]:
    by_skeleton: dict[str, list[_Held]] = {}
    by_gap: dict[str, list[_Held]] = {}
    for offer in offers:
        for tool in offer.tools:
            held = _Held(offer, tool, _words(tool.name), _parameters(tool))
            for key in set(_skeletons(tool.name)):
                by_skeleton.setdefault(key, []).append(held)
            if _MIN_ONE_EDIT <= len(tool.name) <= _MAX_ONE_EDIT:
                for key in set(_gaps(tool.name.casefold())):
                    by_gap.setdefault(key, []).append(held)
    told: set[tuple[str, str, str, str]] = set()
    for level, groups, fits in (
        (Level.HIGH, by_skeleton, _is_disguised),
        (Level.MEDIUM, by_gap, _is_one_edit),
    ):
        for one, other in (pair for holders in groups.values() for pair in _pairs(holders)):
            pair = (one.offer.server, one.tool.name, other.offer.server, other.tool.name)
            same = _same_software(one.offer, other.offer, one.tool, other.tool)
            if pair not in told and not same and fits(one, other):
                told.add(pair)
                yield one.offer, _looks_like(level, one.tool, other)


def _looks_like(level: Level, tool: Tool, other: _Held) -> Finding:
    name, its = told_name(tool.name), told_name(other.tool.name)
    message = f"tool `{name}` looks like `{its}` of `{other.offer.server}`"
    hint = "compare the two servers; a copy made to be confused must go"
    return Finding(Rule.LOOKALIKE_NAME, level, message, tool.line, hint)


def _pairs(holders: list[_Held]) -> Iterator[tuple[_Held, _Held]]:
    if not 1 < len(holders) <= _MAX_SHARED:
        return  # a key that many tools share tells nothing
    for one in holders:
        for other in holders:
            if one.offer.server != other.offer.server and one.tool.name != other.tool.name:
                yield one, other


def _skeletons(name: str) -> Iterator[str]:
    """Yields what a name looks like, with `1` read as `l` and as `i`."""
    wide = unicodedata.normalize("NFKD", name.casefold())
    plain = "".join(char for char in wide if not unicodedata.combining(char))
    plain = _SEPARATORS.sub("", plain.translate(_CONFUSABLE)).replace("rn", "m").replace("vv", "w")
    for digits in _DIGITS:
        yield plain.translate(digits)


def _is_disguised(left: _Held, right: _Held) -> bool:
    """Whether two names that look alike differ in more than case and separators.

    The finding belongs to the name that is disguised: with other scripts, or with more digits.
    """
    one, other = (_SEPARATORS.sub("", held.tool.name.casefold()) for held in (left, right))
    if one == other or _differ_in_version(one, other):
        return False
    return _disguise(left.tool.name) >= _disguise(right.tool.name)


def _disguise(name: str) -> int:
    odd = sum(not char.isascii() for char in name)
    return (
        100 * odd + 10 * sum(char.isdigit() for char in name) + name.count("rn") + name.count("vv")
    )


def _differ_in_version(one: str, other: str) -> bool:
    return re.sub(r"v?\d+$", "", one) == re.sub(r"v?\d+$", "", other)


def _gaps(name: str) -> Iterator[str]:
    """Yields keys that two names share if they are one edit apart: each letter left out once."""
    yield name
    for at in range(len(name)):
        yield name[:at] + name[at + 1 :]


def _is_one_edit(left: _Held, right: _Held) -> bool:
    if len(left.words) != len(right.words) or left.parameters != right.parameters:
        return False
    differing = [(a, b) for a, b in zip(left.words, right.words, strict=True) if a != b]
    return len(differing) == 1 and _is_misspelt(*differing[0])


def _words(name: str) -> list[str]:
    """Returns the words of a name: `readFile` and `read_file` have the same."""
    return _SEPARATORS.split(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def _is_misspelt(one: str, other: str) -> bool:
    """Whether one word is the other with a slip inside: no ending, no first letter, no digit."""
    if not (one.isalpha() and other.isalpha()) or min(len(one), len(other)) < _MIN_WORD:
        return False
    if one[0] != other[0]:
        return False
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) == 1:
        at = next((n for n in range(len(short)) if short[n] != long[n]), len(short))
        return at < len(short) and short[at:] == long[at + 1 :]
    if len(long) != len(short):
        return False
    apart = [n for n in range(len(one)) if one[n] != other[n]]
    if len(apart) == 2 and apart[1] == apart[0] + 1:
        return one[apart[0]] == other[apart[1]] and one[apart[1]] == other[apart[0]]
    inside = len(apart) == 1 and apart[0] < len(one) - 1
    return inside and len(one) >= _MIN_SWAPPED_WORD


def _parameters(tool: Tool) -> frozenset[str]:
    schema = tool.definition.get("inputSchema") if isinstance(tool.definition, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return frozenset(properties) if isinstance(properties, dict) else frozenset()


class _Names(NamedTuple):
    """The names that a text may refer to."""

    owners: Mapping[str, set[str]]
    """servers by the tools that they list"""
    telling: frozenset[str]
    """tools whose names cannot be ordinary words"""
    programs: Mapping[str, str]
    """what each server is"""


def _references(offers: Sequence[Offer]) -> Iterator[tuple[Offer, Finding]]:
    owners: dict[str, set[str]] = {}
    for offer in offers:
        for tool in offer.tools:
            owners.setdefault(tool.name, set()).add(offer.server)
    telling = frozenset(name for name in owners if _is_distinctive(name))
    names = _Names(owners, telling, {offer.server: offer.program for offer in offers})
    for offer in offers if len(offers) > 1 else ():
        own = {tool.name for tool in offer.tools}
        for tool in offer.tools:
            for name, server in dict.fromkeys(_referred(tool, offer, own, names)):
                of = (
                    f"the tool `{told_name(name)}` of `{server}`"
                    if name
                    else f"the server `{server}`"
                )
                message = f"tool `{told_name(tool.name)}` speaks of {of}"
                hint = "read its description; a server cannot know which others are installed"
                rule = Rule.CROSS_SERVER_REFERENCE
                yield offer, Finding(rule, Level.MEDIUM, message, tool.line, hint)


def _referred(tool: Tool, offer: Offer, own: set[str], names: _Names) -> Iterator[tuple[str, str]]:
    """Yields each tool of another server that a tool's texts name; "" for the server itself."""
    texts = [each for each in texts_of(tool.definition) if each.place != "name"]
    parameters = {each.text for each in texts if each.is_key}
    for each in texts:
        if each.is_key or len(each.text) < _MIN_DISTINCTIVE:
            continue
        for name, holders in _named(each.text, names):
            if name in own or name in parameters:
                continue
            for server in sorted(holders & names.programs.keys() - {offer.server}):
                if not offer.program or names.programs[server] != offer.program:
                    yield name, server
                    break


def _named(text: str, names: _Names) -> Iterator[tuple[str, set[str]]]:
    for word in _TOKEN.findall(text):
        if word in names.telling:
            yield word, names.owners[word]
    if " tool" in text:
        for word in _QUOTED_TOOL.findall(text):
            yield word, names.owners.get(word, set())
    if "mcp__" in text:
        for server, word in _PREFIXED.findall(text):
            yield word, {server}
    if "server" in text:
        for groups in _QUOTED_SERVER.findall(text):
            yield "", {"".join(groups)}


def _is_distinctive(word: str) -> bool:
    """Whether a name cannot be an ordinary word: `read_file`, `createIssue`; not `search`."""
    return len(word) >= _MIN_DISTINCTIVE and _DISTINCTIVE.search(word) is not None
