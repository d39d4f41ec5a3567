"""A rule is put into a policy's text, and nothing else in it changes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.bundles import plain, rule, tools
from tests.policy.text.odd_texts import json_texts, yaml_texts

from subluminal.contracts.limits import MAX_BUNDLE_BYTES
from subluminal.errors import SubluminalError
from subluminal.policy.loading import parse_bundle
from subluminal.policy.text.inserting import as_flow, as_json, insert_rule
from subluminal.policy.text.reading import read_document

NEW = {
    "rule_id": "new",
    "description": "from hint-1: “ok” 😀",
    "kind": "allow",
    "enabled": True,
    "severity": "info",
    "match": {
        "server_name": {"glob": ["fs"]},
        "tool_name": {"glob": ["yes"]},
        "args": {"key_equals": {"path": "a: b # c\x7f\u2028", "on": True, "n": 1.5}, "key_in": {"x": [None, {"y": []}]}},
    },
    "effect": {"action": "ALLOW", "reason_code": "PROMOTED", "message": "fine"},
}  # fmt: skip
RULES = [rule("deny", f"d{number}", match=tools(f"t{number}")) for number in range(4)]
HEAD = 'policy_id: p\nversion: "1"\nmode: guardrails\ndefaults: {decision_on_error: BLOCK}\nselectors: {}\n'
DENY = "kind: deny, enabled: true, severity: warn, match: {}, effect: {action: BLOCK, reason_code: N, message: m}"


def only_added(before: bytes, after: bytes) -> bool:
    """Whether taking one piece out of `after` gives `before` back."""
    length = len(after) - len(before)
    return length > 0 and any(
        after[:at] + after[at + length :] == before for at in range(len(before) + 1)
    )


def checked(data: bytes, index: int) -> str:
    """Inserts, and checks what came out."""
    made = insert_rule(data, index, NEW)
    old, new = read_document(data, "f")[0].value, read_document(made, "f")[0].value
    assert new["rules"].pop(index) == NEW
    assert new == old
    assert only_added(data, made)
    return made.decode()


def block(*rules: str) -> str:
    return HEAD + "rules:\n" + "".join(rules)


ONE = f"  - {{rule_id: one, {DENY}}}\n"
TWO = f"  - {{rule_id: two, {DENY}}}\n"
MANY = """\
  - rule_id: many
    kind: deny
    enabled: true
    severity: warn
    match: {}
    effect: {action: BLOCK, reason_code: N, message: m}
"""
KEPT = "    description: |+\n     text\n"
LINES = """\
  - rule_id: new
    description: "from hint-1: “ok” 😀"
    kind: allow
    enabled: true
    severity: info
    match:
      server_name: {glob: [fs]}
      tool_name: {glob: ["yes"]}
      args: {key_equals: {path: "a: b # c\\u007f\\u2028", "on": true, "n": 1.5}, key_in: {x: [null, {"y": []}]}}
    effect: {action: ALLOW, reason_code: PROMOTED, message: fine}
