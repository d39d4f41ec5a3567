"""The answer of a front that reaches no hook shim, or whose hook shim could not decide.

`--on-error` decides, not a rule. Loaded only when something went wrong.
"""

import os
from typing import TYPE_CHECKING

from subluminal.adapters.agent_hooks.front import REFUSED
from subluminal.adapters.agent_hooks.wire import Answer
from subluminal.config.places import places, working_directory

if TYPE_CHECKING:
    from subluminal.adapters.agent_hooks.entry import Options

_DEFAULT_TIMEOUT_MS = 5_000


def timeout_ms(options: "Options") -> int:
    """Returns `[hooks] timeout_ms` of the settings; its default if they cannot be read."""
    try:
        from subluminal.config.loading import load_settings

        path = places(os.environ, options.values.get("--home")).settings
        if os.path.exists(path):
            return load_settings(path).hooks.timeout_ms
    except Exception:  # noqa: BLE001 - a front always answers
        return _DEFAULT_TIMEOUT_MS
    return _DEFAULT_TIMEOUT_MS


def answer_without_shim(options: "Options", event: bytes, problem: BaseException) -> Answer:
    """Returns what `--on-error` says about an event that nobody could decide."""
    why = str(problem) or type(problem).__name__
    told = f"sub: this event was not recorded: {why}\n".encode("utf-8", "replace")
    try:
        if not _is_decisive(options, event) or not _blocks(options):
            return Answer(stderr=told)
    except Exception:  # noqa: BLE001 - whoever cannot tell blocks
        pass
    return _refused(options, f"Blocked: this call could not be decided, because {why}.")


def _is_decisive(options: "Options", event: bytes) -> bool:
    """Returns True for an event before a call, and for one that cannot be read."""
    from subluminal.adapters.agent_hooks.clients import client_named
    from subluminal.adapters.agent_hooks.events import Kind, Members, Unreadable

    client = client_named(options.client)
    try:
        return client.kind_of(options.event, Members(event)) is Kind.BEFORE
    except Unreadable:
        return True


def _blocks(options: "Options") -> bool:
    """Returns True if `--on-error` blocks; `auto` does where a policy is named or found."""
    if options.on_error != "auto":
        return options.on_error == "block"
    if options.policy:
        return True
    from subluminal.core.policies.files import policy_files

    where = places(os.environ, options.values.get("--home"))
    files = policy_files(where, working_directory(), None)
    return any(os.path.exists(file.path) for file in files)


def _refused(options: "Options", text: str) -> Answer:
    try:
        from subluminal.adapters.agent_hooks.clients import client_named

        return client_named(options.client).refuse(text, False)
    except Exception:  # noqa: BLE001 - the installation is broken, and the answer still counts
        return Answer(REFUSED, stderr=text.encode("utf-8", "replace") + b"\n")
