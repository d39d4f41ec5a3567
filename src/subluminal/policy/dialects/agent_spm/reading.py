"""Reads plain data as a bundle of Agent-SPM: checked, converted, with everything wrong with it."""

from typing import Any, NamedTuple

from subluminal.contracts.bundle import Bundle
from subluminal.contracts.shape import Misfit, misfits, struct_of
from subluminal.policy.checking import semantic_misfits
from subluminal.policy.dialects.agent_spm.checking import (
    bundle_misfits,
    bundle_warnings,
    depth_misfits,
)
from subluminal.policy.dialects.agent_spm.conversion import converted, written_path
from subluminal.policy.dialects.agent_spm.shape import SpmBundle
from subluminal.policy.dialects.agent_spm.signing import signature_misfits
from subluminal.policy.terms import Terms


class Reading(NamedTuple):
    """The result: a bundle and its warnings, or misfits. Paths begin at the original."""

    misfits: list[Misfit]
    bundle: Bundle | None = None
    warnings: list[Misfit] = []  # noqa: RUF012 - nobody changes it


def read(value: Any, terms: Terms) -> Reading:
    """Reads plain data. A wrong signature is the only problem that is told, if there is one."""
    found = [] if terms.key is None else signature_misfits(value, terms.key)
    found = found or misfits(value, SpmBundle) or depth_misfits(value)
    if found:
        return Reading(found)
    given: SpmBundle = struct_of(value, SpmBundle)
    found = bundle_misfits(given, terms.now_ms)
    if found:
        return Reading(found)
    bundle = converted(given)
    ours = semantic_misfits(bundle)
    if ours:
        return Reading([written_path(misfit, len(given.rules)) for misfit in ours])
    return Reading([], bundle, bundle_warnings(given, value))
