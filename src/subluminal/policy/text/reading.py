"""Reads the bytes of a file as YAML 1.2, or as JSON if they begin with `{`.

Gives plain values with their places, and the problems of the text. `loading` and `casefile` check
what the values mean.
"""

import re
from decimal import Decimal
from typing import Any

from subluminal.canonical import AmbiguousJSON, parse
from subluminal.contracts.limits import MAX_BUNDLE_BYTES, MAX_BUNDLE_DEPTH
from subluminal.errors import InvalidInput, Problem
from subluminal.policy.text.places import Node, Place
from subluminal.policy.text.scalars import not_a_double
from subluminal.policy.text.yaml_nodes import Document, read_yaml

BOM = b"\xef\xbb\xbf"
# Characters that YAML 1.2 does not allow, a byte order mark inside the text, and the additional
# line breaks of YAML 1.1, at which only some parsers would break a line.
UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def read_documents(data: bytes, file: str) -> tuple[list[Document], list[Problem]]:
    """Returns the documents of a file and their problems. Raises InvalidInput if unreadable."""
    if len(data) > MAX_BUNDLE_BYTES:
        raise InvalidInput([Problem(f"larger than {MAX_BUNDLE_BYTES} bytes", file)])
    data = data.removeprefix(BOM)
    text = _decode(data, file)
    if data.lstrip(b" \t\r\n").startswith(b"{"):
        return _read_json(data, text, file)
    _refuse_unprintable(text, file)
    return read_yaml(text, file)


def read_document(data: bytes, file: str) -> tuple[Document, list[Problem]]:
    """Returns the only document of a file, and its problems. Raises InvalidInput."""
    documents, problems = read_documents(data, file)
    if not documents:
        raise InvalidInput([Problem("the file is empty", file)])
    if len(documents) > 1:
        place = documents[1].node.place
        hint = "put each policy into a file of its own"
        problems.append(Problem("a second document (`---`) begins here", file, *place, hint))
        raise InvalidInput(problems)
    return documents[0], problems


def _decode(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        problem = Problem("not UTF-8", file, line, column, "save the file as UTF-8")
        raise InvalidInput([problem]) from None


def _refuse_unprintable(text: str, file: str) -> None:
    found = UNPRINTABLE.search(text)
    if found:
        before = text[: found.start()]
        place = Place(before.count("\n") + 1, found.start() - before.rfind("\n"))
        message = f"the character U+{ord(found.group()):04X} is not allowed"
        hint = "write the character as an escape in double quotes"
        raise InvalidInput([Problem(message, file, *place, hint)])


def _read_json(data: bytes, text: str, file: str) -> tuple[list[Document], list[Problem]]:
    try:
        value = parse(data.strip(b" \t\r\n")).value
    except AmbiguousJSON as error:
        return _read_braces(text, file, error)
    node = _json_places(text, file)
    return [Document(value, node, is_json=True)], _json_problems(value, (), node, file)


def _read_braces(
    text: str, file: str, error: AmbiguousJSON
) -> tuple[list[Document], list[Problem]]:
    """Reads text that begins with `{` but is not JSON: it may be YAML."""
    _refuse_unprintable(text, file)
    documents, problems = read_yaml(text, file)
    if file.endswith(".json") and not problems:
        raise InvalidInput([Problem(str(error), file, hint=error.hint)])
    return documents, problems


def _json_places(text: str, file: str) -> Node:
    """Returns the places in JSON text; none if the text has escapes that libyaml refuses."""
    try:
        documents, _ = read_yaml(text, file)
    except InvalidInput:
        return Node()
    return documents[0].node


def _json_problems(value: Any, path: tuple[str | int, ...], node: Node, file: str) -> list[Problem]:
    if len(path) > MAX_BUNDLE_DEPTH:
        message = f"nested deeper than {MAX_BUNDLE_DEPTH} levels"
        raise InvalidInput([Problem(message, file, *node.find(path))])
    if isinstance(value, Decimal):
        refusal = not_a_double(value)
        return [Problem(str(refusal), file, *node.find(path), refusal.hint)]
    if not isinstance(value, dict | list):
        return []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        problem for key, item in items for problem in _json_problems(item, (*path, key), node, file)
    ]
