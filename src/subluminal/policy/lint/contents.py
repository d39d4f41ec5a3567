"""Finds rules about contents and sequences that never act, and policies that end soon."""

from collections.abc import Iterator

from subluminal.contracts.bundle import AnyRule, Bundle, NameMatch, SequenceRule
from subluminal.contracts.shape import Misfit
from subluminal.policy.covering import disjoint_names
from subluminal.policy.covering_contents import contradicts_itself
from subluminal.timestamps import parse_rfc3339

_SOON_MS = 14 * 24 * 3_600_000


def content_remarks(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds texts that contradict each other, and patterns that no run can complete."""
    for index, rule in enumerate(rules):
        if not rule.enabled:
            continue
        if rule.match.text is not None and contradicts_itself(rule.match.text):
            yield Misfit(
                ("rules", index, "match", "text"),
                "can never match: every text of `any_of` contains one of `none_of`",
                "remove one of them",
            )
        if isinstance(rule, SequenceRule):
            yield from _never_complete(rule, index)


def _never_complete(rule: SequenceRule, index: int) -> Iterator[Misfit]:
    for place, glob in enumerate(rule.effect.sequence.pattern):
        if disjoint_names(NameMatch(glob=[glob]), rule.match.tool_name):
            yield Misfit(
                ("rules", index, "effect", "sequence", "pattern", place),
                f"can never be complete: `match` admits no call of `{glob[:60]}`",
                "widen `tool_name` of the match, or remove it",
            )


def expiry_remarks(bundle: Bundle, wall_ms: int | None) -> Iterator[Misfit]:
    """Warns of a policy that has ended, or that ends soon. `wall_ms` is None if nobody can tell."""
    if bundle.expires_at is None or wall_ms is None:
        return
    left_ms = parse_rfc3339(bundle.expires_at) - wall_ms
    hint = "publish the policy again with a later `expires_at`"
    if left_ms <= 0:
        yield Misfit(("expires_at",), "has passed: every call is refused", hint)
    elif left_ms <= _SOON_MS:
        days = left_ms // (24 * 3_600_000)
        when = "in less than a day" if not days else f"in {days} day{'' if days == 1 else 's'}"
        yield Misfit(("expires_at",), f"the policy refuses every call {when}", hint)
