"""Reads what matters of a message that is too large to hold: method, id, tool, and the arguments'
hash, from chunks, in constant memory (D6).

Only the top object and its `params` are understood; what is deeper is skipped by counting brackets
outside of strings. A message whose outer form this does not recognise is ambiguous.
"""

import re
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, Struct

MAX_WORD_BYTES = 4_096
"""Keys and scalars in the outer two levels are read up to here."""

_STRING_REST = re.compile(rb'(?:[^"\\]+|\\.)*', re.DOTALL)
_DEEP = re.compile(rb'["{}\[\]]')
_SCALAR = re.compile(rb"[^,\]}\s]+")
_SPACE = frozenset(b" \t\r\n")
_OPEN, _CLOSE = frozenset(b"{["), frozenset(b"}]")
_decode = msgspec.json.decode


class LargeMessage(Struct, frozen=True):
    """What could be told of a large message; `problem` if its form is not to be trusted."""

    method: Any = UNSET
    id: Any = UNSET
    name: Any = UNSET
    args_hash: str = ""
    """SHA-256 of the raw argument bytes"""
    problem: str = ""


class _Unrecognised(Exception):
    """The outer form of the message is not that of a JSON-RPC message."""


class LargeScanner:
    """Fed chunk by chunk; `result` when the line is over."""

    def __init__(self) -> None:
        self._path: list[str | None] = []
        """for each open container of the outer two levels: the key whose value we are in"""
        self._depth = 0
        self._found: dict[str, Any] = {}
        self._string: list[bytes] | None = None
        self._string_size = 0
        self._carry = b""
        self._expect = "value"
        self._hash: Any = None
        self._args_hash = ""
        self._problem = ""
        self._done = False

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes of the line."""
        if self._problem:
            return
        data, at = self._carry + chunk, 0
        self._carry = b""
        try:
            while at < len(data):
                start = at
                hashing = self._hash
                at = self._step(data, at)
                if hashing is not None:
                    hashing.update(data[start:at])
                if at == start:
                    self._carry = data[at:]
                    if len(self._carry) > len(chunk) + MAX_WORD_BYTES:
                        raise _Unrecognised("a word in its outer levels is too long")
                    return
        except _Unrecognised as error:
            self._problem = str(error)

    def result(self) -> LargeMessage:
        """Returns what was found."""
        if not self._problem and not self._done:
            self._problem = "the message does not end"
        if self._problem:
            return LargeMessage(id=self._found.get("id", UNSET), problem=self._problem)
        empty = sha256(b"{}").hexdigest()
        return LargeMessage(
            method=self._found.get("method", UNSET),
            id=self._found.get("id", UNSET),
            name=self._found.get("params.name", UNSET),
            args_hash=self._args_hash or empty,
        )

    def _step(self, data: bytes, at: int) -> int:
        """Consumes one piece; returns where the next begins, or `at` if it needs more data."""
        if self._string is not None:
            return self._in_string(data, at)
        if self._depth > len(self._path):
            return self._skip_deep(data, at)
        if data[at] in _SPACE:
            return at + 1
        return self._outer(data, at)

    def _in_string(self, data: bytes, at: int) -> int:
        found = _STRING_REST.match(data, at)
        end = found.end() if found else at
        self._keep(data[at:end])
        if end >= len(data) or data[end] == ord("\\"):
            return end  # goes on in the next chunk; a lone backslash waits for its partner
        text, self._string = self._string, None
        self._string_ended(b"".join(text or []))
        return end + 1

    def _keep(self, piece: bytes) -> None:
        if self._string is not None and self._string_size <= MAX_WORD_BYTES:
            self._string.append(piece)
            self._string_size += len(piece)

    def _begin_string(self) -> None:
        self._string, self._string_size = [], 0

    def _string_ended(self, text: bytes) -> None:
        if self._depth > len(self._path):
            return
        value: Any = UNSET
        if self._string_size <= MAX_WORD_BYTES:
            try:
                value = _decode(b'"' + text + b'"')
            except msgspec.MsgspecError:
                raise _Unrecognised("a string in its outer levels is not JSON") from None
        if self._expect == "key":
            if not isinstance(value, str):
                raise _Unrecognised("a key is too long")
            self._key(value)
        else:
            self._value(value)

    def _skip_deep(self, data: bytes, at: int) -> int:
        found = _DEEP.search(data, at)
        if found is None:
            return len(data)
        mark = data[found.start()]
        if mark == ord('"'):
            self._begin_string()
        elif mark in _OPEN:
            self._depth += 1
        else:
            self._depth -= 1
            if self._depth == len(self._path):
                self._container_ended(data, at, found.end())
        return found.end()

    def _outer(self, data: bytes, at: int) -> int:
        if self._done:
            raise _Unrecognised("something follows the message")
        mark = data[at]
        if mark == ord('"') and self._expect in ("key", "value"):
            self._begin_string()
        elif mark in _OPEN and self._expect == "value":
            self._open(mark, data, at)
        elif mark == ord("}") and self._expect in ("key", "comma"):
            self._close()
        elif mark == ord(",") and self._expect == "comma":
            self._expect = "key"
        elif mark == ord(":") and self._expect == "colon":
            self._expect = "value"
        elif self._expect == "value":
            return self._scalar(data, at)
        else:
            raise _Unrecognised("its outer levels are not JSON")
        return at + 1

    def _open(self, mark: int, data: bytes, at: int) -> None:
        is_root = not self._path
        is_params = self._path == ["params"]
        self._depth += 1
        if mark == ord("{") and (is_root or is_params):
            self._path.append(None)
            self._expect = "key"
            return
        if is_root:
            raise _Unrecognised("a batch is too large to inspect")
        if self._where() == "params.arguments":
            if mark != ord("{"):
                raise _Unrecognised("the arguments of a tools/call are not an object")
            self._hash = sha256(data[at : at + 1])

    def _close(self) -> None:
        self._path.pop()
        self._depth -= 1
        self._expect = "comma"
        self._done = not self._path

    def _container_ended(self, data: bytes, start: int, end: int) -> None:
        if self._hash is not None:
            self._hash.update(data[start:end])
            self._args_hash = self._hash.hexdigest()
            self._hash = None
        self._value(UNSET)

    def _scalar(self, data: bytes, at: int) -> int:
        found = _SCALAR.match(data, at)
        if found is None or found.end() == len(data):
            return at  # it may go on in the next chunk
        try:
            self._value(_decode(found.group()))
        except msgspec.MsgspecError:
            raise _Unrecognised("a value in its outer levels is not JSON") from None
        return found.end()

    def _key(self, key: str) -> None:
        self._path[-1] = key
        where = self._where()
        if where in self._found:
            raise _Unrecognised(f"duplicate key {key!a}")
        self._found[where] = UNSET
        self._expect = "colon"

    def _value(self, value: Any) -> None:
        if not self._path:
            raise _Unrecognised("it is no object")
        where = self._where()
        if where == "params" and value is not UNSET:
            raise _Unrecognised("its params are not an object")
        self._found[where] = value
        self._expect = "comma"

    def _where(self) -> str:
        return ".".join(str(key) for key in self._path)
