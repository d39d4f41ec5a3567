"""What happens around the decision of a call: plugins are asked, and refused calls wait and retry.

Guards without such options have none of this, and pay nothing for it.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from subluminal.adapters.in_process.guarding.plugins import Plugins
from subluminal.adapters.in_process.guarding.refused import Refused
from subluminal.adapters.in_process.guarding.reports import Reports
from subluminal.adapters.in_process.guarding.steps import Steps
from subluminal.adapters.in_process.guarding.waiting import After, Deadlines, WaitOptions, Waits
from subluminal.contracts.call import ToolCall
from subluminal.contracts.gate import Settled
from subluminal.contracts.vocabulary import ReasonCode

if TYPE_CHECKING:
    from subluminal.adapters.in_process.guarding.calls import GuardedCall, Wanted


class Care:
    """The plugins and the waits of one guard."""

    def __init__(self, plugins: Plugins, options: WaitOptions, reports: Reports) -> None:
        self.plugins = plugins
        self.waits = Waits(options, reports)
        self.reports = reports

    def of(self, wanted: "Wanted") -> "CallCare":
        """Returns the same for one call."""
        return CallCare(self, wanted)


class CallCare(NamedTuple):
    """What happens around the decision of one call."""

    care: Care
    wanted: "Wanted"

    def steps(self, call: "GuardedCall", *, waits: bool = True) -> Steps[None]:
        """Decides the call, as often as it waits and retries. Raises Refused."""
        until, retry_of = Deadlines(self.care.waits.options), None
        while True:
            refused = yield from self._decided(call, retry_of)
            if refused is None:
                if self.wanted.is_changed:
                    raise call.refuse_changed()
                return
            after = After.GIVE_UP
            if waits:
                after = yield from self.care.waits.after(call, refused, until)
            if after is After.GIVE_UP:
                raise refused
            if after is After.TIMEOUT:
                timeout_s = self.care.waits.options.approval_timeout_ms / 1000
                summary = f"nobody answered approval {refused.approval_id} within {timeout_s:g} s"
                raise call.refuse_for(ReasonCode.APPROVAL_TIMEOUT, summary, refused)
            retry_of = refused.call_id

    def _decided(self, call: "GuardedCall", retry_of: str | None) -> Steps[Refused | None]:
        """Decides one try of the call; returns its refusal."""
        plugins = self.care.plugins
        if not plugins:
            return call.decide(retry_of)
        shown = self._shown(retry_of)
        refused = call.decide(retry_of, (yield from plugins.before(shown)))
        try:
            stricter: Settled | None = yield from plugins.after(shown, call.decision)
        except BaseException:  # cancelled, for example: nobody else would end the call
            if refused is None:
                call.withdraw("not executed: the caller gave up while plugins were told")
            raise
        if stricter is None:
            return refused
        # The decision is on record already: the plugin's is that of a further call.
        if refused is None:
            call.withdraw(f"not executed: {stricter.policy.policy_id} refused it")
        return call.decide(call.call_id, stricter)

    def ended(self, call: "GuardedCall", error: BaseException | None) -> Steps[None]:
        """Tells the plugins how the call ended."""
        if self.care.plugins:
            shown = self._shown(None)
            yield from self.care.plugins.ended(shown, call.decision, call.result, error)

    def _shown(self, retry_of: str | None) -> ToolCall:
        """Returns the call for plugins. Its arguments are a copy, so that nobody changes a call
        between its decision and its hash.
        """
        call, text = self.wanted.call(retry_of), self.wanted.arguments.text
        args: dict[str, Any] | None = None if text is None else msgspec.json.decode(text)
        return replace(call, args=args)
