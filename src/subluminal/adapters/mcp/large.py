"""Scans a message that is too large to hold in memory: method, id, tool, hash of the arguments.

Theory of operation. The scanner is fed chunks and uses constant memory. It understands the outer
two levels, the message and its `params`, and skips what is deeper. But it skips strictly: text that
another reader could split into other strings or brackets makes the message ambiguous, and so do
outer levels that are not plain JSON (byte-transparent).
"""

import codecs
import re
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from subluminal.adapters.mcp.messages import TOOLS_CALL, is_look_alike
from subluminal.canonical import AmbiguousJSON, parse

MAX_WORD_BYTES = 4_096
"""Size of the longest key or scalar in the outer two levels."""

MAX_KEYS = 256
"""Most keys in the outer two levels; they are remembered, to find duplicates."""

MAX_DEPTH = 512
MAX_META_BYTES = 16_384
"""Size of the largest `_meta` that is read."""

# String content on which strict and lax readers agree: only these escapes, no control characters.
# The quantifiers are possessive, so that a hostile string costs linear time.
_CONTENT = rb'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_STRING_REST = re.compile(_CONTENT)
# Outside of strings, the characters of numbers, true, false and null: no comments, no other quotes.
_DEEP_RUN = re.compile(rb'(?:[0-9+\-.eE,: \ttrufalsn]++|"' + _CONTENT + rb'")*+')
_SCALAR = re.compile(rb"[^,\]}\s]+")
_ESCAPE_BYTES = 6
_PARTNER = {ord("{"): ord("}"), ord("["): ord("]")}
_ARGUMENTS, _META = ("params", "arguments"), ("params", "_meta")


class LargeMessage(Struct, frozen=True):
    """What was read of a large message."""

    method: Any = UNSET
    id: Any = UNSET
    name: Any = UNSET
    args_hash: str = ""
    """SHA-256 of the raw argument bytes"""
    meta: dict[str, Any] = {}
    request_state: str | None = None
    problem: str = ""
    """why the message is ambiguous, or lost; empty if it is neither"""
    is_lost: bool = False
    """whether it was too large even for the disk, so that it cannot be forwarded"""


class _Unrecognised(Exception):
    """The message is not plainly a JSON-RPC message."""


