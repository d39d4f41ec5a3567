"""`Guard`: opens the in-process door for a program's own functions.

    guard = Guard(agent_id="billing")

Arguments that are not given come from the environment and the settings, as a shim finds them.
"""

import os
import re
import warnings
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, cast

from subluminal.adapters.in_process.guarding.guard import GuardDoor, Refusals
from subluminal.adapters.in_process.guarding.refused import (
    Blocked,
    Refused,
    Rejected,
    RunTerminated,
    Throttled,
)
from subluminal.config import env as variables
from subluminal.config.loading import load_settings
from subluminal.config.places import Places, make_private_dir, places
from subluminal.config.private_files import write_aside
from subluminal.config.usable_home import problem_with
from subluminal.core.host import Host
from subluminal.core.runs.opening import Sharing
from subluminal.core.threaded_host import HOLD_MS, ThreadedHost
from subluminal.errors import PolicyError, SubluminalError
from subluminal.wiring import launch_of, open_host

if TYPE_CHECKING:
    from subluminal.adapters.in_process.guarding.asking import Callback
    from subluminal.adapters.in_process.guarding.care import Care
    from subluminal.adapters.in_process.guarding.plugins import Plugin
    from subluminal.adapters.in_process.guarding.reports import OnError
    from subluminal.core.acting.launches import Launch

__all__ = [
    "Blocked",
    "Guard",
    "PolicyError",
    "Refused",
    "Rejected",
    "RunTerminated",
    "Throttled",
]

_PLACE = r"^:[0-9]+:[0-9]+: "
"""Line and column before a message about a policy."""
_FIRST_POLICY_S = 30.0
"""Longest wait for the compiler when a guard is made; a compiler that takes longer gives up."""

_PASSED_ON = (
    *variables.IDENTITY_VARIABLES,
    variables.SUB_HOME,
    variables.SUB_RUNTIME_DIR,
    variables.SUB_POLICY,
    variables.SUB_RUN_META,
    variables.SUB_KILL_SWITCH,
    variables.SUB_ATTESTATION,
    variables.SUB_ATTESTATION_FILE,
)


