"""Reads YAML text as plain values with their places, strictly (rule-evaluation).

libyaml's events are read one by one: depth, size and aliases are bounded before anything is built,
and nothing recurses. Refused are duplicate keys, keys that are not strings, tags, merge keys, and
aliases that grow without bound. Only this package imports PyYAML: the shim never does (fast-start).
"""

from typing import Any, NamedTuple

import yaml

from subluminal.contracts.limits import MAX_BUNDLE_DEPTH
from subluminal.errors import InvalidInput, Problem, SubluminalError
from subluminal.policy.text.places import Node, Place
from subluminal.policy.text.scalars import resolve

MAX_VALUES = 750_000
"""Most values and keys of one file. An alias counts as many as its anchor."""

MAX_PROBLEMS = 100
"""Stop after this many problems: the file is probably not a policy at all."""

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRING_TAGS = frozenset({"!", "tag:yaml.org,2002:str"})


class Document(NamedTuple):
    """One document of a file: plain data, and the places of its values."""

    value: Any
    node: Node
    is_json: bool = False
    """whether the text is JSON"""


class _Item(NamedTuple):
    """A complete value, before its container takes it."""

    value: Any
    node: Node
    size: int = 1
    height: int = 0
    is_merge: bool = False


class _Frame:
    """A sequence or mapping that is not complete yet."""

    def __init__(self, event: Any, node: Node) -> None:
        self.is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.value: Any = {} if self.is_mapping else []
        self.node = node
        self.anchor: str | None = event.anchor
        self.key: str | None = None
        self.key_is_kept = True
        self.size = 1
        self.height = 0

    @property
    def awaits_key(self) -> bool:
        return self.is_mapping and self.key is None

    def take(self, item: _Item) -> None:
        """Takes a complete value into the container."""
        if not self.is_mapping:
            self.node.children[len(self.value)] = item.node
            self.value.append(item.value)
        elif self.key is not None and self.key_is_kept:
            self.node.children[self.key] = item.node
            self.value[self.key] = item.value
        self.key = None


def read_yaml(text: str, file: str) -> tuple[list[Document], list[Problem]]:
    """Returns every document, and all problems. Raises InvalidInput if the text is not YAML."""
    reader = _Reader(file)
    try:
        for event in yaml.parse(text, Loader=LOADER):
            reader.feed(event)
    except yaml.YAMLError as error:
        raise InvalidInput([*reader.problems, syntax_problem(error, text, file)]) from None
    return reader.documents, reader.problems


