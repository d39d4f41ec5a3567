"""Starts a server under a warden, asks which tools it lists, and ends it. Calls nothing.

The server gets a small environment and the variables of its entry. A variable that holds a secret,
by its name or its shape, gets a placeholder: most servers list their tools without a valid token,
and a scanner must not hand a credential to a server that nobody has reviewed. No binding is read.
"""

import json
import os
import re
import select
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from subluminal import __version__
from subluminal.adapters.mcp_stdio.ending import how_it_ended
from subluminal.adapters.mcp_stdio.stderr_tail import StderrTail
from subluminal.errors import SubluminalError
from subluminal.importer.approving import CERTIFICATE_VARIABLES, own_command
from subluminal.importer.clients.description import Client
from subluminal.importer.document import Entry, env_of
from subluminal.importer.env_secrets import has_secret_name, looks_secret, references_in
from subluminal.importer.scan.definitions import Tool, tools_from
from subluminal.supervise import EXITED, FAILED, WardenHandle, become_subreaper

PLACEHOLDER = "sub-scan-placeholder"
"""The value of every secret variable of a server that a scan starts."""
TIMEOUT_S = 30.0
"""Time for a server to start and to list its tools; `npx` may have to download it."""
_GRACE_MS = 500
_LAST_WORDS_S = 0.5
_END_MS = 6_000
_MAX_LINE_BYTES = 16 << 20
_MAX_BYTES = 64 << 20
"""Most that a server may write to its output, all lines together."""
_MAX_PAGES = 64
_PASSED = ("HOME", "PATH", "LANG", "LC_ALL", "LOGNAME", "USER", "SHELL", "TERM", "TMPDIR", "TZ")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}|\{env:([A-Za-z_]\w*)\}")
_VERSION = "2025-11-25"
_MODERN = "2026-07-28"
_META = "io.modelcontextprotocol"


class Command(NamedTuple):
    """A server that can be started."""

    server: str
    words: list[str]
    environ: dict[str, str]
    withheld: tuple[str, ...]
    """variables that get a placeholder"""


def command_of(client: Client, entry: Entry, environ: Mapping[str, str]) -> Command:
    """Returns how a scan starts an entry. Raises SubluminalError if only the client could."""
    words = [_expanded(word, environ) for word in own_command(entry.argv)]
    passed = {name: environ[name] for name in (*_PASSED, *CERTIFICATE_VARIABLES) if name in environ}
    withheld: list[str] = []
    table = env_of(entry, client)
    for member in table.members if table else ():
        value = _expanded(member.node.string or "", environ)
        if looks_secret(member.name, value) or has_secret_name(member.name):
            withheld.append(member.name)
            value = PLACEHOLDER
        passed[member.name] = value
    return Command(entry.server, words, passed, tuple(withheld))


def _expanded(text: str, environ: Mapping[str, str]) -> str:
    def value(found: "re.Match[str]") -> str:
        name = found[1] or found[3]
        return PLACEHOLDER if has_secret_name(name) else environ.get(name, found[2] or "")

    expanded = _VARIABLE.sub(value, text)
    left = references_in(expanded)
    if left:
        # Not the whole text: what stands beside the reference may be a secret.
        raise SubluminalError(f"only the client can fill in `{left[0]}`")
    return expanded


def list_tools(command: Command, cwd: str, timeout_s: float = TIMEOUT_S) -> list[Tool]:
    """Starts a server and returns its tools. Raises SubluminalError; leaves no process behind."""
    become_subreaper()
    warden = WardenHandle.fork()
    talk = _Talk(warden, time.monotonic() + timeout_s)
    try:
        warden.spawn(command.words, command.environ, cwd=cwd, grace_ms=_GRACE_MS)
        return tools_from(list(talk.tools()))
    except ValueError:
        raise SubluminalError("its command contains a NUL character") from None
    finally:
        _end(warden)


def _end(warden: WardenHandle) -> None:
    os.close(warden.stdin_fd)
    warden.stop(grace_ms=_GRACE_MS)
    deadline = time.monotonic() + _END_MS / 1000
    while not (warden.gone or warden.closed) and time.monotonic() < deadline:
        warden.wait_gone(200)
        warden.hurry()
    if not warden.gone:
        warden.sweep()
    warden.dismiss(1_000)
    for fd in (warden.stdout_fd, warden.stderr_fd):
        os.close(fd)