class Guard(GuardDoor):
    """Decides and records the calls of a program's functions. See `tool`, `call` and `check`."""

    def __init__(
        self,
        *,
        agent_id: str | None = None,
        server: str = "python",
        policy: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        run_id: str | None = None,
        env: str | None = None,
        principal: str | None = None,
        attestation: str | None = None,
        home: str | os.PathLike[str] | None = None,
        plugins: "Iterable[Plugin]" = (),
        approvals: "Literal['wait'] | Callback | None" = None,
        approval_timeout_ms: int = 300_000,
        on_throttle: Literal["raise", "wait"] = "raise",
        refusals: Refusals = "raise",
        on_error: "OnError | None" = None,
    ) -> None:
        """Opens the door. Raises PolicyError if `policy` cannot be used.

        Warns if nothing can be recorded; `decision_on_error` then applies to each call.

        `policy` is a path or a policy as a dict, in any language that `sub policy lint` takes; it
        replaces the repository's. `run_id` goes before SUB_RUN_ID; without either, this process is
        a run of its own, and shims that it starts share it. With `refusals="return"`, guarded
        functions return the text of a refusal instead of raising it.

        `plugins` decide in addition to the policies; the strictest decision holds. With
        `approvals="wait"`, a call that needs a person's approval waits for `sub approve` or
        `sub deny`, for `approval_timeout_ms` at most. A function as `approvals` is asked as well:
        it gets the Refused, and returns True, False, or None to leave it to a person. With
        `on_throttle="wait"`, a throttled call waits and tries again. `on_error` is told of errors
        of plugins and callbacks, and of bugs of ours; it gets the error, and where it happened.
        """
        if refusals not in ("raise", "return"):
            raise ValueError('`refusals` must be "raise" or "return"')
        care = _care(tuple(plugins), approvals, approval_timeout_ms, on_throttle, on_error)
        environ = _environ(
            {
                variables.SUB_HOME.name: None if home is None else os.path.abspath(home),
                variables.SUB_AGENT_ID.name: agent_id,
                variables.SUB_PRINCIPAL.name: principal,
                variables.SUB_ENV.name: env,
            }
        )
        where = places(environ)
        path = _policy_path(policy, where)
        problem = problem_with(where)
        if problem is not None:
            said = f"cannot use `{where.home}` ({problem}); nothing is recorded"
            warnings.warn(said, RuntimeWarning, stacklevel=2)
        if path is not None:
            environ[variables.SUB_POLICY.name] = path
        self._environ, self._attestation = environ, attestation
        self._launch: Launch | None = None
        """who handed the work on; None if nobody did"""
        host = _opened(environ, run_id, attestation, None)
        try:
            _await_policies(host, path, is_file=not isinstance(policy, Mapping))
        except BaseException:
            host.close()
            raise
        super().__init__(host, server=server, refusals=refusals, care=care)

    def delegate(self, agent_id: str, attestation: str | None = None) -> "Guard":
        """Returns a guard for another agent, to which this one hands work on, in the same run.

        Rules see one more delegation, at most this agent's trust, and those of its roles that both
        agents have. `attestation` is a token of the other agent. A token of this agent is verified
        now, which may take half a second. Close the guard when the work is done.
        """
        launch = self._handed_on(agent_id, attestation)
        tokens = variables.TOKEN_VARIABLES
        environ = {name: each for name, each in self._environ.items() if name not in tokens}
        environ[variables.SUB_AGENT_ID.name] = agent_id
        host = _opened(environ, self._host.run_id, attestation, launch)
        found = self._on(host)
        found._environ, found._attestation, found._launch = environ, attestation, launch
        return found

    def environ(self) -> dict[str, str]:
        """Returns variables for a child process, so that its shims and guards share the run.

        They name the run, the agent, the home and the policy, and are meant to be added to the
        environment of the child. A token is among them only if this process has it in its own
        environment; one that was given as `attestation` stays here.
        """
        names = (each.name for each in _PASSED_ON)
        found = {name: self._environ[name] for name in names if self._environ.get(name)}
        identity = self._host.identity
        found[variables.SUB_RUN_ID.name] = self.run_id
        found[variables.SUB_AGENT_ID.name] = identity.agent_id
        found[variables.SUB_HOME.name] = self._host.places.home
        if self._attestation is not None:
            for name in variables.TOKEN_VARIABLES:
                found.pop(name, None)
        return found

    def _handed_on(self, agent_id: str, attestation: str | None) -> "Launch":
        """Returns what is known about an agent to which this one hands work on."""
        from msgspec.structs import replace

        from subluminal.contracts.vocabulary import ProofKind
        from subluminal.core.acting.launches import MAX_DEPTH, Launch
        from subluminal.core.acting.tokens import TokenSource

        where, run_id = self._host.places, self._host.run_id
        parent = self._launch or launch_of(where)
        parent = parent or Launch(run_id=run_id, agent_id=self._host.identity.agent_id)
        source = TokenSource(self._environ, self._attestation)
        source.look()
        if source.token:
            parent = replace(parent, run_id=run_id, attested=_verified(where, parent, source.token))
        # Who is proven vouches for whom it hands work on to; a mere name vouches for nobody.
        attested = parent.attested
        is_attested = attested is not None and attested.proof.kind is ProofKind.ATTESTED
        is_proven = parent.is_launched or is_attested
        launch = Launch(run_id=run_id, agent_id=agent_id, is_launched=is_proven, parent=parent)
        if launch.depth > MAX_DEPTH:
            raise SubluminalError(f"more than {MAX_DEPTH} agents have handed this work on")
        return launch


