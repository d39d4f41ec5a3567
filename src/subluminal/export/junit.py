"""`junit.xml`: a test case for each rule, violation and server that was not seen.

Ant, Jenkins and GitLab read it.

The case of a rule fails if any call violated the rule; the case of a violation names the call. A
violation that was only observed, or throttled where that is allowed, is skipped instead of failed.

XML 1.0 cannot hold control characters, not even escaped, so `xml_text` writes them visibly.
"""

from typing import Any
from xml.etree import ElementTree as Xml

from subluminal.export.policies import RuleRow
from subluminal.export.summary import Summary
from subluminal.export.violations import SilentServer, Violation
from subluminal.visible import shown_lines

_HOST = "localhost"
"""The schema requires a host. The real name would make two equal runs differ."""


def as_junit(summary: Summary) -> bytes:
    """Returns the contents of `junit.xml`."""
    found = summary.as_dict()
    rules, violations = summary.rules(), summary.violations
    cases = [
        *map(_rule_case, rules),
        *map(_silent_case, summary.silent),
        *map(_violation_case, violations),
    ]
    failed = sum(case.find("failure") is not None for case in cases)
    suite = Xml.Element(
        "testsuite",
        {
            "name": xml_text(f"sub run {found.get('agent_id')}"),
            "id": "0",
            "package": "subluminal",
            "timestamp": str(found["started_at"] or "1970-01-01T00:00:00")[:19],
            "hostname": _HOST,
            "tests": str(len(cases)),
            "failures": str(failed),
            "errors": "0",
            "skipped": str(sum(case.find("skipped") is not None for case in cases)),
            "time": _seconds((found["totals"] or {}).get("duration_ms", 0)),
        },
    )
    suite.append(_properties(found))
    suite.extend(cases)
    Xml.SubElement(suite, "system-out").text = xml_text(_said(found))
    Xml.SubElement(suite, "system-err")
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    written: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def xml_text(text: str) -> str:
    """Returns text with control, bidi and other hidden characters in a visible form."""
    return shown_lines(text)


def _properties(found: dict[str, Any]) -> Xml.Element:
    properties = Xml.Element("properties")
    policy = found["policy"] or {}
    for name, value in {
        "run_id": found.get("run_id"),
        "client": found.get("client"),
        "env": found.get("env"),
        "status": found["status"],
        "mode": found["mode"],
        "policy_hash": policy.get("policy_hash"),
    }.items():
        Xml.SubElement(properties, "property", {"name": name, "value": xml_text(str(value or ""))})
    return properties


def _rule_case(rule: RuleRow) -> Xml.Element:
    case = _case(f"rules.{rule.policy_id}", rule.rule_id)
    if rule.failures:
        told = f"{rule.failures} of the {rule.calls} calls that this rule decided violated it"
        _fail(case, rule.severity, told, rule.message or told)
    return case


def _silent_case(silent: SilentServer) -> Xml.Element:
    case = _case("servers", f"{silent.title} was seen")
    if silent.fails:
        _fail(case, "critical", silent.detail, f"{silent.title} was not seen: {silent.detail}")
    else:
        Xml.SubElement(case, "skipped").text = xml_text(silent.detail)
    return case


def _violation_case(violation: Violation) -> Xml.Element:
    by = violation.rule_id or violation.reason_code
    tool = f"{violation.server_name}/{violation.tool_name}"
    case = _case(f"violations.{by}", f"{violation.action} {tool}, call {violation.seq}")
    lines = [
        violation.summary,
        f"{violation.kind}: {violation.action} by {by}, {violation.reason_code}",
        f"tool: {tool}",
        f"policy: {violation.policy_id} {violation.policy_hash}",
        f"call_id: {violation.call_id} at {violation.ts}",
    ]
    if violation.is_failure:
        _fail(case, violation.severity, violation.summary, "\n".join(lines))
    else:
        # Jenkins' schema does not allow a message attribute here.
        Xml.SubElement(case, "skipped").text = xml_text("\n".join(lines))
    return case


def _case(classname: str, name: str) -> Xml.Element:
    return Xml.Element(
        "testcase", {"classname": xml_text(classname), "name": xml_text(name), "time": "0.000"}
    )


def _fail(case: Xml.Element, severity: str, message: str, text: str) -> None:
    # One line, because not every reader normalises attributes.
    attributes = {"message": xml_text(" ".join(message.split())), "type": xml_text(severity)}
    Xml.SubElement(case, "failure", attributes).text = xml_text(text)


def _said(found: dict[str, Any]) -> str:
    verdict = found["verdict"]
    because = "; ".join(verdict["because"])
    held = "policy held" if verdict["holds"] else f"policy violated: {because}"
    counts = ", ".join(f"{number} {name}" for name, number in found["decisions"].items())
    return f"{held}\nstatus: {found['status']}\ndecisions: {counts or 'none'}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}"
