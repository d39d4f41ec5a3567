"""What would be decided about a call, without deciding it: nothing is counted or recorded.

For programs that ask somebody else before they make the call. Grants are not looked at, because
looking at one uses it.
"""

import time

from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision
from subluminal.core.host import Host
from subluminal.core.ruling import asked_of


def foresee(
    host: Host, call: ToolCall, args_text: bytes | None, session: str | None = None
) -> Decision:
    """Returns the decision that `host.begin` would make now, if nobody granted anything."""
    enforcer = host.claim(session)
    try:
        call = enforcer.with_claims(call)
        asked = asked_of(call)
        engine = enforcer.engine
        try:
            engine.prepare(asked)
            if engine.asks_ahead or call.given is not None:
                asked = enforcer.with_facts(asked, call, args_text)
            with enforcer.run.state.locked():
                found = enforcer.over(asked) or engine.evaluate(
                    asked,
                    enforcer.run.state.counters,
                    wall_ms=time.time_ns() // 1_000_000,
                    mono_ms=time.monotonic_ns() // 1_000_000,
                )
        except Exception as error:  # noqa: BLE001 - as `begin` does
            found = enforcer.failed(asked, error)
        return enforcer.masked(found.decision, call.args)
    finally:
        host.release(enforcer)