def _care(
    plugins: "tuple[Plugin, ...]",
    approvals: "Literal['wait'] | Callback | None",
    approval_timeout_ms: int,
    on_throttle: Literal["raise", "wait"],
    on_error: "OnError | None",
) -> "Care | None":
    """Returns what a guard does around decisions; None if that is nothing. Raises ValueError."""
    if approvals not in (None, "wait") and not callable(approvals):
        raise ValueError('`approvals` must be None, "wait" or a function')
    if on_throttle not in ("raise", "wait"):
        raise ValueError('`on_throttle` must be "raise" or "wait"')
    if approval_timeout_ms < 0:
        raise ValueError("`approval_timeout_ms` must not be negative")
    if on_error is not None and not callable(on_error):
        raise ValueError("`on_error` must be a function")
    if not plugins and approvals is None and on_throttle == "raise" and on_error is None:
        return None
    from subluminal.adapters.in_process.guarding.care import Care
    from subluminal.adapters.in_process.guarding.plugins import Plugins
    from subluminal.adapters.in_process.guarding.reports import Reports
    from subluminal.adapters.in_process.guarding.waiting import WaitOptions
    from subluminal.sdk.answers import HomeAnswers

    options = WaitOptions(approvals, approval_timeout_ms, on_throttle, HomeAnswers())
    reports = Reports(on_error)
    return Care(Plugins(plugins, reports), options, reports)


def _verified(where: Places, launch: "Launch", token: bytes) -> Any:
    from subluminal.core.acting.attested import verify_now

    try:
        return verify_now(where, launch.agent_id, token)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"the agent's token cannot be verified: {reason}") from None


def _opened(
    environ: Mapping[str, str],
    run_id: str | None,
    attestation: str | None,
    launch: "Launch | None",
) -> ThreadedHost:
    where = places(environ)
    host = open_host(
        where,
        environ=environ,
        run_id=run_id,
        settings=load_settings(where.settings),
        sharing=Sharing(threads=True),
        client_pid=os.getpid(),
        attestation=attestation,
        names_runs=True,
        launch=launch,
    )
    return cast(ThreadedHost, host)  # what `sharing` asks for


def _environ(given: dict[str, str | None]) -> dict[str, str]:
    return {**os.environ, **{name: value for name, value in given.items() if value is not None}}


def _policy_path(
    policy: str | os.PathLike[str] | Mapping[str, Any] | None, where: Places
) -> str | None:
    """Returns the file of a policy; one that was given as a dict is written to the cache.

    A dict may leave out what YAML may leave out: a person writes both.
    """
    if policy is None:
        return None
    if not isinstance(policy, Mapping):
        return os.path.abspath(os.fspath(policy))
    import json

    from subluminal.contracts.short_forms import completed
    from subluminal.policy.dialects.agent_spm.shape import is_agent_spm

    plain = dict(policy)
    if not is_agent_spm(plain):
        plain = completed(plain)
    try:
        text = json.dumps(plain, sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise PolicyError(
            f"`policy` is not JSON: {error}",
            hint="use text, numbers, booleans, lists and dicts only",
        ) from None
    try:
        directory = make_private_dir(os.path.join(where.cache, "given"))
        path = os.path.join(directory, f"{sha256(text).hexdigest()}.json")
        os.replace(write_aside(path, text), path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PolicyError(
            f"`policy` cannot be written to `{where.cache}`: {reason}",
            hint="give the path of a file instead",
        ) from None
    return path


def _await_policies(host: Host, path: str | None, *, is_file: bool) -> None:
    """Waits until the policies are compiled. Raises PolicyError if the given one cannot be used.

    Children may be forked next, and have their first call before this process has one: they would
    wait for a compiler that only this process can collect.
    """
    host.await_policies(HOLD_MS / 1000 if path is None else _FIRST_POLICY_S)
    problem = host.policy_problem
    if problem is not None and path is not None and path in problem:
        if not is_file:  # the caller does not know the file, and its lines are not the caller's
            reason = problem.partition(": ")[2].removeprefix(path)
            problem = f"`policy` cannot be used: {re.sub(_PLACE, '', reason)}"
        raise PolicyError(problem, hint=f"see all problems with `sub policy lint {path}`")
