"""Installed packs, as `kernel` rules see them. The caller hands in how to find them. Pure."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from subluminal.contracts.bundle import AnyRule, Bundle, KernelEffect, KernelRule, PackQuestion
from subluminal.contracts.shape import Misfit, Path, did_you_mean


def _no_problem(_state: dict[str, Any]) -> None:
    return None


class KnownPack(NamedTuple):
    """An installed pack."""

    version: str
    fingerprint: str
    intents: tuple[str, ...]
    state_problem: Callable[[dict[str, Any]], str | None] = _no_problem
    """says why the pack cannot decide by a state; None if it can"""


class UnknownPack(NamedTuple):
    """Why there is no pack of this name."""

    problem: str
    hint: str | None = None


FindPack = Callable[[str], KnownPack | UnknownPack]
"""Finds a pack by its name."""


def no_packs(name: str) -> UnknownPack:
    """A FindPack where no packs are installed."""
    return UnknownPack(f"pack `{name[:60]}` is not installed")


def stated_packs(bundle: Bundle) -> FindPack:
    """Returns the packs as compiled rules state them, for a snapshot that is only read."""
    stated: dict[str, KnownPack] = {}
    for asked in questions_of(bundle.rules):
        before = stated.get(asked.pack)
        intents = (*(before.intents if before else ()), asked.intent)
        stated[asked.pack] = KnownPack(str(asked.version), str(asked.fingerprint), intents)
    return stated.__getitem__


def questions_of(rules: Iterable[AnyRule]) -> Iterator[PackQuestion]:
    """Yields what `kernel` rules ask."""
    return (rule.effect.kernel for rule in rules if isinstance(rule, KernelRule))


def with_versions(bundle: Bundle, find: FindPack) -> Bundle:
    """Returns a bundle whose enabled `kernel` rules name version and fingerprint of their packs.

    The packs must be installed: `pack_misfits` has found nothing wrong.
    """
    if not any(questions_of(bundle.rules)):
        return bundle
    return replace(bundle, rules=[_with_version(rule, find) for rule in bundle.rules])


def _with_version(rule: AnyRule, find: FindPack) -> AnyRule:
    if not isinstance(rule, KernelRule) or not rule.enabled:
        return rule
    asked = rule.effect.kernel
    known = find(asked.pack)
    assert isinstance(known, KnownPack)
    filled = replace(asked, version=known.version, fingerprint=known.fingerprint)
    return replace(rule, effect=KernelEffect(kernel=filled))


def pack_misfits(asked: PackQuestion, find: FindPack, path: Path) -> Iterator[Misfit]:
    """Finds what the pack of a `kernel` rule cannot do."""
    known = find(asked.pack)
    if isinstance(known, UnknownPack):
        hint = known.hint or "install it, or see `sub pack list` for those that are installed"
        yield Misfit((*path, "pack"), known.problem, hint)
        return
    if asked.intent not in known.intents:
        message = f"pack `{asked.pack[:60]}` has no intent `{asked.intent[:60]}`"
        yield Misfit((*path, "intent"), message, did_you_mean(asked.intent, known.intents))
    if asked.version is not None and asked.version != known.version:
        message = f"the installed pack has version `{known.version[:60]}`"
        yield Misfit((*path, "version"), message, "install this version, or remove the field")
    if asked.fingerprint is not None and asked.fingerprint != known.fingerprint:
        message = f"the installed pack has the fingerprint `{known.fingerprint}`"
        yield Misfit((*path, "fingerprint"), message, "read what changed in the pack first")
    problem = known.state_problem(asked.state)
    if problem is not None:
        yield Misfit((*path, "state"), f"the pack cannot use this state: {problem}")
