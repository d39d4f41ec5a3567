"""One check: plugins, policy, questions to people, and what is put on the audit log.

    before_check     plugins; one that denies ends the check, and the policy counts nothing
    the policy       every layer, and the rules of plugins
    after_decision   plugins see what would be decided, before anything is counted
    questions        a callback is asked; nobody else waits for its answer
    the call         is decided and recorded; with a yes, by a grant

Of all decisions about a call the strictest holds.
"""

from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

from subluminal.adapters.in_process.guarding.calls import GuardedCall
from subluminal.adapters.in_process.guarding.refused import Refused
from subluminal.contracts import decision as core
from subluminal.contracts.vocabulary import Outcome
from subluminal.errors import SubluminalError
from subluminal.policy.outcomes import outcome_of
from subluminal.spm.answers import Answer, Questions, grant, may_answer
from subluminal.spm.doors import Door, Noted
from subluminal.spm.hooks import Callbacks, SecurityPlugin, resolved
from subluminal.spm.reading import AuditLog, Codes, copied, given_of
from subluminal.spm.types import (
    STRICTNESS,
    AfterDecisionContext,
    AgentActionRequest,
    BeforeCheckContext,
    Decision,
    Event,
    EventOutcome,
    PluginResult,
    Reason,
)
from subluminal.spm.watching import SessionContext

_GRANT_WAIT_S = 5.0


class Checked(NamedTuple):
    """A call that was checked."""

    request: AgentActionRequest
    decision: Decision
    event: Event
    """the first event"""
    call: GuardedCall | None
    """the call, begun and not ended; None if it was refused"""


class _Said(NamedTuple):
    """A decision of a plugin."""

    decision: Decision
    plugin: str


class Checker:
    """Checks calls, as many at a time as there are."""

    def __init__(
        self,
        plugins: dict[str, SecurityPlugin],
        questions: Questions,
        callbacks: Callbacks,
        log: AuditLog,
    ) -> None:
        self._plugins, self._questions, self._callbacks = plugins, questions, callbacks
        self._log = log
        self._granting = Lock()

    async def check(self, request: AgentActionRequest, door: Door, codes: Codes) -> Checked:
        """Checks one call. Its arguments are decided as the program gave them."""
        allowed = False
        try:
            checked = await self._checked(request, door, codes)
            allowed = checked.call is not None
            return checked
        finally:
            for plugin in list(self._plugins.values()):
                if isinstance(plugin, SessionContext):
                    plugin.check_ended(request, allowed=allowed)

    async def _checked(self, request: AgentActionRequest, door: Door, codes: Codes) -> Checked:
        action = request.action
        request, said = await self._before(request)
        identity = action.tool_identity
        wanted = door.wanted(
            action.tool_name,
            action.tool_args,
            given_of(request, door.environment),
            None if identity is None else identity.provider,
        )
        check = _Check(self, request, door, codes, wanted)
        if said is not None and said.decision.outcome == "DENY":
            return await check.refused_by(said)
        if self._looks_at_decisions(said):
            foreseen = codes.decision_of(door.foresee(wanted))
            said = await self._after(request, foreseen, said)
            if said is not None and _is_stricter(said.decision, foreseen):
                is_no = said.decision.outcome == "DENY"
                return await (check.refused_by(said) if is_no else check.asked_by(said))
        return await check.decided()

    # Plugins

    async def _before(self, request: AgentActionRequest) -> tuple[AgentActionRequest, _Said | None]:
        strictest: _Said | None = None
        for plugin in list(self._plugins.values()):
            result = await self._hook(plugin, "before_check", BeforeCheckContext(request), request)
            if result.modified_request is not None:
                request = result.modified_request
            strictest = _stricter(strictest, result, plugin)
            if strictest is not None and strictest.decision.outcome == "DENY":
                break
        return request, strictest

    async def _after(
        self, request: AgentActionRequest, foreseen: Decision, said: _Said | None
    ) -> _Said | None:
        for plugin in list(self._plugins.values()):
            shown = foreseen
            if said is not None and _is_stricter(said.decision, shown):
                shown = said.decision
            context = AfterDecisionContext(request, shown)
            result = await self._hook(plugin, "after_decision", context, request)
            said = _stricter(said, result, plugin)
        return said

    def _looks_at_decisions(self, said: _Said | None) -> bool:
        """Whether it matters what would be decided, before it is."""
        if said is not None and said.decision.outcome != "ALLOW":
            return True
        return any(hasattr(each, "after_decision") for each in list(self._plugins.values()))

    async def _hook(
        self, plugin: SecurityPlugin, name: str, context: Any, request: AgentActionRequest
    ) -> PluginResult:
        """Calls a hook. One that fails denies, unless its plugin has `fail_open`."""
        hook = getattr(plugin, name, None)
        if hook is None:
            return PluginResult()
        before = _kept(request)
        try:
            result = await resolved(hook(context))
            if result is None:
                result = PluginResult()
            if not isinstance(result, PluginResult):
                raise TypeError(f"{name} returned a value of type {type(result).__name__}")
            if _kept(request) != before or _changes(request, result.modified_request):
                raise ValueError(f"{name} changed the agent, the tool or its arguments")
        except Exception as error:  # noqa: BLE001 - a plugin that fails must not let calls pass
            await self._callbacks.failed(error, f"{plugin.name}.{name}")
            if getattr(plugin, "fail_open", False):
                return PluginResult()
            message = f"the plugin {plugin.name} failed: {type(error).__name__}: {error}"
            return PluginResult(
                Decision(outcome="DENY", reasons=(Reason("PLUGIN_ERROR", message),))
            )
        return result


