"""What a program holds: guards its functions, and decides and records their calls.

A guarded call is a call of the run like any other: the same policies, budgets, stops, approvals,
journal and ledger as at the doors of shims and hooks. Threads, tasks and forked children may share
a guard.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, overload

from subluminal.adapters.in_process.guarding.arguments import Arguments, Binder, arguments_of
from subluminal.adapters.in_process.guarding.calls import GuardedCall, Wanted
from subluminal.adapters.in_process.guarding.exits import close_at_exit, forget
from subluminal.adapters.in_process.guarding.functions import guarded, innermost
from subluminal.adapters.in_process.guarding.refused import Refused, RunTerminated
from subluminal.adapters.in_process.guarding.scopes import ScopedRun, current_run
from subluminal.adapters.in_process.guarding.touched import GivenTargets, declared
from subluminal.config.places import recordable
from subluminal.contracts.call import BUILT_IN, Given
from subluminal.contracts.decision import Decision
from subluminal.contracts.gate import Settled
from subluminal.contracts.vocabulary import Status
from subluminal.core.ruling import CallEnding, Ruling
from subluminal.core.runs.names import uuid7
from subluminal.core.threaded_host import ThreadedHost

if TYPE_CHECKING:
    from subluminal.adapters.in_process.guarding.care import Care

_P = ParamSpec("_P")
_R = TypeVar("_R")

Refusals = Literal["raise", "return"]
_DECIDED_ONLY = b'"decided, not executed"'


class GuardDoor:
    """The in-process door. `sdk.Guard` opens it."""

    def __init__(
        self, host: ThreadedHost, *, server: str, refusals: Refusals, care: "Care | None" = None
    ) -> None:
        """`care` has the plugins of the guard, and what it waits for; None if there is nothing."""
        self._host = host
        self._care = care
        if care is not None:
            host.on_bug = care.reports.bug
        self._server = server
        self._refusals = refusals
        close_at_exit(self)

    # Functions

    @overload
    def tool(self, fn: Callable[_P, _R]) -> Callable[_P, _R]: ...
    @overload
    def tool(
        self,
        fn: None = None,
        *,
        name: str | None = None,
        server: str | None = None,
        labels: Iterable[str] = (),
        provider: str = BUILT_IN,
        targets: GivenTargets = None,
        args: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
    def tool(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        server: str | None = None,
        labels: Iterable[str] = (),
        provider: str = BUILT_IN,
        targets: GivenTargets = None,
        args: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> Any:
        """Guards a function: every call of it is decided before it runs, and recorded.

        `name` is the tool's name, by default that of the function; `server` that of the server,
        by default the guard's. `targets` says which parameters are what a call touches, as
        `[servers.NAME.targets]` of the settings does: `{"path": "file", "access": "read"}`. It may
        be a function that takes the arguments and returns such values: `{"path": ["/a", "/b"]}`.
        `args` turns the bound arguments into those that rules and records see, for example to leave
        out a connection.
        """
        if fn is None or isinstance(fn, staticmethod | classmethod):
            guard_it = functools.partial(
                self.tool,
                name=name,
                server=server,
                labels=labels,
                provider=provider,
                targets=targets,
                args=args,
            )
            return guard_it if fn is None else type(fn)(guard_it(fn.__func__))
        binder = Binder(fn)
        tool: str = name or _name_of(fn)
        of_server = server or self._server
        if targets is not None:
            parameters = None if args is not None else binder.names
            self._host.declare_targets(of_server, tool, declared(targets, parameters))
        given = _given(labels, None)

        def enter(positional: tuple[Any, ...], named: dict[str, Any]) -> GuardedCall:
            bound = binder.bind(positional, named)
            # `_arguments` and `_call`, inlined: every call of a guarded function passes here.
            most = self._host.settings.limits.max_inspect_bytes
            found = arguments_of(bound if args is None else args(bound), most)
            wanted = Wanted(of_server, tool, found, provider, given)
            if self._care is None:
                return GuardedCall(self._host, wanted, self._begin)
            # Plugins and callbacks run before the function does, and a wait may take minutes.
            wanted.read_again = lambda: arguments_of(bound if args is None else args(bound), most)
            return GuardedCall(self._host, wanted, self._begin, self._care.of(wanted))

        return guarded(fn, enter, self._told)

    # Calls

    def call(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        server: str | None = None,
        labels: Iterable[str] = (),
        context: Mapping[str, Any] | None = None,
        provider: str = BUILT_IN,
        client_call_id: str | None = None,
    ) -> GuardedCall:
        """Guards a block: `with guard.call("refund", {"order": 7}) as call: call.result = …`.

        `client_call_id` is the id that a framework gave the call.
        """
        wanted = self._wanted(tool, args, server, labels, context, provider, client_call_id)
        return self._call(wanted)

    def check(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        server: str | None = None,
        labels: Iterable[str] = (),
        context: Mapping[str, Any] | None = None,
        provider: str = BUILT_IN,
        client_call_id: str | None = None,
    ) -> Decision:
        """Decides and records a call that is not executed here. Never raises for a refusal."""
        wanted = self._wanted(tool, args, server, labels, context, provider, client_call_id)
        call = self._call(wanted)
        try:
            call.begin(waits=False)
        except Refused:
            return call.decision
        self._host.finish(call.ruling, CallEnding(Status.OK, len(_DECIDED_ONLY), _DECIDED_ONLY))
        return call.decision

    # Runs

    @property
    def run_id(self) -> str:
        """The run of the calls that are made here."""
        return self._host.run_of(self._scope())

    def run(self, run_id: str | None = None, meta: dict[str, Any] | None = None) -> ScopedRun:
        """Opens a run: `with guard.run(): …`. Calls inside of the block belong to it."""
        return ScopedRun(self._host, recordable(run_id) if run_id else uuid7(), meta)

    def close(self) -> None:
        """Leaves every run and closes every file. The end of the interpreter does it too."""
        forget(self)
        self._host.close()

    def leave_at_exit(self) -> None:
        """Leaves every run that has no call under way, because the interpreter ends."""
        self._host.leave_idle()

    def _on(self, host: ThreadedHost) -> Self:
        """Returns a guard with the same options on another host."""
        found = copy(self)
        found._host = host
        if self._care is not None:
            host.on_bug = self._care.reports.bug
        close_at_exit(found)
        return found

    def _scope(self) -> str | None:
        """Returns the run that the program has opened around this; None if there is none."""
        scope = current_run.get()
        return None if scope is None else scope.run_for(self._host)

    # One call

    def _wanted(
        self,
        tool: str,
        args: Mapping[str, Any],
        server: str | None,
        labels: Iterable[str],
        context: Mapping[str, Any] | None,
        provider: str,
        client_call_id: str | None,
    ) -> Wanted:
        found, given = self._arguments(dict(args)), _given(labels, context)
        tool = tool if type(tool) is str else str.__str__(tool)  # such as of a StrEnum
        return Wanted(server or self._server, tool, found, provider, given, client_call_id)

    def _arguments(self, given: dict[str, Any]) -> Arguments:
        return arguments_of(given, self._host.settings.limits.max_inspect_bytes)

    def _call(self, wanted: Wanted) -> GuardedCall:
        care = None if self._care is None else self._care.of(wanted)
        return GuardedCall(self._host, wanted, self._begin, care)

    def _begin(self, wanted: Wanted, retry_of: str | None, added: Settled | None) -> Ruling:
        host, scope = self._host, current_run.get()
        session = None if scope is None else scope.run_for(host)
        return host.begin(wanted.call(retry_of, added), wanted.arguments.text, session)

    def _told(self, refused: Exception) -> str:
        """Returns the text of a refusal, for tools that return it. The end of a run is raised."""
        if self._refusals == "raise" or isinstance(refused, RunTerminated):
            raise refused
        return str(refused)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _name_of(function: Callable[..., Any]) -> str:
    inner = innermost(function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def _given(labels: Iterable[str], context: Mapping[str, Any] | None) -> Given | None:
    if isinstance(labels, str):  # its letters would be the labels
        raise TypeError(f"`labels` must be a list of texts, such as [{labels!r}]")
    found = frozenset(labels)
    if not found and not context:
        return None
    return Given(labels=found, context=dict(context or {}))
