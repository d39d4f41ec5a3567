"""What a replay cannot know about who acted, or about what a program said of a call.

Records have the facts about an agent only if a policy in force asked for them. If a rule about the
tool of a call asks for what is not on record, the call is undetermined.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from subluminal.contracts.call import Given
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Env
from subluminal.policy.patterns import NameIndex, NamePatterns
from subluminal.policy.replay.comparing import Doubt
from subluminal.policy.replay.hidden_args import PartialArgs
from subluminal.policy.replay.recorded import RecordedAgent, RecordedCall
from subluminal.policy.snapshot import AGENT_MATCHERS, REGISTRY_MATCHERS, Snapshot


class HiddenAgents:
    """Finds the calls for which the rules of some policies ask what is not on record."""

    def __init__(self, snapshots: Iterable[Snapshot]) -> None:
        self._snapshots = list(snapshots)
        self._asking: dict[tuple[str, ...], tuple[NameIndex, NameIndex]] = {}

    def doubt(self, call: RecordedCall, agent: RecordedAgent | None) -> Doubt | None:
        """Returns why a call cannot be decided again; None if it can."""
        if agent is None and self._asks(call, unknown_matchers(call.identity)):
            return Doubt.AGENT
        if call.hidden and self._asks(call, sorted(call.hidden)):
            return Doubt.GIVEN
        return None

    def _asks(self, call: RecordedCall, matchers: Sequence[str]) -> bool:
        """Whether a rule about the tool of a call has one of these matchers."""
        key = tuple(matchers)
        found = self._asking.get(key)
        if found is None:
            rules = [
                rule["match"]
                for snapshot in self._snapshots
                if snapshot.asks(key)
                for rule in snapshot.data["rules"]
                if any(name in rule["match"] for name in key)
            ]
            found = self._asking[key] = (
                NameIndex([NamePatterns(**match["server_name"]) for match in rules]),
                NameIndex([NamePatterns(**match["tool_name"]) for match in rules]),
            )
        servers, tools = found
        return bool(servers.match(call.server_name) & tools.match(call.tool_name))


def unknown_matchers(identity: Identity) -> tuple[str, ...]:
    """Returns the matchers about who acts that a record without facts does not answer."""
    # Events say `unknown` for every environment that is not one of theirs.
    return AGENT_MATCHERS if identity.env is Env.UNKNOWN else REGISTRY_MATCHERS


def unread(given: Given | None) -> Given | None:
    """Returns what was said of a call, with a context of which no rule has read anything."""
    if given is None or not isinstance(given.context, PartialArgs):
        return given
    context = given.context
    return replace(given, context=PartialArgs(context, context.hides, context.present))


def asked_hidden(given: Given | None) -> bool:
    """Whether rules have read a part of the context that the record hides."""
    if given is None or not isinstance(given.context, PartialArgs):
        return False
    return bool(given.context.asked)
