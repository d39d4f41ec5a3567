"""Reports of a diff: text, Markdown ready to post, JSON."""

import msgspec
from tests.policy.bundles import bundle, rule
from tests.requirements import requirement

from subluminal.policy.diff.diffing import diff
from subluminal.policy.diff.report import as_markdown, as_text, report


def of(old, new):
    return report(old, new, diff(old, new))


OLD = bundle(rule("deny", "no|pipes`", message="m"))
NEW = bundle(version="2", policy_id="q")


def test_text():
    assert as_text(of(OLD, NEW)) == [
        "`p` to `q` `1` to `2`: 1 critical, 1 warn, 1 info",
        "  critical  rule `no|pipes'`: removed (deny)",
        "  warn      policy_id changed from `p` to `q`",
        "  info      version changed from `1` to `2`",
    ]


def test_markdown_is_a_table_that_values_cannot_break():
    found = of(OLD, NEW)
    assert as_markdown(found) == [
        "### Policy `p` to `q` `1` to `2`",
        "",
        "**This loosens the policy.** 1 critical, 1 warn, 1 info.",
        "",
        "| severity | rule | change |",
        "|---|---|---|",
        "| **critical** | `no\\|pipes'` | removed (deny) |",
        "| warn | – | policy_id changed from `p` to `q` |",
        "",
        "<details><summary>1 for information</summary>",
        "",
        "| severity | rule | change |",
        "|---|---|---|",
        "| info | – | version changed from `1` to `2` |",
        "",
        "</details>",
        "",
        f"`critical` means looser, `warn` means stricter. policy_hash `{found.old.policy_hash}` to "
        f"`{found.new.policy_hash}`",
    ]


def test_markdown_says_when_nothing_is_loosened():
    tighter = as_markdown(of(bundle(), bundle(rule("deny", "r"))))
    assert tighter[2] == "Nothing is loosened. 1 warn."
    assert "<details>" not in "\n".join(tighter)
    neutral = as_markdown(of(bundle(), bundle(version="2")))
    assert neutral[2] == "Nothing is loosened. 1 info."
    assert neutral[4].startswith("<details>")


def test_a_comment_has_a_limit():
    """GitHub refuses a comment of more than 65,536 characters."""
    many = bundle(*[rule("deny", f"r{n}" + "x" * 100, message="m" * 200) for n in range(500)])
    other = bundle(
        *[rule("deny", f"r{n}" + "x" * 100, message="n" * 200, severity="info") for n in range(500)]
    )
    lines = as_markdown(of(many, other))
    assert len("\n".join(lines)) < 65_536
    assert any("more: `sub policy diff` shows all." in line for line in lines)


def test_a_report_without_changes_says_so():
    same = of(OLD, OLD)
    assert same.severity is None
    assert as_text(same) == ["`p` `1`: no changes"]
    assert as_markdown(same) == ["### Policy `p` `1`", "", "No changes."]


@requirement("001-9.4:diff")
def test_json_has_the_contracts_names():
    found = msgspec.to_builtins(of(OLD, NEW))
    assert found["severity"] == "critical"
    assert found["counts"] == {"critical": 1, "warn": 1, "info": 1}
    assert set(found["old"]) == {"policy_id", "policy_version", "policy_hash"}
    assert found["changes"][0]["kind"] == "rule_removed"
    assert found["changes"][0]["old"]["rule_id"] == "no|pipes`"


def test_long_and_many_lined_values_stay_on_one_line():
    changed = bundle(rule("deny", "r", message="a\nb" * 100))
    lines = as_text(of(bundle(rule("deny", "r")), changed))
    assert "\n" not in lines[1]
    assert len(lines[1]) < 200
