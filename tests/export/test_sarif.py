"""SARIF 2.1.0: valid against the official schema; rules are the policy's, results the violations."""

import json
import pathlib

import jsonschema_rs
import pytest
from tests.export import hostile
from tests.export.policies import loaded, text_of
from tests.export.shims import Shim, ref

from subluminal.export.artifact import as_json
from subluminal.export.ordering import ordered
from subluminal.export.sarif import as_sarif
from subluminal.export.summary import Summary, summarise

SCHEMA = pathlib.Path(__file__).parent / "schemas" / "sarif-2.1.0.json"
VALIDATOR = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()), validate_formats=True)


def run_of(summary):
    """The one run of a file that is valid."""
    log = json.loads(as_json(as_sarif(summary)))
    assert [str(error) for error in VALIDATOR.iter_errors(log)] == []
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    return run


def test_the_validator_can_say_no():
    log = as_sarif(Summary())
    log["runs"][0]["results"] = [{"level": "error"}]
    assert not VALIDATOR.is_valid(log)


@pytest.mark.parametrize("text", ["t", hostile.EVIL], ids=["plain", "hostile"])
def test_rules_and_results(text):
    run = run_of(hostile.run(text))
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert ids[:2] == ["known", "quiet"]
    results = run["results"]
    assert [result["properties"]["kind"] for result in results] == [
        "refused",
        "throttled",
        "observed",
        "refused",
        "ungoverned",
    ]
    assert [result["level"] for result in results] == ["note", "note", "error", "error", "note"]
    assert results[0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "file:///repo/with%20space/p%231.yaml"},
        "region": {"startLine": 1},
    }


def test_brackets_cannot_become_links():
    (first, *_) = run_of(hostile.run("[x](http://evil.example)"))["results"]
    assert "\\[x\\](http://evil.example)" in first["message"]["text"]


def test_an_empty_run_is_valid():
    assert run_of(Summary())["results"] == []


def test_two_policies_may_use_the_same_rule_id():
    shim = Shim("a")
    loaded(shim, "same", policy_id="one", layer="user")
    two = loaded(shim, "same", policy_id="two")
    shim.begin(
        1, action="BLOCK", rule_id="same", reason_code="NO", policy=ref("two", two.policy_hash)
    )
    run = run_of(summarise(ordered([shim])))
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["properties"]["policy_id"] == "two"


class TestLocations:
    """The line of a rule, as long as the file has not changed."""

    def location(self, path, root, *rules):
        shim = Shim("a")
        shim.health("spawned", workload={"repo_path": str(root)})
        snapshot = loaded(shim, *rules, file=str(path))
        policy = ref("p", snapshot.policy_hash)
        shim.begin(1, action="BLOCK", rule_id=rules[-1], reason_code="NO", policy=policy)
        (result,) = run_of(summarise(ordered([shim])))["results"]
        return result["locations"][0]["physicalLocation"]

    def test_in_the_repository(self, tmp_path):
        path = tmp_path / ".subluminal" / "policy.yaml"
        path.parent.mkdir()
        path.write_text(text_of("first", "second"))
        assert self.location(path, tmp_path, "first", "second") == {
            "artifactLocation": {"uri": ".subluminal/policy.yaml", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 9},
        }

    def test_a_file_that_changed_is_not_believed(self, tmp_path):
        path = tmp_path / "p.yaml"
        path.write_text(text_of("other", "first", "second"))
        assert self.location(path, tmp_path, "first", "second")["region"] == {"startLine": 1}

    @pytest.mark.parametrize("content", [None, "rules: 7", "\0"])
    def test_nor_one_that_is_gone_or_broken(self, tmp_path, content):
        path = tmp_path / "p.yaml"
        if content is not None:
            path.write_text(content)
        assert self.location(path, tmp_path, "first")["region"] == {"startLine": 1}

    @pytest.mark.parametrize("root", ["", "repo", "~", "a\0b"])
    def test_what_an_event_says_may_be_no_path(self, root):
        place = self.location("/repo/a\0b.yaml", root, "first")
        assert place["artifactLocation"] == {"uri": "file:///repo/a%00b.yaml"}


def test_the_same_call_has_the_same_fingerprint_in_every_run():
    def prints(run_id, shim_id):
        shim = Shim(shim_id, run_id=run_id)
        shim.begin(1, action="BLOCK", rule_id="r", reason_code="NO")
        (result,) = run_of(summarise(ordered([shim])))["results"]
        return result["partialFingerprints"]

    assert prints("run-1", "a") == prints("run-2", "b")
