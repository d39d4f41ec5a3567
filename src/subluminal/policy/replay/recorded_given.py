"""What the program around a call said of it, as far as the record tells."""

import msgspec
from msgspec import UNSET, MsgspecError

from subluminal.contracts.call import BUILT_IN, MCP, Given
from subluminal.contracts.events import GivenPart, GivenPreview
from subluminal.contracts.vocabulary import Transport
from subluminal.policy.replay.hidden_args import known_args, nothing_known
from subluminal.policy.snapshot import AGENT_MATCHERS

_decode = msgspec.json.Decoder(GivenPreview).decode
_TESTED_BY: dict[GivenPart, tuple[str, ...]] = {
    "labels": ("data_labels_any",),
    "context": (),  # a hidden key of it counts only if a rule reads it
    "claims": AGENT_MATCHERS,
}
"""The matchers that test a part which is masked in the record."""
_ALL = frozenset(("data_labels_any", "text", *AGENT_MATCHERS))


def given_on_record(text: bytes) -> tuple[Given | None, frozenset[str]]:
    """Reads `given` of an event; empty if there is none.

    Returns what is known, and the matchers that test what is not.
    """
    if not text:
        return None, frozenset()
    try:
        told = _decode(text)
    except MsgspecError:
        told, hidden = GivenPreview(), set(_ALL)
    else:
        hidden = {name for part in told.redacted or () for name in _TESTED_BY[part]}
        if told.user_input_hash is not UNSET:
            hidden.add("text")
    context = known_args(
        told.context or None,
        truncated=told.truncated is True,
        redacted="context" in (told.redacted or ()),
    )
    given = Given(
        labels=frozenset(told.labels or ()),
        context=nothing_known() if context is None else context,
        claims=told.claims or None,
    )
    return given, frozenset(hidden)


def provider_of(provider: str | None, transport: str, server_name: str) -> str:
    """Returns what provides a tool. Earlier versions did not record it."""
    if provider is not None:
        return provider
    is_own = server_name.startswith("@") or transport == Transport.IN_PROCESS
    return BUILT_IN if is_own else MCP
