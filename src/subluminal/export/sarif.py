"""`results.sarif` (SARIF 2.1.0): the rules of the policies, and the violations as results.

Results point at the line of the rule in the policy's file. The file may have changed since the run,
so its lines are used only if it still compiles to the same hash.
"""

import hashlib
import os
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec import to_builtins

from subluminal import __version__
from subluminal.config.plain_files import plain_file
from subluminal.contracts.vocabulary import RunStatus, Severity
from subluminal.errors import SubluminalError
from subluminal.export.policies import RuleRow, UsedPolicy
from subluminal.export.summary import Summary
from subluminal.export.violations import SILENT_STATE, Kind, SilentServer, Violation

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.CRITICAL: "error", Severity.WARN: "warning", Severity.INFO: "note"}
_ROOT = "%SRCROOT%"
_SILENT = "SERVER_SILENT"
"""The rule of servers that were not seen. It is in no policy."""
_BRACKETS = str.maketrans({"[": "\\[", "]": "\\]", "\\": "\\\\"})

_MAX_POLICY_BYTES = 4_194_304


class _Located(NamedTuple):
    """The file of a policy, and the line of each rule in it."""

    uri: str
    in_repository: bool
    """True if `uri` is relative to the root of the repository"""
    lines: dict[str, int]

    def line(self, rule_id: str | None) -> int:
        return self.lines.get(rule_id or "", 1)


_NOWHERE = _Located(".subluminal/policy.yaml", True, {})
"""Location for calls that no policy applied to: the file where a policy would be."""


def as_sarif(summary: Summary) -> dict[str, Any]:
    """Returns the contents of `results.sarif` as plain data."""
    found = summary.as_dict()
    root = (found.get("workload") or {}).get("repo_path")
    located = {each.policy_hash: _locate(each, root) for each in summary.policies.all()}
    catalogue = _Catalogue(summary, located)
    results = [catalogue.result(each) for each in summary.violations]
    results += [catalogue.silent_result(each) for each in summary.silent]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "Subluminal",
                        "semanticVersion": __version__,
                        "rules": catalogue.rules,
                    }
                },
                "automationDetails": {"id": f"subluminal/{found.get('agent_id')}/"},
                "invocations": [_invocation(found)],
                "columnKind": "unicodeCodePoints",
                "results": results,
                "properties": {
                    "run_id": found.get("run_id"),
                    "violations_total": found["violations_total"],
                },
            }
        ],
    }


def _invocation(found: dict[str, Any]) -> dict[str, Any]:
    times = {"startTimeUtc": found["started_at"], "endTimeUtc": found["ended_at"]}
    return {
        "executionSuccessful": found["status"] == RunStatus.SUCCEEDED,
        **{name: at for name, at in times.items() if at},
        "properties": {"status": found["status"], "verdict": found["verdict"]},
    }


def plain(text: str) -> str:
    """Escapes text from outside, because SARIF reads brackets as links."""
    return text.translate(_BRACKETS)