class _Reader:
    """Builds documents from libyaml's events."""

    def __init__(self, file: str) -> None:
        self.documents: list[Document] = []
        self.problems: list[Problem] = []
        self._file = file
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Item | None] = {}
        self._values = 0

    def feed(self, event: Any) -> None:
        """Takes the next event."""
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._add(self._scalar(event), event)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._open(event)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._close(event)
        elif kind is yaml.AliasEvent:
            self._add(self._alias(event), event)
        elif kind is yaml.DocumentStartEvent:
            self._begin(event)

    def _begin(self, event: Any) -> None:
        self._anchors = {}
        if event.version is not None and tuple(event.version) != (1, 2):
            self._report("only YAML 1.2 is supported", event, "remove the `%YAML` line")

    def _open(self, event: Any) -> None:
        self._refuse_tag(event)
        if event.anchor is not None:
            # Until the container is complete, an alias to it would be endless.
            self._anchors[event.anchor] = None
        self._check_depth(len(self._stack) + 1, event)
        self._stack.append(_Frame(event, Node(_place(event))))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        item = _Item(frame.value, frame.node, frame.size, frame.height)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = item
        self._add(item, event)

    def _scalar(self, event: Any) -> _Item:
        value: Any = event.value
        node = Node(_place(event))
        plain = event.implicit[0] and event.tag is None
        if plain:
            try:
                value = resolve(value)
            except SubluminalError as error:
                self._report(str(error), event, error.hint)
        else:
            self._refuse_tag(event)
        item = _Item(value, node, is_merge=plain and value == "<<")
        if event.anchor is not None:
            self._anchors[event.anchor] = item
        return item

    def _alias(self, event: Any) -> _Item:
        name = event.anchor
        if name not in self._anchors:
            self._report(
                f"unknown alias `*{name[:40]}`",
                event,
                f'to write the pattern `*{name[:40]}`, put it in quotes: "*{name[:40]}"',
            )
        item = self._anchors.get(name)
        if item is None:
            if name in self._anchors:
                self._report(f"the alias `*{name[:40]}` is inside its own anchor", event)
            return _Item(None, Node(_place(event)))
        self._check_depth(len(self._stack) + item.height, event)
        return item

    def _add(self, item: _Item, event: Any) -> None:
        self._values += item.size if isinstance(event, yaml.AliasEvent) else 1
        if self._values > MAX_VALUES:
            self._stop(f"more than {MAX_VALUES} values, counting what aliases stand for", event)
        if not self._stack:
            self.documents.append(Document(item.value, item.node))
            return
        frame = self._stack[-1]
        frame.size += item.size
        frame.height = max(frame.height, item.height + 1)
        if frame.awaits_key:
            self._take_key(frame, item, event)
        else:
            frame.take(item)

    def _take_key(self, frame: _Frame, item: _Item, event: Any) -> None:
        frame.key_is_kept = False
        frame.key = key = item.value if isinstance(item.value, str) else ""
        if not isinstance(item.value, str):
            self._report("a key must be a string", event, "put it in quotes", item.node.place)
        elif item.is_merge:
            hint = "write the fields out: in YAML 1.2 an alias stands for a whole value"
            self._report("merge keys (`<<`) are not supported", event, hint)
        elif key in frame.value:
            first = frame.node.keys[key].line
            self._report(
                f"duplicate key `{key[:60]}`",
                event,
                f"remove one of the two: the first is on line {first}",
            )
        else:
            frame.key_is_kept = True
            frame.node.keys[key] = _place(event)

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is None:
            return
        if event.tag in _STRING_TAGS and isinstance(event, yaml.ScalarEvent):
            return
        hint = "remove the tag; a value that begins with `!` needs quotes"
        self._report(f"tags such as `{event.tag[:40]}` are not supported", event, hint)

    def _check_depth(self, depth: int, event: Any) -> None:
        if depth > MAX_BUNDLE_DEPTH:
            self._stop(f"nested deeper than {MAX_BUNDLE_DEPTH} levels", event)

    def _report(
        self, message: str, event: Any, hint: str | None = None, place: Place | None = None
    ) -> None:
        self.problems.append(Problem(message, self._file, *(place or _place(event)), hint))
        if len(self.problems) >= MAX_PROBLEMS:
            raise InvalidInput(self.problems)

    def _stop(self, message: str, event: Any) -> None:
        raise InvalidInput([*self.problems, Problem(message, self._file, *_place(event))])


def _place(event: Any) -> Place:
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)


# (part of libyaml's message, hint). The first that fits is used.
_HINTS = (
    ("alias", "a pattern that begins with `*` needs quotes"),
    ("anchor", "a value that begins with `&` needs quotes"),
    ("tag", "a value that begins with `!` needs quotes"),
    ("mapping values are not allowed", "a value that contains `: ` needs quotes"),
    ("unexpected end of stream", "a quote is not closed"),
    ("flow sequence", "a `]` or a comma is missing; a `*` or `[` inside needs quotes"),
    ("flow mapping", "a `}` or a comma is missing"),
    ("flow node", "a bracket is not closed"),
    ("escape", "use single quotes where `\\` stands for itself"),
    ("expected", "check the indentation of this line"),
)


def syntax_problem(error: yaml.YAMLError, text: str, file: str) -> Problem:
    """Returns libyaml's error as a problem, with a hint for the usual mistakes."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or "the text cannot be read"
    context = getattr(error, "context", None) or ""
    if mark is None:
        return Problem(f"not YAML: {said}", file)
    line, column = mark.line + 1, mark.column + 1
    char = _char_at(text, mark.line, mark.column)
    if char == "\t":
        return Problem(
            "not YAML: a line is indented with a tab", file, line, column, "indent with spaces"
        )
    if "cannot start any token" in said:
        hint: str | None = f"a value that begins with `{char}` needs quotes"
        return Problem(f"not YAML: unexpected `{char}`", file, line, column, hint)
    words = f"{context} {said}"
    hint = next((hint for part, hint in _HINTS if part in words), None)
    return Problem(f"not YAML: {said}", file, line, column, hint)


def _char_at(text: str, line: int, column: int) -> str:
    lines = text.splitlines()
    return lines[line][column : column + 1] if line < len(lines) else ""