class _Talk:
    """The conversation with one server."""

    def __init__(self, warden: WardenHandle, deadline: float) -> None:
        self._warden = warden
        self._deadline = deadline
        self._lines: deque[bytes] = deque()
        self._begun = b""
        """the beginning of a line whose end has not been read yet"""
        self._written = 0
        self._open = [warden.stdout_fd, warden.stderr_fd]
        self._stderr = StderrTail()
        self._id = 0
        os.set_blocking(warden.stdin_fd, False)

    def tools(self) -> Iterator[Any]:
        """Yields what the server lists, page by page."""
        meta = self._introduce()
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MAX_PAGES):
            asked = {**({"cursor": cursor} if cursor else {}), **meta}
            answer = self._ask("tools/list", asked)
            tools = answer.get("tools") if isinstance(answer, dict) else None
            if not isinstance(tools, list):
                raise SubluminalError("it does not list tools")
            yield from tools
            cursor = answer.get("nextCursor")
            if not isinstance(cursor, str) or not cursor or cursor in seen:
                return
            seen.add(cursor)

    def _introduce(self) -> dict[str, Any]:
        """Says who we are. Returns what each request of a server of the newest era needs."""
        info = {"name": "subluminal-scan", "version": __version__}
        hello = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": info}
        if self._ask("initialize", hello) is not None:
            self._send({"method": "notifications/initialized"})
            return {}
        return {
            "_meta": {
                f"{_META}/protocolVersion": _MODERN,
                f"{_META}/clientInfo": info,
                f"{_META}/clientCapabilities": {},
            }
        }

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        """Sends a request; returns its result, or None if the answer is an error."""
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        while True:
            message = self._message()
            if not isinstance(message, dict):
                continue
            if "method" in message and "id" in message:
                self._answer(message)
            elif message.get("id") == self._id and not isinstance(message.get("id"), bool):
                return message.get("result")

    def _answer(self, message: dict[str, Any]) -> None:
        """Answers the server's own requests: it may wait for them before it lists tools."""
        if message["method"] == "ping":
            self._send({"id": message["id"], "result": {}})
        else:
            problem = {"code": -32601, "message": "a scan only lists tools"}
            self._send({"id": message["id"], "error": problem})

    def _send(self, message: dict[str, Any]) -> None:
        left = memoryview(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        while left:
            try:
                left = left[os.write(self._warden.stdin_fd, left) :]
            except BlockingIOError:
                self._wait(writing=True)
            except BrokenPipeError:
                raise self._ended() from None

    def _message(self) -> Any:
        """Returns the next line of JSON. Lines that are not JSON are skipped."""
        while True:
            while self._lines:
                try:
                    return json.loads(self._lines.popleft())
                except (ValueError, RecursionError):
                    continue
            if len(self._begun) > _MAX_LINE_BYTES:
                raise SubluminalError("it wrote a line that is too long")
            if self._warden.stdout_fd not in self._open:
                raise self._ended()
            self._wait()

    def _wait(self, *, writing: bool = False) -> None:
        """Reads what the server has written, or waits for it until the deadline."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise SubluminalError(f"it did not answer in time{self._told()}")
        to_write = [self._warden.stdin_fd] if writing else []
        for fd in select.select(self._open, to_write, [], left)[0]:
            self._read(fd)

    def _read(self, fd: int) -> None:
        data = os.read(fd, 65_536)
        if not data:
            self._open.remove(fd)
        elif fd == self._warden.stderr_fd:
            self._stderr.feed(data)
        else:
            self._written += len(data)
            if self._written > _MAX_BYTES:
                raise SubluminalError(f"it wrote more than {_MAX_BYTES >> 20} MiB")
            *whole, self._begun = (self._begun + data).split(b"\n")
            self._lines += whole

    def _ended(self) -> SubluminalError:
        """Returns why a server that closed its output listed no tools."""
        while time.monotonic() < self._deadline:
            if not select.select([self._warden.report_fd, *self._open], [], [], _LAST_WORDS_S)[0]:
                break
            for fd in select.select(self._open, [], [], 0)[0]:
                self._read(fd)
            for report in self._warden.read_reports():
                if report.kind == FAILED:
                    return SubluminalError(report.detail or "it could not be started")
                if report.kind == EXITED:
                    how = how_it_ended(report)
                    return SubluminalError(f"it {how}{self._told()}")
            if self._warden.closed:
                break
        return SubluminalError(f"it closed its output{self._told()}")

    def _told(self) -> str:
        from subluminal.core.records.redaction.redactor import Redactor

        line = Redactor().redact(self._stderr.line())[0][:200]
        return f": {line}" if line else ""