class _Check:
    """The part of one check after the plugins."""

    def __init__(
        self, of: Checker, request: AgentActionRequest, door: Door, codes: Codes, wanted: Noted
    ) -> None:
        self._of, self._request, self._door = of, request, door
        self._codes, self._wanted = codes, wanted
        self._first: Event | None = None

    async def refused_by(self, said: _Said) -> Checked:
        """Refuses a call that a plugin denies."""
        reason = said.decision.reasons[0] if said.decision.reasons else Reason("DENIED", "denied")
        self._wanted.notes["plugin"] = said.plugin
        decision, outcome = self._refuse(reason.code, reason.message, said.decision)
        return await self._end(decision, outcome, said.plugin)

    async def asked_by(self, said: _Said) -> Checked:
        """Asks about a call because a plugin wants it, then lets the policy decide."""
        self._wanted.notes["plugin"] = said.plugin
        if not self._of._questions.can_answer(said.decision.outcome):
            reason = said.decision.reasons[0] if said.decision.reasons else Reason("DENIED", "")
            self._refuse(reason.code, reason.message, said.decision)
            return await self._end(said.decision, said.decision.outcome, said.plugin)
        await self._tell(said.decision, said.decision.outcome, said.plugin)
        answer = await self._of._questions.ask(self._request, said.decision)
        if not answer.is_yes:
            return await self._rejected(said.decision, answer)
        await self._tell(_with(said.decision, "ALLOW", answer), "APPROVED")
        self._wanted.notes["approved_by"] = answer.reason.code
        return await self.decided()

    async def decided(self) -> Checked:
        """Lets the policy decide, and asks if it wants a person."""
        call = self._door.decide(self._wanted)
        refused = _begun(call)
        decision = self._codes.decision_of(call.decision)
        outcome = _outcome(call.decision, has_grant=bool(call.ruling.assessment.grants))
        if refused is None:
            return await self._passed(decision, outcome, call)
        approval_id = refused.approval_id
        can_answer = self._of._questions.can_answer(decision.outcome) and approval_id is not None
        if not can_answer or not may_answer(self._door.places, str(approval_id)):
            return await self._end(decision, outcome)
        await self._tell(decision, outcome)
        answer = await self._of._questions.ask(self._request, decision)
        self._wanted.notes["retry_of"] = call.call_id
        if not answer.is_yes:
            return await self._rejected(decision, answer)
        return await self._granted(decision, answer, str(approval_id))

    async def _granted(self, decision: Decision, answer: Answer, approval_id: str) -> Checked:
        try:
            call, refused = self._retried(decision, answer, approval_id)
        except SubluminalError as error:
            await self._of._callbacks.failed(error, "grant")
            failed = answer._replace(
                outcome="REJECTED", reason=Reason(self._codes.failure(decision), str(error))
            )
            return await self._rejected(decision, failed)
        if refused is not None:
            # Something else refuses it now: a stop, a limit, or another rule.
            late = self._codes.decision_of(call.decision)
            return await self._end(late, _outcome(call.decision))
        return await self._passed(_with(decision, "ALLOW", answer), "APPROVED", call)

    def _retried(
        self, decision: Decision, answer: Answer, approval_id: str
    ) -> tuple[GuardedCall, Refused | None]:
        """Makes the call again, with the grant that follows from the answer.

        Equal calls share one approval. A grant is for one call, so they take turns.
        """
        door, granting = self._door, self._of._granting
        # A forked child may have inherited the lock from a thread that it does not have.
        is_ours = granting.acquire(timeout=_GRANT_WAIT_S)
        try:
            try:
                grant(door.places, approval_id, decision.outcome, answer, door.approvals)
            except SubluminalError:
                # Another call has used it: this one asks anew, and the answer is the same.
                again = door.decide(self._wanted)
                refused = _begun(again)
                if refused is None:
                    return again, None
                if refused.approval_id in (None, approval_id):
                    raise
                grant(door.places, refused.approval_id, decision.outcome, answer, door.approvals)
            call = door.decide(self._wanted)
            return call, _begun(call)
        finally:
            if is_ours:
                granting.release()

    async def _rejected(self, decision: Decision, answer: Answer) -> Checked:
        """Refuses a call to which a callback said no. It uses up no limit."""
        final = _with(decision, "DENY", answer)
        self._refuse(answer.recorded, answer.reason.message, final)
        return await self._end(final, answer.outcome)

    def _refuse(self, code: str, message: str, decision: Decision) -> tuple[Decision, EventOutcome]:
        """Records a refusal; returns what was decided: a stop comes first."""
        call = self._door.refuse(self._wanted, code, message)
        _begun(call)
        if call.decision.reason_code != code:
            return self._codes.decision_of(call.decision), _outcome(call.decision)
        return decision, "DENY"

    async def _passed(
        self, decision: Decision, outcome: EventOutcome, call: GuardedCall
    ) -> Checked:
        try:
            event = await self._tell(decision, outcome)
            told = (self._of._log.on_allow, self._request, decision)
            await self._of._callbacks.tell(*told, where="on_allow")
        except BaseException as error:  # cancelled: nobody will end the call
            call.end(error)
            raise
        return Checked(self._request, decision, self._first or event, call)

    async def _end(
        self, decision: Decision, outcome: EventOutcome, plugin: str | None = None
    ) -> Checked:
        event = await self._tell(decision, outcome, plugin)
        await self._of._callbacks.tell(
            self._of._log.on_deny, self._request, decision, where="on_deny"
        )
        return Checked(self._request, decision, self._first or event, None)

    async def _tell(
        self, decision: Decision, outcome: EventOutcome, plugin: str | None = None
    ) -> Event:
        event = await self._of._log.add(self._request, decision, outcome, plugin)
        self._first = self._first or event
        return event


