"""The closed vocabulary of reasons: eleven categories, each with its codes.

A decision carries its reasons as `Basis` values. `basis` makes one and refuses words that are not
in the vocabulary; the kernel refuses a guard's decision that has others. Records of other programs
may have any words, so the struct itself takes them: `is_known_basis` tells.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

BASIS_CODES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "state": frozenset(
            {"transition_valid", "transition_illegal", "terminal_state", "grant_expired"}
        ),
        "auth": frozenset(
            {"scope_sufficient", "scope_insufficient", "identity_missing", "identity_expired"}
        ),
        "taint": frozenset({"level_permitted", "level_insufficient", "propagation_violation"}),
        "ledger": frozenset({"fresh", "replay_suppressed", "resource_version_stale"}),
        "schema": frozenset(
            {
                "version_supported",
                "version_unsupported",
                "payload_invalid",
                "intent_hash_mismatch",
            }
        ),
        "business": frozenset(
            {
                "rule_satisfied",
                "rule_violated",
                "quantity_capped",
                "breakglass_granted",
                "breakglass_ttl_invalid",
            }
        ),
        "validation": frozenset(
            {
                "forbidden_phrase_absent",
                "homoglyph_normalized",
                "unicode_normalized",
                "pii_detected",
                "pii_redacted",
                "pii_blocked",
                "command_flag_stripped",
                "command_sanitized",
                "command_blocked",
                "groundedness_low",
                "groundedness_degraded",
                "session_risk_elevated",
            }
        ),
        "kill": frozenset({"active", "seal_mismatch"}),
        "deadline": frozenset({"exceeded"}),
        "confirmation": frozenset({"received"}),
        "kernel": frozenset({"guard_panic", "intent_dispatched"}),
    }
)
KERNEL_REFUSAL_CODES = frozenset(
    {
        "schema_version_unsupported",
        "taint_level_insufficient",
        "default_deny",
        "kill_switch_active",
        "kernel_deadline_exceeded",
        "ledger_replay_suppressed",
        "guard_panic",
        "intent_hash_mismatch",
    }
)
"""Codes of the refusals that the kernel itself makes; a pack need not declare them."""


class Basis(Struct, frozen=True, omit_defaults=True):
    """One reason of a decision."""

    category: str
    code: str
    detail: Any = None
    """a JSON object, or absent"""


def basis(category: str, code: str, /, **detail: Any) -> Basis:
    """Makes a reason. Raises ValueError if the vocabulary does not have it."""
    made = Basis(category, code, detail or None)
    if not is_known_basis(made):
        raise ValueError(f"`{category}:{code}` is not in BASIS_CODES")
    return made


def is_known_basis(reason: Basis) -> bool:
    """Whether the vocabulary has this category with this code."""
    category: Any = reason.category
    code: Any = reason.code
    if type(category) is not str or type(code) is not str:  # a subclass may lie about its text
        return False
    return code in BASIS_CODES.get(category, ())


def flat_basis(reasons: tuple[Basis, ...] | list[Basis]) -> tuple[str, ...]:
    """Returns the reasons as `category:code`, in their order."""
    return tuple(f"{reason.category}:{reason.code}" for reason in reasons)
