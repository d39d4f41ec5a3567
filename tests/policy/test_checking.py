"""Values that no policy can mean, over the whole bundle."""

from tests.policy.bundles import bundle, rule

from subluminal.policy.checking import semantic_misfits


def told(*rules, **changes) -> list[tuple[tuple, str]]:
    return [(found.path, found.message) for found in semantic_misfits(bundle(*rules, **changes))]


def test_a_sound_bundle_has_no_misfits():
    assert told(rule("deny"), rule("allow"), rule("budget"), rule("tag")) == []


def test_names_must_not_be_blank():
    assert told(policy_id=" ", version="") == [
        (("policy_id",), "must not be empty"),
        (("version",), "must not be empty"),
    ]
    assert told(rule("deny", " ")) == [(("rules", 0, "rule_id"), "must not be empty")]


def test_a_rule_id_is_used_once():
    found = semantic_misfits(bundle(rule("deny", "a"), rule("tag", "b"), rule("allow", "a")))
    assert [(each.path, each.message, each.hint) for each in found] == [
        (("rules", 2, "rule_id"), "duplicate rule_id", "rule 1 has it already")
    ]


def test_misfits_of_a_rule_are_placed_under_it():
    assert told(rule("deny"), rule("dedupe", window_ms=0)) == [
        (("rules", 1, "effect", "dedupe", "window_ms"), "must be at least 1, got 0")
    ]