def _begun(call: GuardedCall) -> Refused | None:
    try:
        call.begin()
    except Refused as refused:
        return refused
    return None


def _outcome(decision: core.Decision, *, has_grant: bool = False) -> EventOutcome:
    found = outcome_of(decision.action, decision.reason_code, has_grant=has_grant)
    return (found or Outcome.DENY).value


def _with(decision: Decision, outcome: Any, answer: Answer) -> Decision:
    return replace(decision, outcome=outcome, reasons=(*decision.reasons, answer.reason))


def _stricter(said: _Said | None, result: PluginResult, plugin: SecurityPlugin) -> _Said | None:
    """Returns the stricter of two decisions of plugins, the earlier one on a tie."""
    decision = result.decision
    if decision is None or (said is not None and not _is_stricter(decision, said.decision)):
        return said
    return _Said(decision, plugin.name)


def _is_stricter(one: Decision, other: Decision) -> bool:
    return STRICTNESS[one.outcome] > STRICTNESS[other.outcome]


def _kept(request: AgentActionRequest) -> tuple[Any, ...]:
    """Returns what no plugin may change."""
    action = request.action
    return request.request_id, request.agent.agent_id, action.tool_name, copied(action.tool_args)


def _changes(request: AgentActionRequest, modified: AgentActionRequest | None) -> bool:
    return modified is not None and _kept(modified) != _kept(request)
