"""Every field that a filter can ask about, for calls and for runs, with what it may say."""

from enum import IntEnum, StrEnum
from typing import NamedTuple

from subluminal.contracts.vocabulary import Action, Client, Env, RunStatus, Severity, Status

UNKNOWN = "UNKNOWN"
"""A call that was forwarded and never ended: nobody knows what it did."""
RUNNING = "RUNNING"
"""A run that has not ended."""


class Kind(IntEnum):
    """What a value may be."""

    NAME = 0
    """text, with wildcards"""
    WORD = 1
    """one of a closed set, in any case"""
    NUMBER = 2
    TEXT = 3
    """words to search for"""
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
    """fixed for times: `since` is `>=`, `until` is `<`"""

    @property
    def example(self) -> str:
        """How a term with this field may look."""
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
    Field("since", Kind.TIME, "not before: an age (`30s`, `2h`, `7d`) or a time", operator=">="),
    Field("until", Kind.TIME, "before that", operator="<"),
)

CALL_FIELDS = {
    field.name: field
    for field in (
        Field("server", Kind.NAME, "the MCP server"),
        Field("tool", Kind.NAME, "the tool"),
        Field("decision", Kind.WORD, "what was decided", _words(Action)),
        Field("status", Kind.WORD, "how it ended", (*_words(Status), UNKNOWN)),
        Field("rule", Kind.NAME, "the rule that decided"),
        Field("reason", Kind.NAME, "the reason code"),
        Field("severity", Kind.WORD, "of the decision", _words(Severity)),
        Field("would_be", Kind.WORD, "what observe mode would have done", _words(Action)),
        Field("text", Kind.TEXT, "words in arguments and results"),
        Field("latency", Kind.NUMBER, "how long it took, in ms", unit="ms"),
        Field("bytes_in", Kind.NUMBER, "size of the request", unit="bytes"),
        Field("bytes_out", Kind.NUMBER, "size of the answer", unit="bytes"),
        Field("seq", Kind.NUMBER, "its number within the run"),
        Field("call", Kind.NAME, "the call's id"),
        Field("hash", Kind.NAME, "the args_hash"),
        Field("error", Kind.NAME, "whose fault an end was"),
        *_ABOUT_RUNS,
    )
}

RUN_FIELDS = {
    field.name: field
    for field in (
        *_ABOUT_RUNS,
        Field("status", Kind.WORD, "how it ended", (*_words(RunStatus), RUNNING)),
        Field("policy", Kind.NAME, "the policy in force when it began"),
        Field("calls", Kind.NUMBER, "how many calls"),
    )
}

TIMES = tuple(field.name for field in _ABOUT_RUNS if field.kind is Kind.TIME)
