"""Every field of the filter language, for calls and for runs, and the values that it takes."""

from enum import IntEnum, StrEnum
from typing import NamedTuple

from subluminal.contracts.vocabulary import (
    Action,
    Client,
    Env,
    Outcome,
    RunStatus,
    Severity,
    Status,
    Taint,
)

UNKNOWN = "UNKNOWN"
"""Status of a call that was forwarded and whose outcome is unknown.

In the record it is ERROR with the error class `unknown`, because the shim was killed; or there is
no end yet.
"""
RUNNING = "RUNNING"
"""Status of a run that has not ended."""


KERNEL_KINDS = ("EXECUTE", "REFUSE", "ESCALATE", "REQUEST_CONFIRMATION", "DEFER", "REWRITE")
"""The decisions of a pack. Loading the kernel for its own enum would cost every command."""
EXECUTION_STATUSES = ("claimed", "done", "unknown")
"""How far the execution of an intent is. Only the execution ledger knows it."""
PRINCIPALS = ("llm", "user", "system")
"""Who may propose an intent."""


class Kind(IntEnum):
    """The kind of values that a field takes."""

    NAME = 0
    """a name, with wildcards"""
    WORD = 1
    """a word of a closed set, in upper or lower case"""
    NUMBER = 2
    TEXT = 3
    """words to search for in previews"""
    TIME = 4


class Field(NamedTuple):
    """One field of the language."""

    name: str
    kind: Kind
    doc: str
    words: tuple[str, ...] = ()
    unit: str = ""
    """`ms` or `bytes`, for numbers that have one"""
    operator: str = ""
    """the comparison that a time field makes: `>=` for `since`, `<` for `until`; else empty"""

    @property
    def example(self) -> str:
        """An example of a term with this field, for a hint."""
        match self.kind:
            case Kind.WORD:
                return f"such as `{self.name}:{self.words[-1]}`"
            case Kind.NUMBER:
                return f"such as `{self.name}>500`"
            case Kind.TEXT:
                return f'such as `{self.name}:"rm -rf"`'
            case Kind.TIME:
                return f"such as `{self.name}:2h` or `{self.name}:2026-11-15T12:00:00Z`"
            case _:
                return f"such as `{self.name}:git*`"


def _words(vocabulary: type[StrEnum]) -> tuple[str, ...]:
    return tuple(member.value for member in vocabulary)


_ABOUT_RUNS = (
    Field("run", Kind.NAME, "the run's id"),
    Field("agent", Kind.NAME, "the agent's name"),
    Field("client", Kind.WORD, "the client", _words(Client)),
    Field("env", Kind.WORD, "the environment", _words(Env)),
    Field("principal", Kind.NAME, "who started the run"),
    Field("since", Kind.TIME, "at or after: an age (`30s`, `2h`, `7d`) or a time", operator=">="),
    Field("until", Kind.TIME, "before: an age or a time", operator="<"),
)

CALL_FIELDS = {
    field.name: field
    for field in (
        Field("server", Kind.NAME, "the MCP server"),
        Field("tool", Kind.NAME, "the tool"),
        Field("decision", Kind.WORD, "what was decided", _words(Action)),
        Field("outcome", Kind.WORD, "the decision in Agent-SPM's words", _words(Outcome)),
        Field("status", Kind.WORD, "how the call ended", (*_words(Status), UNKNOWN)),
        Field("rule", Kind.NAME, "the rule that decided"),
        Field("reason", Kind.NAME, "the reason code"),
        Field("severity", Kind.WORD, "how severe the decision is", _words(Severity)),
        Field(
            "would_be", Kind.WORD, "what enforcing would have done, in observe mode", _words(Action)
        ),
        Field("taint", Kind.WORD, "the level of the run before the call", _words(Taint)),
        Field("text", Kind.TEXT, "words in arguments and results"),
        Field("latency", Kind.NUMBER, "how long the call took, in ms", unit="ms"),
        Field("bytes_in", Kind.NUMBER, "size of the request in bytes", unit="bytes"),
        Field("bytes_out", Kind.NUMBER, "size of the answer in bytes", unit="bytes"),
        Field("seq", Kind.NUMBER, "the call's number within its run"),
        Field("call", Kind.NAME, "the call's id"),
        Field("retry_of", Kind.NAME, "the id of the refused call that the call repeats"),
        Field("hash", Kind.NAME, "the args_hash"),
        Field("error", Kind.NAME, "the error class of a call that failed"),
        Field("pack", Kind.NAME, "the pack that was asked about the call"),
        Field("intent", Kind.NAME, "the kind of the intent that the call stands for"),
        Field("intent_hash", Kind.NAME, "the hash of the intent"),
        Field("kernel", Kind.WORD, "what the pack decided", KERNEL_KINDS),
        *_ABOUT_RUNS,
    )
}

INTENT_FIELDS = CALL_FIELDS | {
    field.name: field
    for field in (
        Field("status", Kind.WORD, "how far the execution is", EXECUTION_STATUSES),
        Field("refusal", Kind.NAME, "the code of the pack's refusal"),
        Field("guard", Kind.NAME, "the guard that decided"),
        Field("nonce", Kind.NAME, "the intent's nonce"),
        Field("principal", Kind.WORD, "who proposed the intent", PRINCIPALS),
        Field("taint", Kind.WORD, "the level of the intent", _words(Taint)),
    )
}
"""Fields for intents: those of their calls, and a few that mean the intent instead of the call."""

RECORDED_INTENT_FIELDS = {name: field for name, field in INTENT_FIELDS.items() if name != "status"}
"""Fields for intents that the ledger itself can answer."""

RUN_FIELDS = {
    field.name: field
    for field in (
        *_ABOUT_RUNS,
        Field("status", Kind.WORD, "how the run ended", (*_words(RunStatus), RUNNING)),
        Field("policy", Kind.NAME, "the policy that the run began with"),
        Field("calls", Kind.NUMBER, "number of calls"),
        Field("parent", Kind.NAME, "the run that started the run"),
        Field("meta", Kind.NAME, "what is recorded with the run, such as `meta:issue_id=42`"),
    )
}

TIMES = tuple(field.name for field in _ABOUT_RUNS if field.kind is Kind.TIME)
