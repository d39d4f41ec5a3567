"""One check of a call: plugins, policies, answers of people, and what goes on the audit log.

The guard's own work is around it (`guarding.care`): it asks the plugins, decides and records every
try of the call, and waits for answers. A check translates between Agent-SPM's words and the
guard's, and tells the program what happened.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from subluminal.adapters.in_process.guarding.calls import GuardedCall
from subluminal.adapters.in_process.guarding.care import CallCare, Care
from subluminal.adapters.in_process.guarding.plugins import Plugins
from subluminal.adapters.in_process.guarding.refused import Refused
from subluminal.adapters.in_process.guarding.reports import Reports
from subluminal.adapters.in_process.guarding.steps import Ask, Steps, run, run_async
from subluminal.adapters.in_process.guarding.waiting import WaitOptions
from subluminal.contracts import decision as core
from subluminal.contracts.vocabulary import Action, Outcome
from subluminal.policy.outcomes import outcome_of
from subluminal.spm.answers import Answer, Answering, Questions
from subluminal.spm.doors import Door
from subluminal.spm.hooks import Bound, Counting, Said, SecurityPlugin, has_hooks
from subluminal.spm.reading import AuditLog, Codes, given_of
from subluminal.spm.types import (
    STRICTNESS,
    AfterExecutionContext,
    AgentActionRequest,
    Decision,
    Event,
    EventOutcome,
    PluginResult,
    Reason,
    SecurityError,
)

_WITHHELD = "the result was withheld"
_DECIDED_ONLY = "decided, not executed"


class Check:
    """One check, from the first hook of a plugin to the end of the call."""

    def __init__(
        self,
        request: AgentActionRequest,
        door: Door,
        codes: Codes,
        log: AuditLog,
        plugins: Iterable[SecurityPlugin],
        answering: Answering,
    ) -> None:
        self.request, self.door = request, door
        self.reports: Reports = answering.reports
        self.said: list[Said] = []
        """refusals and requirements of plugins"""
        self.first: Event | None = None
        self.decision: Decision | None = None
        """what was decided in the end"""
        self._codes, self._log, self._plugins = codes, log, list(plugins)
        self._met: list[Said] = []
        self._answer: tuple[Decision, Answer] | None = None
        """the last answer of a callback, and the decision that it was asked about"""
        self.wanted = door.wanted(request, given_of(request, door.environment))
        bound = [Bound(each, self) for each in self._plugins if has_hooks(each)]
        self._care = Care(Plugins(bound, self.reports), WaitOptions(), self.reports)
        self._care.waits = Questions(self, answering)

    def steps(self, call: "CheckedCall") -> Steps[None]:
        """Decides the call. Raises SecurityError if it may not pass."""
        allowed = False
        try:
            try:
                yield from CallCare(self._care, self.wanted).steps(call)
            except Refused:
                yield from self._refused(call)
                assert self.decision is not None
                raise SecurityError(self.decision) from None
            yield from self._passed(call)
            allowed = True
        except BaseException as error:  # cancelled, for example: nobody else would end the call
            call.abandon(error)
            raise
        finally:
            self._note(allowed=allowed)

    def executed(self, result: Any, error: BaseException | None) -> Steps[Decision | None]:
        """Shows plugins how the call ended; returns why its result is withheld."""
        assert self.decision is not None
        context = AfterExecutionContext(self.request, self.decision, result, error)
        withheld: Decision | None = None
        for plugin in self._plugins:
            hook = getattr(plugin, "after_execution", None)
            if hook is None:
                continue
            try:
                said = yield Ask(hook, (context,))
            except Exception as failure:  # noqa: BLE001 - code of the program; the call has run
                self.reports.tell(failure, f"after_execution of plugin {plugin.name}")
                continue
            if isinstance(said, PluginResult) and said.decision is not None:
                found = said.decision
                yield from self._log.add(self.request, found, found.outcome, plugin.name)
                if found.outcome != "ALLOW" and error is None:
                    withheld = withheld or found
        return withheld

    # What plugins and questions ask for

    def modify(self, request: AgentActionRequest) -> None:
        """Takes a request in which a plugin has changed what rules may test."""
        self.request = request
        self.wanted.given = given_of(request, self.door.environment)

    def shown(self, decision: core.Decision) -> Decision:
        """Returns the strictest decision so far, for a plugin."""
        return self._strictest(self._codes.decision_of(decision))[0]

    def is_met(self, said: Said) -> bool:
        """Whether a person has given what a plugin requires."""
        return any(each is said for each in self._met)

    def asked_for(self, refused: Refused) -> tuple[Decision, str | None]:
        """Returns the decision about which to ask, and the plugin that made it."""
        said = self._unmet()
        if said is not None and refused.decision.action is Action.REJECT_WITH_HINT:
            return said
        return self._codes.decision_of(refused.decision), None

    def answered(self, decision: Decision, answer: Answer, plugin: str | None) -> Steps[None]:
        """Takes an answer. With a yes, what a plugin requires is met."""
        self._answer = decision, answer
        if plugin is not None and answer.is_yes:
            self._met += [each for each in self.said if each.decision is decision]
            self._answer = None
            yield from self.tell(_with(decision, "ALLOW", answer), "APPROVED", plugin)

    # What is told

    def tell(self, decision: Decision, outcome: EventOutcome, plugin: str | None) -> Steps[None]:
        """Puts an event on the audit log."""
        event = yield from self._log.add(self.request, decision, outcome, plugin)
        self.first = self.first or event

    def _refused(self, call: GuardedCall) -> Steps[None]:
        decision, outcome, plugin = self._refusal(call)
        self.decision = decision
        yield from self.tell(decision, outcome, plugin)
        yield from self._log.settled(self.request, decision, allowed=False)

    def _refusal(self, call: GuardedCall) -> tuple[Decision, EventOutcome, str | None]:
        ruling, made = call.ruling, call.decision
        if self._answer is not None and made.reason_code == self._answer[1].recorded:
            asked, answer = self._answer
            return _with(asked, "DENY", answer), answer.outcome, None
        added = ruling.call.added
        if added is not None and ruling.assessment.policy == added.policy:
            plugin = added.policy.policy_id.partition(":")[2]
            return self._by_plugin(plugin, made)
        decision = self._codes.decision_of(made)
        strictest, plugin_name = self._strictest(decision)
        if plugin_name is not None:
            return strictest, strictest.outcome, plugin_name
        return decision, _outcome(made), None

    def _by_plugin(
        self, plugin: str, made: core.Decision
    ) -> tuple[Decision, EventOutcome, str | None]:
        for said in self.said:
            if said.plugin == plugin and not self.is_met(said):
                return said.decision, said.decision.outcome, plugin
        failed = Decision(outcome="DENY", reasons=(Reason(made.reason_code, made.summary),))
        return failed, "DENY", plugin

    def _passed(self, call: GuardedCall) -> Steps[None]:
        made, has_grant = call.decision, bool(call.ruling.assessment.grants)
        self.decision = self._codes.decision_of(made)
        if has_grant and self._answer is not None:
            self.decision = _with(self._answer[0], "ALLOW", self._answer[1])
        yield from self.tell(self.decision, _outcome(made, has_grant=has_grant), None)
        yield from self._log.settled(self.request, self.decision, allowed=True)

    def _strictest(self, decision: Decision) -> tuple[Decision, str | None]:
        """Returns the strictest of a decision and those of plugins, and the plugin."""
        said = max(
            (each for each in self.said if not self.is_met(each)),
            key=lambda each: STRICTNESS[each.decision.outcome],
            default=None,
        )
        if said is None or not _is_stricter(said.decision, decision):
            return decision, None
        return said

    def _unmet(self) -> Said | None:
        """Returns the strictest of the requirements of plugins that nobody has met."""
        open_ = [each for each in self.said if not self.is_met(each)]
        asking = [each for each in open_ if each.decision.outcome != "DENY"]
        return max(asking, key=lambda each: STRICTNESS[each.decision.outcome], default=None)

    def _note(self, *, allowed: bool) -> None:
        """Tells plugins that count how the check ended."""
        for plugin in self._plugins:
            if isinstance(plugin, Counting):
                try:
                    plugin.ended(self.door, self.request, self.decision, allowed=allowed)
                except Exception as error:  # noqa: BLE001 - the decision is made
                    self.reports.tell(error, f"plugin {plugin.name}")


class CheckedCall(GuardedCall):
    """A call of a check: begins with it, and ends with `after_execution` of the plugins."""

    __slots__ = ("_open", "check")

    def __init__(self, open_: Callable[[], Steps[Check]]) -> None:
        """`open_` makes the check; it may load the policy first."""
        self._open = open_
        self.check: Check | None = None
        self._ruling, self._care, self.result = None, None, None

    def begin(self, *, waits: bool = True) -> None:
        """Checks the call. Raises SecurityError."""
        run(self.checked(waits=waits))

    async def __aenter__(self) -> "CheckedCall":
        await run_async(self.checked())
        return self

    def checked(self, *, waits: bool = True) -> Steps[None]:
        """Checks the call. Raises SecurityError."""
        assert waits  # callbacks are asked whenever there are any
        self.check = check = yield from self._open()
        self.host, self._wanted, self._begin = check.door.host, check.wanted, check.door.begin
        yield from check.steps(self)

    def abandon(self, error: BaseException) -> None:
        """Ends a call that may pass, and is not executed; one that was refused has ended."""
        if self._ruling is not None:
            self._record(error)
        self._leave()

    def end_unexecuted(self) -> None:
        """Ends a call that was checked only."""
        self.result = _DECIDED_ONLY
        self._record(None)
        self._leave()

    def end(self, error: BaseException | None) -> None:
        """Ends the call. Raises SecurityError if a plugin withholds the result."""
        run(self._ending(error))

    async def end_async(self, error: BaseException | None) -> None:
        """Does what `end` does, in a coroutine."""
        await run_async(self._ending(error))

    def _ending(self, error: BaseException | None) -> Steps[None]:
        assert self.check is not None
        withheld: Decision | None = None
        result, self.result = self.result, _WITHHELD  # unless the plugins have seen it
        try:
            withheld = yield from self.check.executed(result, error)
            if withheld is None:
                self.result = result
        finally:
            self._record(error)
            self._leave()
        if withheld is not None:
            raise SecurityError(withheld)

    def _leave(self) -> None:
        if self.check is not None:
            self.check.door.leave(self.check.request.request_id)


def _outcome(decision: core.Decision, *, has_grant: bool = False) -> EventOutcome:
    found = outcome_of(decision.action, decision.reason_code, has_grant=has_grant)
    return (found or Outcome.DENY).value


def _with(decision: Decision, outcome: Any, answer: Answer) -> Decision:
    return replace(decision, outcome=outcome, reasons=(*decision.reasons, answer.reason))


def _is_stricter(one: Decision, other: Decision) -> bool:
    return STRICTNESS[one.outcome] > STRICTNESS[other.outcome]