class _Kept:
    """Takes bytes like a hash object, and keeps them up to MAX_META_BYTES."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def update(self, data: bytes) -> None:
        if len(self._data) <= MAX_META_BYTES:
            self._data += data

    def value(self) -> Any:
        try:
            return parse(self._data).value if len(self._data) <= MAX_META_BYTES else None
        except AmbiguousJSON:
            return None


class LargeScanner:
    """Takes a line chunk by chunk; `result` returns what was found."""

    def __init__(self) -> None:
        self._path: tuple[str, ...] = ()
        """the key that is current in each open container of the outer two levels"""
        self._outer_depth = 0
        """number of open containers in the outer two levels"""
        self._closers: list[int] = []
        """the byte that closes each open container, at any depth"""
        self._found: dict[tuple[str, ...], Any] = {}
        self._has_odd_args = False
        self._in_string = False
        self._word: list[bytes] = []
        self._word_size = 0
        self._carry = b""
        self._expect = "value"
        self._tap: Any = None
        """takes the raw bytes of the current container: a hash object, or `_Kept`"""
        self._args_hash = ""
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._problem = ""

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes of the line."""
        if self._problem:
            return
        try:
            self._utf8.decode(chunk)
            self._scan(self._carry + chunk)
        except UnicodeDecodeError:
            self._problem = "it is not UTF-8"
        except _Unrecognised as error:
            self._problem = str(error)

    def result(self) -> LargeMessage:
        """Returns what was found."""
        found = self._found
        problem = self._problem or self._last_problem()
        if problem:
            return LargeMessage(id=found.get(("id",), UNSET), problem=problem)
        meta, state = found.get(_META), found.get(("params", "requestState"))
        return LargeMessage(
            method=found.get(("method",), UNSET),
            id=found.get(("id",), UNSET),
            name=found.get(("params", "name"), UNSET),
            args_hash=self._args_hash or sha256(b"{}").hexdigest(),
            meta=meta if isinstance(meta, dict) else {},
            request_state=state if isinstance(state, str) else None,
        )

    def _last_problem(self) -> str:
        if self._expect != "nothing":
            return "the message does not end"
        if ("method",) in self._found:
            method = self._found[("method",)]
            if not isinstance(method, str):
                return "the method is not a string"
            if method == TOOLS_CALL and self._has_odd_args:
                return "the arguments of a tools/call are not an object"
        return ""

    def _scan(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            tap, start = self._tap, at
            at = self._step(data, start)
            if at == start:
                break  # the rest needs the next chunk
            if tap is not None:
                tap.update(data[start:at])
                if self._tap is None:
                    self._tapped(tap)
        self._carry = data[at:]
        if len(self._carry) > MAX_WORD_BYTES:
            raise _Unrecognised("a word in its outer levels is too long")

    def _step(self, data: bytes, at: int) -> int:
        """Consumes one piece; returns where the next one begins, or `at` if more data is needed."""
        if self._in_string:
            return self._string_piece(data, at)
        if len(self._closers) > self._outer_depth:
            return self._deep_piece(data, at)
        if data[at] in b" \t\n" or (data[at] == ord("\r") and self._expect == "nothing"):
            return at + 1
        return self._outer_piece(data, at)

    def _string_piece(self, data: bytes, at: int) -> int:
        found = _STRING_REST.match(data, at)
        end = found.end() if found else at
        if len(self._closers) == self._outer_depth and self._word_size <= MAX_WORD_BYTES:
            self._word.append(data[at:end])
            self._word_size += end - at
        if end == len(data):
            return end
        if data[end] == ord('"'):
            self._in_string = False
            self._string_ended()
            return end + 1
        if data[end] == ord("\\") and len(data) - end < _ESCAPE_BYTES:
            # The chunk ends inside an escape. What precedes it is consumed; the escape is read
            # again with the next chunk.
            return end
        raise _Unrecognised("a string in it is not JSON")

    def _string_ended(self) -> None:
        if len(self._closers) > self._outer_depth:
            return
        value: Any = UNSET
        if self._word_size <= MAX_WORD_BYTES:
            try:
                value = msgspec.json.decode(b'"' + b"".join(self._word) + b'"')
            except (msgspec.MsgspecError, UnicodeDecodeError):
                raise _Unrecognised("a string in its outer levels is not JSON") from None
        if self._expect == "value":
            self._has_odd_args = self._has_odd_args or self._path == _ARGUMENTS
            self._value(value)
        elif isinstance(value, str):
            self._key(value)
        else:
            raise _Unrecognised("a key is too long")

    def _deep_piece(self, data: bytes, at: int) -> int:
        found = _DEEP_RUN.match(data, at)
        end = found.end() if found else at
        if end == len(data):
            return end
        mark = data[end]
        if mark == ord('"'):
            self._in_string = True  # it continues in the next chunk, or is not JSON
        elif mark in _PARTNER:
            self._push(mark)
        elif mark == self._closers[-1]:
            self._closers.pop()
            if len(self._closers) == self._outer_depth:
                self._tap = None
                self._value(UNSET)
        else:
            raise _Unrecognised("its inner levels are not JSON")
        return end + 1

    def _outer_piece(self, data: bytes, at: int) -> int:
        mark, expect = data[at], self._expect
        if mark == ord('"') and expect in ("first key", "key", "value"):
            self._in_string, self._word, self._word_size = True, [], 0
        elif mark in _PARTNER and expect == "value":
            self._open(mark)
        elif mark == ord("}") and expect in ("first key", "comma"):
            self._close()
        elif mark == ord(",") and expect == "comma":
            self._expect = "key"
        elif mark == ord(":") and expect == "colon":
            self._expect = "value"
        elif expect == "value":
            return self._scalar(data, at)
        else:
            raise _Unrecognised("its outer levels are not JSON")
        return at + 1

    def _push(self, mark: int) -> None:
        self._closers.append(_PARTNER[mark])
        if len(self._closers) > MAX_DEPTH:
            raise _Unrecognised(f"nested deeper than {MAX_DEPTH} levels")

    def _open(self, mark: int) -> None:
        is_object = mark == ord("{")
        if not self._path and not is_object:
            raise _Unrecognised("a batch is too large to inspect")
        self._push(mark)
        if is_object and self._path in ((), ("params",)):
            self._outer_depth += 1
            self._expect = "first key"
            self._path = (*self._path, "")
        elif self._path == _ARGUMENTS:
            self._has_odd_args = not is_object
            self._tap = sha256(b"{") if is_object else None
        elif self._path == _META:
            self._tap = _Kept(bytes((mark,)))

    def _close(self) -> None:
        self._closers.pop()
        self._outer_depth -= 1
        self._path = self._path[:-1]
        self._expect = "comma" if self._path else "nothing"

    def _tapped(self, tap: Any) -> None:
        if isinstance(tap, _Kept):
            self._found[_META] = tap.value()
        else:
            self._args_hash = tap.hexdigest()

    def _scalar(self, data: bytes, at: int) -> int:
        found = _SCALAR.match(data, at)
        if found is None or found.end() == len(data):
            return at  # it may continue in the next chunk
        if found.end() - at > MAX_WORD_BYTES:
            raise _Unrecognised("a word in its outer levels is too long")
        try:
            self._value(parse(found.group()).value)
        except AmbiguousJSON:
            raise _Unrecognised("a value in its outer levels is not JSON") from None
        return found.end()

    def _key(self, key: str) -> None:
        self._path = (*self._path[:-1], key)
        if self._path in self._found:
            raise _Unrecognised(f"duplicate key {key!a}")
        if is_look_alike(key):
            raise _Unrecognised(f"the key {key!a} may be read as another")
        if len(self._found) >= MAX_KEYS:
            raise _Unrecognised("it has too many keys")
        self._found[self._path] = UNSET
        self._expect = "colon"

    def _value(self, value: Any) -> None:
        if not self._path:
            raise _Unrecognised("it is not an object")
        if self._path == ("params",) and value is not UNSET:
            raise _Unrecognised("its params are not an object")
        if self._path == _ARGUMENTS and value is not UNSET and value is not None:
            self._has_odd_args = True
        self._found[self._path] = value
        self._expect = "comma"
