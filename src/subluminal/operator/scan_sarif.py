"""The rows of `sub scan` as SARIF 2.1.0: one result for each finding, at its line."""

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from subluminal import __version__
from subluminal.errors import SubluminalError
from subluminal.export.sarif import SCHEMA, hashed, plain
from subluminal.importer.scan.rules import Finding, Level, Row, Rule
from subluminal.visible import shown

_LEVELS = {
    Level.CRITICAL: "error",
    Level.HIGH: "error",
    Level.MEDIUM: "warning",
    Level.LOW: "note",
    Level.INFO: "note",
}
_SEVERITIES = {
    Level.CRITICAL: "9.5",
    Level.HIGH: "8.0",
    Level.MEDIUM: "5.5",
    Level.LOW: "3.0",
    Level.INFO: "1.0",
}
"""What code scanning services sort by, as text."""
_PAGES = "docs/reference/scan-rules"


def scan_as_sarif(
    rows: Sequence[Row], problems: Sequence[SubluminalError], root: str
) -> dict[str, Any]:
    """Returns a SARIF log. Files below `root` are named relative to it."""
    found = [(row, finding) for row in rows for finding in row.findings]
    used = list(dict.fromkeys(finding.rule for _, finding in found))
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "Subluminal scan",
                        "semanticVersion": __version__,
                        "rules": [_descriptor(rule, found) for rule in used],
                    }
                },
                "automationDetails": {"id": "subluminal-scan/"},
                "invocations": [_invocation(problems)],
                "columnKind": "unicodeCodePoints",
                "results": [_result(row, each, used.index(each.rule), root) for row, each in found],
            }
        ],
    }


def _descriptor(rule: Rule, found: Sequence[tuple[Row, Finding]]) -> dict[str, Any]:
    worst = min((f.level for _, f in found if f.rule is rule), key=list(Level).index)
    page = f"{_PAGES}/{rule.value}.md"
    return {
        "id": rule.value,
        "shortDescription": {"text": plain(rule.value.replace("_", " ").capitalize())},
        "help": {
            "text": f"See {page} in Subluminal's documentation: meaning, what to do, examples."
        },
        "defaultConfiguration": {"level": _LEVELS[worst]},
        "properties": {"security-severity": _SEVERITIES[worst], "tags": ["security", "mcp"]},
    }


def _invocation(problems: Sequence[SubluminalError]) -> dict[str, Any]:
    told = [
        {"level": "error", "message": {"text": plain(shown(str(problem)))}} for problem in problems
    ]
    return {"executionSuccessful": not told, "toolExecutionNotifications": told}


def _result(row: Row, finding: Finding, index: int, root: str) -> dict[str, Any]:
    name = shown(row.server_name)
    told = f"{name}: {shown(finding.message)}" + (
        f" ({shown(finding.hint)})" if finding.hint else ""
    )
    parts = [finding.rule.value, row.client or "", row.server_name, row.file or "", finding.message]
    return {
        "ruleId": finding.rule.value,
        "ruleIndex": index,
        "level": _LEVELS[finding.level],
        "message": {"text": plain(told)},
        "locations": [_location(row, finding, root)],
        "partialFingerprints": {"subluminalScan/v1": hashed(parts)},
        "properties": {
            "level": finding.level.value,
            "security-severity": _SEVERITIES[finding.level],
            "server_name": name,
            "client": row.client,
            "transport": row.transport,
            "risk_score": row.risk_score,
            "recommendation": row.recommendation.value,
        },
    }


def _location(row: Row, finding: Finding, root: str) -> dict[str, Any]:
    logical = {"logicalLocations": [{"name": shown(row.server_name), "kind": "module"}]}
    if row.file is None:
        return logical
    path = os.path.abspath(row.file)
    place: dict[str, Any] = {"uri": f"file://{quote(path)}"}
    if path.startswith(root.rstrip(os.sep) + os.sep):
        place = {"uri": quote(os.path.relpath(path, root)), "uriBaseId": "%SRCROOT%"}
    region = {"startLine": finding.line or row.line or 1}
    return {"physicalLocation": {"artifactLocation": place, "region": region}, **logical}