"""
FLOW = as_flow(NEW)


@pytest.mark.parametrize(
    ("index", "before", "after"),
    [
        (0, [ONE, TWO], [LINES, ONE, TWO]),
        (1, [ONE, TWO], [ONE, LINES, TWO]),
        (0, [ONE], [LINES, ONE]),
        # Rules that are set apart stay so.
        (0, [ONE, "\n", "  # two\n", TWO], [LINES, "\n", ONE, "\n", "  # two\n", TWO]),
        (1, [ONE, "\n", "  # two\n", TWO], [ONE, "\n", LINES, "\n", "  # two\n", TWO]),
        # A comment belongs to the rule below it, one that is further in to the rule above.
        (1, [ONE, "    # one\n", "  # two\n", "  #\n", TWO], [ONE, "    # one\n", LINES, "  # two\n", "  #\n", TWO]),
        (0, ["  # one\n", ONE], [LINES, "  # one\n", ONE]),
        # What belongs to a long text stays in it.
        (1, [MANY, KEPT, "\n", "  # two\n", TWO], [MANY, KEPT, "\n", LINES, "\n", "  # two\n", TWO]),
    ],
)  # fmt: skip
def test_a_block_gets_a_block(index, before, after):
    assert checked(block(*before).encode(), index) == block(*after)


def test_a_number_sign_inside_a_string_is_not_a_comment():
    """Only reading the new text again tells."""
    one = f'- {{rule_id: one, {DENY}, description: "x\n# y"}}\n'
    two = f"- {{rule_id: two, {DENY}}}\n"
    lines = "".join(line[2:] + "\n" for line in LINES.splitlines())
    assert checked(block(one, two).encode(), 1) == block(one, lines, two)


def test_the_gap_behind_a_dash_is_copied_and_the_files_line_ends_are_used():
    data = f"{HEAD}rules:\n-   {{rule_id: one, {DENY}}}".replace("\n", "\r\n")
    made = checked(data.encode(), 0)
    assert "rules:\r\n-   rule_id: new\r\n    description:" in made
    assert made.count("\n") == made.count("\r\n")
    wide = f"  -{' ' * 20}{{rule_id: one, {DENY}}}\n"
    assert checked(block(wide).encode(), 0) == block(LINES, wide)
    below = f"  -\n    {{rule_id: one, {DENY}}}\n"
    assert checked(block(below).encode(), 0) == block(LINES, below)


def test_old_line_ends():
    data = block(ONE, TWO).replace("\n", "\r")
    assert checked(data.encode(), 1) == block(ONE, LINES, TWO).replace("\n", "\r")


def test_brackets_on_one_line_and_on_many():
    one, two = ONE.strip(" -\n"), TWO.strip(" -\n")
    assert (
        checked(f"{HEAD}rules: [{one}, {two}]".encode(), 1)
        == f"{HEAD}rules: [{one}, {FLOW}, {two}]"
    )
    made = checked(f"{HEAD}rules: [\n    {one}, # c\n    {two},\n  ]\n".encode(), 1)
    assert made == f"{HEAD}rules: [\n    {one}, # c\n    {FLOW},\n    {two},\n  ]\n"


def test_json_gets_json():
    flat = json.dumps(plain(*RULES))
    new = as_json(NEW)
    second = '{"rule_id": "d1"'
    assert checked(flat.encode(), 1) == flat.replace(second, f"{new}, {second}")
    deep = json.dumps(plain(*RULES), indent=2)
    wanted = json.dumps(plain(RULES[0], NEW, *RULES[1:]), indent=2, ensure_ascii=False)
    assert checked(deep.encode(), 1) == wanted.replace("\x7f", "\\u007f").replace(
        "\u2028", "\\u2028"
    )
    loose = flat.replace(second, f"\n    {second}")
    assert checked(loose.encode(), 1) == flat.replace(second, f"\n    {new},\n    {second}")
    odd = flat.replace(second, '\n    {\n  "rule_id": "d1"')
    assert f"\n    {new},\n    {{\n" in checked(odd.encode(), 1)


def test_json_may_have_escapes_and_characters_that_yaml_does_not_allow():
    data = json.dumps(plain(*RULES, description='😀 \\ " \x7f'))
    assert "\\ud83d" in data
    checked(data.encode(), 1)
    checked(
        json.dumps(plain(*RULES, description="\x7f\u2028\ufeff"), ensure_ascii=False).encode(), 1
    )


def behind_an_alias() -> str:
    selectors = f"selectors: {{workload: {{labels: &r [{{rule_id: one, {DENY}}}]}}}}\nrules: *r"
    return HEAD.replace("selectors: {}", selectors)


@pytest.mark.parametrize(
    "text",
    [
        behind_an_alias(),
        json.dumps(plain(*RULES)).replace('"rules"', '"\\u0072ules"'),
        block(ONE, TWO, "#" * (MAX_BUNDLE_BYTES - len(block(ONE, TWO)) - 100)),
    ],
    ids=["behind an alias", "an escaped name", "too large then"],
)
def test_what_cannot_be_edited_safely_is_refused_and_the_rule_is_told(text):
    with pytest.raises(SubluminalError) as refused:
        insert_rule(text.encode(), 0, NEW)
    assert "cannot be edited safely" in str(refused.value)
    assert refused.value.hint == f"add this rule by hand: {FLOW}"


@given(st.data(), st.integers(0, 3))
@settings(max_examples=400, deadline=None)
def test_however_a_policy_is_written_only_the_rule_is_added(data, index):
    """Taking the added text away gives the file back, byte for byte."""
    texts = data.draw(st.sampled_from([yaml_texts, json_texts]))
    policy = plain(*RULES, description=data.draw(st.sampled_from(["plain", 'ü 😀 \\ "q"'])))
    before = data.draw(texts(policy))
    bundle = parse_bundle(before, "f").bundle
    assert [each.rule_id for each in bundle.rules] == ["d0", "d1", "d2", "d3"]
    checked(before, index)


def test_what_would_hide_or_reorder_text_is_written_as_an_escape():
    assert as_json("a\u202eb\u200bc\x85d\u2069é😀") == '"a\\u202eb\\u200bc\\u0085d\\u2069é😀"'
