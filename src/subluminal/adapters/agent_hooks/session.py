"""Decides the events of one session: holds the host and the calls that have begun and not ended.

A call begins with the event before it and ends with the event after it. If there is none, because a
person said no or because the client skips it, the call ends CANCELLED with the turn. A call that
another door has taken over ends there.
"""

import os
from collections import deque
from collections.abc import Callable, Mapping
from hashlib import sha256

from subluminal.adapters.agent_hooks.clients.description import HookClient
from subluminal.adapters.agent_hooks.events import (
    Call,
    Event,
    Kind,
    Members,
    Reserved,
    Unreadable,
)
from subluminal.adapters.agent_hooks.wire import Answer, Header
from subluminal.canonical import encode
from subluminal.config.places import recordable
from subluminal.contracts.call import BUILT_IN, MCP, ToolCall
from subluminal.contracts.templates import encode_json
from subluminal.contracts.vocabulary import Action, ErrorClass, ReasonCode, Status, Transport
from subluminal.core.host import Host
from subluminal.core.outcomes import given_up, refused
from subluminal.core.refusal_text import message_of
from subluminal.core.ruling import CallEnding, Ruling
from subluminal.core.runs.names import journal_dir
from subluminal.core.tool_names import exact_name

_UNKNOWN_TOOL = "?"
"""The tool name in the record of an event that cannot be read."""
_MAX_OPEN = 4_096
"""Most calls that are open at once; past it the oldest is ended."""
_MAX_REFUSALS = 256
_NOT_RUN = "the client did not run the call, or did not tell how it ended"

_Identity = tuple[str, str, str]
"""Server, tool and hash of the arguments."""

_ALLOWED = Answer()
"""Says nothing: a client that is told `allow` would skip its own questions to its person."""


