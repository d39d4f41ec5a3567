"""An event of a client in no client's terms. `clients/` reads events, `session` acts on them."""

from enum import Enum, auto
from typing import Any

import msgspec
from msgspec import Raw, Struct

from subluminal.canonical import AmbiguousJSON, parse


class Kind(Enum):
    """What an event tells."""

    BEFORE = auto()
    """the model wants a tool call; the answer decides it"""
    AFTER = auto()
    """a tool call has ended, well or not"""
    STARTED = auto()
    """the session begins, or goes on"""
    PROMPTED = auto()
    """a person has sent a prompt"""
    STOPPED = auto()
    """the agent has finished its turn"""
    ENDED = auto()
    """the session ends"""
    PROBE = auto()
    """`sub doctor` asks whether the hook works"""
    OTHER = auto()
    """anything else, also from versions of a client that we do not know"""


class Call(Struct, frozen=True, kw_only=True):
    """A tool call as a client's hook tells it."""

    server_name: str
    """the server, or `@CLIENT` for a tool of the client itself"""
    tool_name: str
    args: dict[str, Any] | None
    """None if they cannot be read with certainty"""
    args_raw: bytes = b"{}"
    call_id: str | None = None
    """the model's own id of the call; None if this client does not tell it"""


class Event(Struct, frozen=True, kw_only=True):
    """One event."""

    kind: Kind
    session: str | None = None
    cwd: str | None = None
    call: Call | None = None
    """the call, for BEFORE and AFTER"""
    result: bytes = b""
    """JSON of what the tool returned, for AFTER"""
    error: str | None = None
    """why the call failed, for AFTER; None if it did not"""
    is_cancelled: bool = False
    """whether the call did not run to its end because a person stopped it"""
    prompt: bytes | None = None
    """JSON of the prompt, for PROMPTED"""


class Unreadable(Exception):
    """An event that cannot be read with certainty. The message is a sentence."""


class Reserved(Unreadable):
    """A call to a server whose name only a client itself may have. It is refused."""


_decode = msgspec.json.Decoder(dict[str, Raw]).decode


class Members:
    """The members of an event's JSON object, decoded only as far as they are needed."""

    def __init__(self, text: bytes) -> None:
        """Raises Unreadable."""
        self._text = text
        self._problem = ""
        try:
            self._members = _decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._problem = f"the client's event is not a JSON object: {error}"
            self._members = self._repaired()

    def _repaired(self) -> dict[str, Raw]:
        """Reads an event in which a client has cut a text in the middle of a character.

        That is enough to end a call, and not to decide one: `check` tells the problem.
        """
        import json

        try:
            value = json.loads(self._text)
            return _decode(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise Unreadable(self._problem) from None

    def raw(self, name: str) -> bytes:
        """Returns the JSON of a member; empty if there is none."""
        found = self._members.get(name)
        return b"" if found is None else bytes(found)

    def value(self, name: str) -> Any:
        """Returns a member's value; None if there is none."""
        found = self._members.get(name)
        if found is None:
            return None
        try:
            return msgspec.json.decode(found)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Unreadable(f"`{name}` of the client's event is not valid JSON") from None

    def text(self, name: str) -> str | None:
        """Returns a member that is text; None if there is none, or it is empty."""
        value = self.value(name)
        return value if isinstance(value, str) and value else None

    def object(self, name: str) -> dict[str, Any]:
        """Returns a member that is an object; empty if there is none."""
        value = self.value(name)
        return value if isinstance(value, dict) else {}

    def args(self, name: str) -> dict[str, Any] | None:
        """Returns a call's arguments; None if they are not an object that can be read exactly."""
        text = self.raw(name) or b"{}"
        try:
            value = parse(text).value
        except AmbiguousJSON:
            return None
        return value if isinstance(value, dict) else None

    def check(self, max_bytes: int) -> None:
        """Raises Unreadable if another parser may read the event differently.

        An event that is too large to inspect is not checked.
        """
        if self._problem:
            raise Unreadable(self._problem)
        if len(self._text) > max_bytes:
            return
        try:
            parse(self._text)
        except AmbiguousJSON as error:
            why = f"the client's event can be read in more than one way: {error}"
            raise Unreadable(why) from None
