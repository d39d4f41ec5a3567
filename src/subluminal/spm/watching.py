"""The kill switch, and the plugin that looks at the results of tools."""

import os
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec

from subluminal.config.places import Places, places
from subluminal.core.controls.stops import Stop, read_stops, stop_name
from subluminal.operator.stopping import Target, revive, stop
from subluminal.policy.patterns import regex_finders, regex_problem
from subluminal.spm.trust import environ_in
from subluminal.spm.types import (
    AfterExecutionContext,
    Decision,
    PluginResult,
    Reason,
)

_SESSION_S = 3_600.0
"""How long a session counts, from its first call."""
_BY_PROGRAM = "a program said: "
"""Begins the reason of a stop that a program set."""
_ALL = Target("all", "")


class KillSwitch:
    """Stops agents of this home, at every door, as `sub kill` does.

    It holds without being among the plugins. A stop that a person set is lifted by `sub revive`
    only. Codes: GLOBAL_KILL_SWITCH, AGENT_KILL_SWITCH.
    """

    name = "kill-switch"

    def __init__(self, home: str | os.PathLike[str] | None) -> None:
        self._places: Places = places(environ_in(home))

    def kill(self, agent_id: str, reason: str = "") -> None:
        """Stops an agent, from its next call on."""
        stop(self._places, Target("agent", agent_id), reason=by_program(reason))

    def revive(self, agent_id: str) -> bool:
        """Lets an agent go on; False if a program has not stopped it."""
        return self._revive(Target("agent", agent_id))

    def kill_all(self, reason: str = "") -> None:
        """Stops all agents of this home."""
        stop(self._places, _ALL, reason=by_program(reason))

    def revive_all(self) -> bool:
        """Lets go on whatever a program has stopped; False if that is nothing."""
        own = [each for each in self.get_state() if _is_by_program(each)]
        for each in own:
            revive(self._places, Target(each.scope, each.target))
        return bool(own)

    def is_killed(self, agent_id: str) -> bool:
        """Whether all calls of an agent are refused, by a program or by a person."""
        found = read_stops(self._places.state)
        return "all" in found or stop_name("agent", agent_id) in found

    def get_state(self) -> list[Stop]:
        """Returns the stops of agents, and that of all."""
        found = read_stops(self._places.state).values()
        return [each for each in found if each.scope in ("agent", "all")]

    def _revive(self, target: Target) -> bool:
        found = read_stops(self._places.state).get(stop_name(*target))
        if found is None or not _is_by_program(found):
            return False
        revive(self._places, target)
        return True


def by_program(reason: str) -> str:
    """Returns the reason of a stop that a program may lift again."""
    return _BY_PROGRAM + reason


def _is_by_program(found: Stop) -> bool:
    return found.reason.startswith(_BY_PROGRAM) and not found.problem


def kill_switch(*, home: str | os.PathLike[str] | None = None) -> KillSwitch:
    """Returns the kill switch of a home; without one, of SUB_HOME."""
    return KillSwitch(home)


class Violation(NamedTuple):
    """What is wrong with a result."""

    type: str
    message: str


class OutputValidator:
    """Looks at the results of tools that `protect` guards."""

    name = "output-validator"

    def __init__(
        self,
        patterns: Iterable[str],
        forbidden_keywords: Iterable[str],
        max_size: int | None,
        on_violation: Literal["flag", "withhold"],
    ) -> None:
        given = list(patterns)
        for pattern in given:
            problem = regex_problem(pattern)
            if problem is not None:
                raise ValueError(f"`{pattern}`: {problem}")
        self._finders = [find for _, find in regex_finders(given)]
        self._keywords = [each.casefold() for each in forbidden_keywords]
        self._max_size = max_size
        self._withholds = on_violation == "withhold"

    def after_execution(self, context: AfterExecutionContext) -> PluginResult | None:
        """Puts what is wrong with a result on the audit log, or withholds the result."""
        if context.error is not None:
            return None
        try:
            found = self.violations(context.result)
        except Exception as error:  # noqa: BLE001 - reading a result runs code of its values
            message = f"the result cannot be read: {type(error).__name__}"
            found = [Violation("PLUGIN_ERROR", message)]
        if not found:
            return None
        reasons = tuple(Reason(each.type, each.message) for each in found)
        return PluginResult(
            Decision(outcome="DENY" if self._withholds else "ALLOW", reasons=reasons)
        )

    def violations(self, result: Any) -> list[Violation]:
        """Returns what is wrong with a result."""
        text = _text_of(result)
        folded, size = text.casefold(), len(text.encode())
        found = []
        if any(find(text) for find in self._finders):
            found.append(Violation("sensitive_data", "the result contains sensitive data"))
        if any(each in folded for each in self._keywords):
            found.append(Violation("forbidden_keyword", "the result contains a forbidden word"))
        if self._max_size is not None and size > self._max_size:
            message = f"the result has {size} bytes, more than {self._max_size}"
            found.append(Violation("oversized_output", message))
        return found


def output_validator(
    *,
    patterns: Iterable[str] = (),
    forbidden_keywords: Iterable[str] = (),
    max_size: int | None = None,
    on_violation: Literal["flag", "withhold"] = "flag",
) -> OutputValidator:
    """Looks at the results of tools: for regular expressions, words, and their size in bytes.

    `flag` puts a violation on the audit log; `withhold` raises SecurityError in place of the
    result, and keeps the result out of the record. Types of violations, which are the codes:
    sensitive_data, forbidden_keyword, oversized_output.
    """
    if on_violation not in ("flag", "withhold"):
        raise ValueError("on_violation is `flag` or `withhold`")
    return OutputValidator(patterns, forbidden_keywords, max_size, on_violation)


def _text_of(result: Any) -> str:
    if not isinstance(result, str):
        try:
            # Decoded, because escaped text would hide what the patterns look for.
            result = "\n".join(_texts(msgspec.to_builtins(result, str_keys=True)))
        except (TypeError, ValueError, RecursionError):
            result = str(result)
    text: str = result
    return text.encode(errors="replace").decode()


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)