class Session:
    """The events of one session of a client."""

    def __init__(
        self, host: Host, client: HookClient, configured: Callable[[], Mapping[str, bool]]
    ) -> None:
        """`configured` returns the servers in the client's configuration: whether each has a shim.

        A shim decides a call anew if it is not the call that this door has decided.
        """
        self._host = host
        self._client = client
        self._configured = configured
        self._servers: Mapping[str, bool] | None = None
        self._open: dict[object, deque[Ruling]] = {}
        self._refusals: dict[str, tuple[_Identity, Answer]] = {}
        """what was told about the last refused calls, by the model's id of the call"""
        self.open_calls = 0
        self.has_ended = False

    def handle(self, header: Header, text: bytes) -> Answer:
        """Decides or records one event; returns what the client is told."""
        kind = Kind.BEFORE
        try:
            members = Members(text)
            kind = self._client.kind_of(header.event, members)
            if kind is Kind.BEFORE:
                members.check(self._max_bytes)
            servers = self._configured_servers() if kind in (Kind.BEFORE, Kind.AFTER) else ()
            event = self._client.read(kind, members, servers)
        except Unreadable as problem:
            return self._unreadable(problem, header, len(text)) if kind is Kind.BEFORE else Answer()
        return self._act_on(event, header, len(text))

    def _act_on(self, event: Event, header: Header, size: int) -> Answer:
        session = self._session(event)
        if event.kind in (Kind.BEFORE, Kind.STARTED, Kind.PROMPTED):
            self.has_ended = False  # some clients go on after the event that ends the session
        if event.kind is Kind.BEFORE and event.call is not None:
            return self._before(event.call, size, event.cwd or header.cwd, session)
        if event.kind is Kind.AFTER and event.call is not None:
            self._after(event, event.call, event.cwd or header.cwd)
        elif event.kind is Kind.PROBE:
            return self._host_described()
        elif event.kind is Kind.STARTED:
            self._servers = None
            self._host.open_run(session=session)
        elif event.kind in (Kind.PROMPTED, Kind.STOPPED, Kind.ENDED):
            self.cancel_open()
            if event.kind is Kind.ENDED:
                self._end(session)
        if event.kind is Kind.PROMPTED and self._host.settings.hooks.prompts == "metadata":
            self._host.open_run(session=session).record_prompt(event.prompt or b"")
        self._host.flush()
        return Answer()

    def _end(self, session: str | None) -> None:
        """Notes that the session is over.

        If the hook shim that held its run was killed, this one enters the run first, so that the
        run gets its end.
        """
        self.has_ended = True
        run_id = self._host.run_of(session)
        if not self._host.has_runs and os.path.isdir(journal_dir(self._host.places, run_id)):
            self._host.open_run(session=session)

    def _session(self, event: Event) -> str | None:
        """Returns the run that an event names, or None."""
        named = event.session if self._client.names_run else None
        return recordable(named) if named else None

    @property
    def _max_bytes(self) -> int:
        return self._host.settings.limits.max_inspect_bytes

    def _configured_servers(self) -> Mapping[str, bool]:
        if self._servers is None:
            self._servers = self._configured()
        return self._servers

    # Before a call

    def _before(self, asked: Call, size: int, cwd: str, session: str | None) -> Answer:
        call, args_text = self._tool_call(asked, cwd, size)
        told = self._told_before(call)
        if told is not None:
            return told
        if asked.args is None and call.args is None and len(asked.args_raw) <= self._max_bytes:
            summary = "the call's arguments can be read in more than one way"
            ruling = self._host.begin_undecidable(
                call, ReasonCode.AMBIGUOUS_MESSAGE, summary, session
            )
        else:
            ruling = self._host.begin(call, args_text, session)
        return self._told(ruling)

    def _told(self, ruling: Ruling) -> Answer:
        if not ruling.is_allowed:
            return self._refused(ruling)
        self._remember(ruling)
        self._host.offer(ruling, by_run=not self._client.sends_ids)
        return self._allowed(ruling)

    def _allowed(self, ruling: Ruling) -> Answer:
        decision = ruling.decision
        if self._client.ask is not None and decision.reason_code == ReasonCode.CLIENT_ASKED:
            return self._client.ask(decision.summary)
        return _ALLOWED

    def _told_before(self, call: ToolCall) -> Answer | None:
        """Returns the answer of an event that came before: a hook may be configured twice."""
        call_id = call.context.get("client_call_id")
        if call_id is None:
            return None
        waiting = self._open.get(call_id)
        if waiting and _identity(waiting[0].call) == _identity(call):
            return self._allowed(waiting[0])
        refused_call, answer = self._refusals.get(call_id, (None, None))
        return answer if refused_call == _identity(call) else None

    def _remember_refusal(self, call: ToolCall, answer: Answer) -> None:
        call_id = call.context.get("client_call_id")
        if call_id is None:
            return
        if len(self._refusals) >= _MAX_REFUSALS:
            del self._refusals[next(iter(self._refusals))]
        self._refusals[call_id] = (_identity(call), answer)

    def _refused(self, ruling: Ruling) -> Answer:
        decision = ruling.decision
        ends_run = decision.action is Action.TERMINATE_RUN
        answer = self._client.refuse(message_of(decision, ruling.call.args), ends_run)
        self._remember_refusal(ruling.call, answer)
        size = len(answer.stdout) + len(answer.stderr)
        self._host.finish(ruling, refused(decision.summary, size, decision.action))
        self._host.flush()
        return answer

    def _unreadable(self, problem: Unreadable, header: Header, size: int) -> Answer:
        """Applies `decision_on_error` to an event before a call that cannot be read."""
        unknown = Call(server_name=f"@{self._client.name}", tool_name=_UNKNOWN_TOOL, args={})
        call, _ = self._tool_call(unknown, header.cwd, size)
        is_final = isinstance(problem, Reserved)
        begin = self._host.refuse if is_final else self._host.begin_undecidable
        ruling = begin(call, ReasonCode.AMBIGUOUS_MESSAGE, str(problem))
        if not ruling.is_allowed:
            return self._refused(ruling)
        # Nobody can tell which event, if any, will be about this call.
        self._host.finish(ruling, CallEnding(Status.OK, 0))
        self._host.flush()
        return Answer()

    def _tool_call(self, asked: Call, cwd: str, size: int = 0) -> tuple[ToolCall, bytes | None]:
        """Returns a call for the host, and its canonical arguments if they can be inspected."""
        context = {} if asked.call_id is None else {"client_call_id": asked.call_id}
        args, args_text = asked.args, None
        if args is not None and len(asked.args_raw) <= self._max_bytes:
            args_text = encode(args)
            args_hash = sha256(args_text).hexdigest()
        else:
            args = None
            args_hash = sha256(asked.args_raw).hexdigest()
            context["args_stream_hash"] = args_hash
        call = ToolCall(
            server_name=recordable(asked.server_name),
            tool_name=self._exact_name(asked),
            args=args,
            args_hash=args_hash,
            bytes_in=size,
            transport=Transport.AGENT_HOOK,
            provider=BUILT_IN if asked.server_name.startswith("@") else MCP,
            context=context,
            cwd=cwd,
        )
        return call, args_text

    def _exact_name(self, asked: Call) -> str:
        """Returns a tool's name as its server gives it, as far as that is known.

        The names may be those of another server of this name, so they are for servers with a shim,
        where a call of another name is decided anew.
        """
        spell = self._client.spell
        if spell is None or not self._configured_servers().get(asked.server_name):
            return asked.tool_name
        return exact_name(self._host.places, asked.server_name, asked.tool_name, spell)

    # After a call

    def _after(self, event: Event, told: Call, cwd: str) -> None:
        call, _ = self._tool_call(told, cwd)
        ruling = self._forget(call) or self._host.take(call, self._session(event))
        if ruling is None or not self._host.withdraw(ruling):
            return  # it was ended before, or another door ends it
        status, error_class = Status.OK, None
        if event.is_cancelled:
            status, error_class = Status.CANCELLED, ErrorClass.UNKNOWN
        elif event.error is not None:
            status, error_class = Status.ERROR, ErrorClass.UPSTREAM_ERROR
        ran_other = call.args_hash != ruling.call.args_hash
        outcome = CallEnding(
            status,
            len(event.result),
            event.result if len(event.result) <= self._max_bytes else None,
            error_class=error_class,
            error_message=event.error or "",
            executed_args_hash=call.args_hash if ran_other else None,
        )
        self._host.finish(ruling, outcome)

    def cancel_open(self) -> None:
        """Ends every open call that no other door has taken over."""
        for waiting in list(self._open.values()):
            for ruling in waiting:
                self._cancel(ruling)
        self._open.clear()
        self.open_calls = 0

    def _cancel(self, ruling: Ruling) -> None:
        if self._host.withdraw(ruling):
            self._host.finish(ruling, given_up(Status.CANCELLED, _NOT_RUN))

    def _remember(self, ruling: Ruling) -> None:
        if self.open_calls >= _MAX_OPEN:
            oldest = next(iter(self._open.values()))[0]
            self._forget(oldest.call)
            self._cancel(oldest)
        self._open.setdefault(_key(ruling.call), deque()).append(ruling)
        self.open_calls += 1

    def _forget(self, call: ToolCall) -> Ruling | None:
        """Returns the oldest open call that an event can be about, and no longer holds it."""
        key = _key(call)
        waiting = self._open.get(key)
        if not waiting:
            return None
        ruling = waiting.popleft()
        if not waiting:
            del self._open[key]
        self.open_calls -= 1
        return ruling

    def _host_described(self) -> Answer:
        from subluminal import __version__

        about = {"version": __version__, "home": recordable(self._host.places.home)}
        return Answer(stdout=encode_json({"subluminal": about}) + b"\n")


def _identity(call: ToolCall) -> _Identity:
    return call.server_name, call.tool_name, call.args_hash


def _key(call: ToolCall) -> object:
    """Returns what the events before and after a call have in common."""
    return call.context.get("client_call_id") or _identity(call)
