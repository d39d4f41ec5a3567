"""Finds rules about who acts that do less than they seem to, and rights that anyone can claim."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from subluminal.contracts.bundle import AllowRule, AnyRule, Match, TagRule, TaintRule
from subluminal.contracts.shape import Misfit, did_you_mean
from subluminal.policy.covering import covers, disjoint
from subluminal.policy.covering_agents import depth_of, trust_of

AGENT_TYPES = ("ide_agent", "pr_agent", "chat_agent", "workflow_agent", "autonomous_agent")
"""The types of agents that Agent-SPM names. A policy may use any other."""

_NAMED = {
    "environment": "an environment",
    "agent_type": "a type",
    "agent_roles_any": "a role",
    "tool_provider": "a provider",
    "data_labels_any": "a label",
}
_SAID = ("data_labels_any", "context")
_NAMING = ("server_name", "tool_name", "risk_class")
_NOT_GIVEN: tuple[object, ...] = (None, [])
_MOST = 2_000
"""Most rules with registry matchers that are compared with the others."""


def agent_remarks(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds allows that anyone can claim, and policies that are silent about the unregistered."""
    for index, rule in enumerate(rules):
        if rule.enabled:
            if isinstance(rule, AllowRule) and rule.effect.require is None:
                yield from _claimable(rule.match, index)
            yield from _about_nobody(rule.match, index)
            yield from _like_globs(rule.match, index)
    yield from _silent_about_unregistered(rules)


def _claimable(match: Match, index: int) -> Iterator[Misfit]:
    given = [
        name
        for name in match.__struct_fields__
        if name not in _NAMING and getattr(match, name) not in _NOT_GIVEN
    ]
    if given and set(given) <= set(_SAID):
        told = " and ".join(f"`{name}`" for name in given)
        yield Misfit(
            ("rules", index, "match", given[0]),
            f"anyone can claim this: the allow rests on {told} alone, which the caller gives",
            "add `agent_roles_any`, which needs a proof, or `trust_level_min`",
        )


def _about_nobody(match: Match, index: int) -> Iterator[Misfit]:
    """Finds rules about the unregistered that ask for what only registered agents have."""
    if match.registered is not False:
        return
    asked = [name for name in ("agent_type", "agent_roles_any") if getattr(match, name)]
    asked += ["trust_level_min"] if trust_of(match) else []
    for name in asked:
        yield Misfit(
            ("rules", index, "match", name),
            "can never match: an agent that is not registered has no type, no roles and no trust",
            f"remove `{name}`, or `registered: false`",
        )


def _like_globs(match: Match, index: int) -> Iterator[Misfit]:
    """Finds names that look like globs. They are compared exactly, so such a rule never acts."""
    for name, what in _NAMED.items():
        for place, word in enumerate(getattr(match, name)):
            if "*" in word:
                yield Misfit(
                    ("rules", index, "match", name, place),
                    f"`{word[:40]}` matches only {what} with this very name",
                    f"leave `{name}` out to match all" if word == "*" else "list the exact names",
                )


def _silent_about_unregistered(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds the first rule that an agent evades if nobody has registered it."""
    enabled = [rule for rule in rules if rule.enabled]
    asking = [rule for rule in enabled if _is_for_registered(rule.match) and _decides(rule)]
    others = [rule for rule in enabled if _refuses(rule) and _meets_unregistered(rule.match)]
    for rule in asking[:_MOST]:
        if rule.match.registered is not False and not _is_backed(rule, others):
            yield Misfit(
                ("rules", rules.index(rule), "match"),
                "no enabled rule says what happens to agents that are not registered, and this one"
                " is not about them",
                "add a rule that refuses such calls to all other agents",
            )
            return


def _is_for_registered(match: Match) -> bool:
    """Whether a match asks for something that only registered agents have."""
    has_names = bool(match.agent_type or match.agent_roles_any)
    return match.registered is True or has_names or trust_of(match) > 0


def _decides(rule: AnyRule) -> bool:
    return not isinstance(rule, TagRule | TaintRule)


def _refuses(rule: AnyRule) -> bool:
    return _decides(rule) and not (isinstance(rule, AllowRule) and rule.effect.require is None)


def _meets_unregistered(match: Match) -> bool:
    return not _is_for_registered(match) and depth_of(match) == 0


def _is_backed(rule: AnyRule, others: Sequence[AnyRule]) -> bool:
    """Whether another rule refuses such calls of agents that are not registered."""
    match = _for_all(rule.match)
    # An allow is backed by any rule that it could shield; a refusal, by one that refuses the same.
    loosely = isinstance(rule, AllowRule)
    return any(
        not disjoint(_for_all(each.match), match)
        if loosely or each.match.registered is False
        else covers(each.match, match)
        for each in others
    )


def _for_all(match: Match) -> Match:
    """Returns a match for all agents."""
    return replace(
        match,
        registered=None,
        agent_type=[],
        agent_roles_any=[],
        trust_level_min=None,
        delegation_depth_min=None,
    )


def type_notes(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Suggests the type of agent that an author may have meant."""
    for index, rule in enumerate(rules):
        for place, word in enumerate(rule.match.agent_type):
            hint = None if word in AGENT_TYPES else did_you_mean(word, [*AGENT_TYPES, *[""] * 13])
            if hint is not None:
                yield Misfit(
                    ("rules", index, "match", "agent_type", place),
                    f"`{word[:40]}` is like a type that Agent-SPM names",
                    hint,
                )
