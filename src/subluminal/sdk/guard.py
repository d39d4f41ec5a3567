"""`Guard`: opens the in-process door for a program's own functions.

    guard = Guard(agent_id="billing")

Arguments that are not given come from the environment and the settings, as a shim finds them.
"""

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

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
from subluminal.core.host import Host
from subluminal.core.runs.opening import Sharing
from subluminal.errors import PolicyError
from subluminal.wiring import open_host

if TYPE_CHECKING:
    from subluminal.adapters.in_process.guarding.asking import Callback
    from subluminal.adapters.in_process.guarding.care import Care
    from subluminal.adapters.in_process.guarding.plugins import Plugin
    from subluminal.adapters.in_process.guarding.reports import OnError

__all__ = [
    "Blocked",
    "Guard",
    "PolicyError",
    "Refused",
    "Rejected",
    "RunTerminated",
    "Throttled",
]

_FIRST_POLICY_S = 30.0
"""Longest wait for the compiler when a guard is made; a compiler that takes longer gives up."""


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

        `policy` is a path or a policy as a dict, in any language that `sub policy lint` takes; it
        replaces the repository's. `run_id` goes before SUB_RUN_ID; without either, this process is
        a run of its own, and shims that it starts share it. With `refusals="return"`, guarded
        functions return the text of a refusal instead of raising it.

        `plugins` decide besides the policies; the strictest decision holds. With
        `approvals="wait"`, a call that needs a person's approval waits for `sub approve` or
        `sub deny`, for `approval_timeout_ms` at most. A function as `approvals` is asked as well:
        it gets the Refused, and returns True, False, or None to leave it to a person. With
        `on_throttle="wait"`, a throttled call waits and tries again. `on_error` is told of errors
        of plugins and callbacks, and of bugs of ours; it gets the error, and where it happened.
        """
        care = _care(tuple(plugins), approvals, approval_timeout_ms, on_throttle, on_error)
        environ = _environ(
            {
                variables.SUB_HOME.name: None if home is None else os.fspath(home),
                variables.SUB_AGENT_ID.name: agent_id,
                variables.SUB_PRINCIPAL.name: principal,
                variables.SUB_ENV.name: env,
            }
        )
        where = places(environ)
        path = _policy_path(policy, where)
        host = open_host(
            where,
            environ=environ,
            run_id=run_id,
            policy=path,
            settings=load_settings(where.settings),
            sharing=Sharing(threads=True),
            client_pid=os.getpid(),
            attestation=attestation,
            names_runs=True,
        )
        try:
            if path is not None:
                _require_policy(host, path)
        except BaseException:
            host.close()
            raise
        super().__init__(host, server=server, refusals=refusals, care=care)


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


def _environ(given: dict[str, str | None]) -> Mapping[str, str]:
    return {**os.environ, **{name: value for name, value in given.items() if value is not None}}


def _policy_path(
    policy: str | os.PathLike[str] | Mapping[str, Any] | None, where: Places
) -> str | None:
    """Returns the file of a policy; one that was given as a dict is written to the cache."""
    if policy is None:
        return None
    if not isinstance(policy, Mapping):
        return os.path.abspath(os.fspath(policy))
    import json

    try:
        text = json.dumps(policy, sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise PolicyError(
            f"`policy` is not JSON: {error}", hint="give a dict as YAML would be"
        ) from None
    directory = make_private_dir(os.path.join(where.cache, "given"))
    path = os.path.join(directory, f"{sha256(text).hexdigest()}.json")
    os.replace(write_aside(path, text), path)
    return path


def _require_policy(host: Host, path: str) -> None:
    """Waits until the policy is compiled. Raises PolicyError if it cannot be used."""
    host.await_policies(_FIRST_POLICY_S)
    problem = host.policy_problem
    if problem is not None and path in problem:
        raise PolicyError(problem, hint="check it with `sub policy lint`")