class _Catalogue:
    """The rules of a report, and the location of each."""

    def __init__(self, summary: Summary, located: dict[str, _Located]) -> None:
        self.rules: list[dict[str, Any]] = []
        self._located = located
        self._policies = summary.policies
        self._index: dict[tuple[str, str], int] = {}
        self._ids: set[str] = set()
        for row in summary.rules():
            self._add((row.policy_hash, row.rule_id), _descriptor(row))

    def result(self, violation: Violation) -> dict[str, Any]:
        """Returns the result for one violation."""
        index = self._index_of(violation)
        tool = f"{violation.server_name}/{violation.tool_name}"
        told = f"{_TOLD[violation.kind].format(violation.action)} {tool}: {violation.summary}"
        return {
            "ruleId": self.rules[index]["id"],
            "ruleIndex": index,
            "level": _level(violation.severity),
            "message": {"text": plain(told)},
            "locations": [self._location(violation)],
            "partialFingerprints": {"subluminalCall/v1": _fingerprint(violation)},
            "properties": {
                "kind": violation.kind,
                "fails": violation.fails,
                "action": violation.action,
                "outcome": violation.outcome,
                "reason_code": violation.reason_code,
                "server_name": violation.server_name,
                "tool_name": violation.tool_name,
                "seq": violation.seq,
                "call_id": violation.call_id,
                "policy_hash": violation.policy_hash,
            },
        }

    def silent_result(self, silent: SilentServer) -> dict[str, Any]:
        """Returns the result for a server that was not seen. No line of a policy is at fault."""
        index = self._own_index(_SILENT)
        place = {"artifactLocation": {"uri": _NOWHERE.uri, "uriBaseId": _ROOT}}
        parts = [_SILENT, silent.title, "" if silent.server_name else silent.detail]
        return {
            "ruleId": self.rules[index]["id"],
            "ruleIndex": index,
            "level": "error" if silent.fails else "note",
            "message": {"text": plain(f"{silent.title} was not seen: {silent.detail}")},
            "locations": [{"physicalLocation": {**place, "region": {"startLine": 1}}}],
            "partialFingerprints": {"subluminalServer/v1": hashed(parts)},
            "properties": {"kind": SILENT_STATE, **to_builtins(silent)},
        }

    def _own_index(self, name: str) -> int:
        """Returns the index of a rule that is in no policy."""
        key = ("", name)
        if key not in self._index:
            self._add(key, {"id": name})
        return self._index[key]

    def _index_of(self, violation: Violation) -> int:
        """Returns the index of a violation's rule.

        A refusal that no rule made gets a rule of its own, named by its reason code.
        """
        if violation.rule_id is None:
            return self._own_index(violation.reason_code)
        owner = self._policies.owner(violation.policy_hash, violation.rule_id)
        return self._index[owner, violation.rule_id]

    def _add(self, key: tuple[str, str], rule: dict[str, Any]) -> None:
        if rule["id"] in self._ids:
            # Two policies may use the same rule id.
            rule = {**rule, "id": f"{key[0][:12]}/{rule['id']}"}
        self._index[key] = len(self.rules)
        self._ids.add(rule["id"])
        self.rules.append(rule)

    def _location(self, violation: Violation) -> dict[str, Any]:
        owner = self._policies.owner(violation.policy_hash, violation.rule_id or "")
        located = self._located.get(owner, _NOWHERE)
        place: dict[str, Any] = {"uri": located.uri}
        if located.in_repository:
            place["uriBaseId"] = _ROOT
        region = {"startLine": located.line(violation.rule_id)}
        return {"physicalLocation": {"artifactLocation": place, "region": region}}


_TOLD = {
    Kind.REFUSED: "{}",
    Kind.THROTTLED: "{}",
    Kind.OBSERVED: "would be {}",
    Kind.FLAGGED: "flagged {}",
    Kind.UNGOVERNED: "no policy applied, {}",
}


def _descriptor(row: RuleRow) -> dict[str, Any]:
    told = row.message or f"{row.kind or 'rule'} {row.rule_id}"
    return {
        "id": row.rule_id,
        "shortDescription": {"text": plain(told)},
        "defaultConfiguration": {"level": _level(row.severity)},
        "properties": {
            "kind": row.kind,
            "policy_id": row.policy_id,
            "policy_hash": row.policy_hash,
            "severity": row.severity,
        },
    }


def _level(severity: str) -> str:
    return _LEVELS[Severity(severity)] if severity in list(Severity) else "warning"


def _fingerprint(violation: Violation) -> str:
    """Returns a hash that is the same for the same call and rule in every run."""
    parts = [
        violation.policy_id,
        violation.rule_id or violation.reason_code,
        violation.server_name,
        violation.tool_name,
        violation.args_hash,
    ]
    return hashed(parts)


def hashed(parts: list[str]) -> str:
    """Returns one hash over several texts, for a fingerprint."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _locate(policy: UsedPolicy, root: str | None) -> _Located:
    """Finds the file of a policy. `root` is the root of the repository."""
    if not policy.files:
        return _NOWHERE
    files = sorted(policy.files)
    read = ((file, _lines(file, policy.policy_hash)) for file in files)
    file, lines = next(((file, lines) for file, lines in read if lines), (files[0], {}))
    path = os.path.abspath(file)
    if root and os.path.isabs(root) and os.path.commonpath([root, path]) == root:
        return _Located(quote(os.path.relpath(path, root)), True, lines)
    return _Located(f"file://{quote(path)}", False, lines)


def _lines(file: str, policy_hash: str) -> dict[str, int]:
    # Imported here because loading the YAML parser takes longer than the rest of an artifact.
    from subluminal.core.policies.installed import find_installed
    from subluminal.policy.compiling import compile_bundle
    from subluminal.policy.loading import parse_bundle

    try:
        with open(file, "rb", opener=plain_file) as opened:
            loaded = parse_bundle(opened.read(_MAX_POLICY_BYTES), file, find_installed)
    except (
        OSError,
        ValueError,
        SubluminalError,
    ):  # the name comes from an event, and may be anything
        return {}
    if compile_bundle(loaded.bundle).policy_hash != policy_hash:
        return {}
    return {
        rule.rule_id: loaded.line_of(index) or 1 for index, rule in enumerate(loaded.bundle.rules)
    }
