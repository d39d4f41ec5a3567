"""Decisions of the kernel as the rest of the product sees them. No behaviour.

`policy` and `kernel` do not know each other. A policy with a `kernel` rule asks a Judge, which
`core.intents` makes, and gets a Judgement: the kernel's decision in the terms of Contract C.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import UNSET, Struct, UnsetType

from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import Requirement, Taint


class KernelDecision(Struct, frozen=True, kw_only=True):
    """Additive: `kernel` of a decision, if a pack was asked about the call."""

    pack: str
    """name of the pack"""
    version: str
    """version of the pack"""
    fingerprint: str
    """SHA-256 of the pack, in hex"""
    intent_kind: str
    """kind of the intent that the call stands for"""
    intent_hash: str
    """SHA-256 of the intent's canonical JSON, in hex"""
    kind: str
    """decision of the pack: EXECUTE, REFUSE, ESCALATE, REQUEST_CONFIRMATION, DEFER or REWRITE"""
    basis: list[str]
    """reasons of the decision, as `category:code`"""
    refusal_code: str | UnsetType = UNSET
    """code of the refusal, for REFUSE"""
    guard: str | UnsetType = UNSET
    """name of the guard that decided, if it has one"""
    taint: Taint
    """level of the intent"""
    divergence: str | UnsetType = UNSET
    """how the pack differs from the code that it is to replace, while it is only compared"""


class Judgement(Struct, frozen=True, kw_only=True):
    """What a pack says about a call, in the terms of Contract C."""

    refusal: Decision | None
    """answer to the call; None if the pack has no objection. Its `rule_id` is null"""
    requirement: Requirement | None = None
    """what a person can do so that the call passes; None if nobody can"""
    kernel: KernelDecision | None = None
    """the record; None if the pack was not asked"""
    level: Taint | None = None
    """level of the run that the pack was told; None if the door asks the pack at the right level"""
    is_answered: bool = True
    """False if the pack's question has no answer of a person that the pack knows of: then a grant
    does not let the call pass, and a person is asked"""


class Judge(Protocol):
    """Asks packs about one call. It may be asked about other arguments too, for suggestions."""

    def __call__(
        self, layer: str, rule: Mapping[str, Any], args: dict[str, Any], level: Taint
    ) -> Judgement:
        """Returns what the pack of a compiled `kernel` rule says. `level` is that of the run.

        Asks again only if the same question was not asked before.
        """
