"""Gates: the checks that a call passes before it is forwarded. No behaviour.

`core` asks the gates of a run in the order of `GateName`. A gate may be in any package below `core`
(policy, kernel, trust). So this module describes what a gate takes and returns in neutral terms: a
call, a decision with its reasons, and the policy that made it.
"""

from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from subluminal.contracts.counters import Counters, Update
from subluminal.contracts.decision import Decision, GrantRef, PolicyRef
from subluminal.contracts.events import Trip, WouldBe
from subluminal.contracts.intents import KernelDecision
from subluminal.contracts.vocabulary import Status


class GateName(StrEnum):
    """The gates of a run, in the order in which a call passes them."""

    STOPS = "stops"
    """the kill switch, a terminated run, a policy that should be in force and is not"""
    PLUGINS = "plugins"
    """gates that an installation adds; none by default"""
    POLICY = "policy"
    """every policy layer, with the run's counters"""
    GRANTS = "grants"
    """a person's answers; asked only about a call that a rule refuses"""


class Assessment(Protocol):
    """The result of all gates for one call: the decision, its reasons, and the policy behind it.

    Nothing has been written yet: the caller writes `updates` to the counters.
    """

    decision: Decision
    policy: PolicyRef
    forwarded: bool
    """whether the call goes on to its server"""
    would_be: WouldBe | None
    """the decision that observe mode did not enforce"""
    risk_classes: frozenset[str]
    grants: tuple[GrantRef, ...]
    """the grants that let the call pass"""
    kernel: KernelDecision | None
    """the decision of a pack, if one was asked"""

    @property
    def updates(self) -> list[Update]:
        """The new contents of the counters."""

    @property
    def trips(self) -> list[Trip]:
        """The breakers that refused the call."""

    @property
    def grants_used(self) -> list[tuple[str, str]]:
        """(layer, rule_id) of the rules that a grant let this call pass."""

    @property
    def is_watched(self) -> bool:
        """Whether `learn` must be called at the end of the call even if the call ends OK."""

    def learn(
        self, status: Status, latency_ms: int, counters: Counters, mono_ms: int
    ) -> list[Update]:
        """Returns the counter updates of the call's end."""


class AskedCall(Protocol):
    """The parts of a tool call that a gate may read."""

    @property
    def server_name(self) -> str:
        """The server's name in the client's configuration."""

    @property
    def tool_name(self) -> str:
        """The tool's name, as the agent wrote it."""

    @property
    def args(self) -> dict[str, Any] | None:
        """The arguments; None if they were too large to inspect."""

    @property
    def args_hash(self) -> str:
        """The Pack's hash of the arguments."""


class Settled(NamedTuple):
    """A gate's answer that settles a call: the decision, and the policy that made it."""

    decision: Decision
    policy: PolicyRef


class Gate(Protocol):
    """A gate that an installation adds.

    A gate must be pure, because replay and explain ask it too. It must not wait, because it is
    asked under the lock of the run.
    """

    name: str

    def ask(
        self, call: AskedCall, counters: Counters, *, wall_ms: int, mono_ms: int
    ) -> Settled | None:
        """Settles the call, or returns None to leave it to the next gate."""
