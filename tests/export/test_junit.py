"""JUnit: valid against Jenkins' own schema, a case per rule and per violation, safe text."""

import io
import pathlib
from xml.etree import ElementTree

import pytest
import xmlschema
from tests.export import hostile
from tests.export.shims import Shim

from subluminal.export.junit import as_junit, xml_text
from subluminal.export.ordering import ordered
from subluminal.export.summary import Summary, summarise

SCHEMA = xmlschema.XMLSchema(str(pathlib.Path(__file__).parent / "schemas" / "jenkins-junit.xsd"))


def cases(summary):
    """name: outcome, of a file that is valid."""
    text = as_junit(summary)
    SCHEMA.validate(io.BytesIO(text))
    suite = ElementTree.fromstring(text).find("testsuite")
    found = suite.findall("testcase")
    outcomes = [case[0].tag if len(case) else "passed" for case in found]
    assert int(suite.get("tests")) == len(found)
    assert int(suite.get("failures")) == outcomes.count("failure")
    assert int(suite.get("skipped")) == outcomes.count("skipped")
    return list(zip([case.get("classname") for case in found], outcomes, strict=True))


def test_a_case_per_rule_and_per_violation():
    found = cases(hostile.run("t"))
    assert found == [
        ("rules.p", "failure"),  # known
        ("rules.p", "passed"),  # quiet
        ("rules.p", "failure"),  # known by its acts only: observed, and as serious as --fail-on
        ("violations.known", "failure"),
        ("violations.t", "skipped"),  # throttled, which --strict alone allows
        ("violations.t", "failure"),
        ("violations.t", "failure"),
        ("violations.POLICY_NOT_APPLICABLE", "failure"),
    ]


def test_every_text_stays_text():
    found = cases(hostile.run())
    assert len(found) == 8
    case = ElementTree.fromstring(as_junit(hostile.run())).findall(".//testcase")[3]
    assert "<script>alert(1)</script>" in case.get("name")
    assert "\\x00\\x1b[31m" in case.find("failure").text


def test_a_run_without_anything_is_valid():
    assert cases(Summary()) == []


def test_what_was_only_observed_is_skipped_where_nobody_asked():
    shim = Shim("a")
    shim.start_run(strict="refused")
    shim.begin(
        1,
        rule_id="r",
        would_be={"action": "BLOCK", "rule_id": "r", "severity": "warn", "reason_code": "N"},
    )
    assert cases(summarise(ordered([shim]))) == [("rules.p", "passed"), ("violations.r", "skipped")]


@pytest.mark.parametrize("code", [*range(0x20), 0x7F, 0xD800, 0xDFFF, 0xFFFE, 0xFFFF])
def test_characters_that_xml_cannot_hold_are_shown(code):
    text = xml_text(f"a{chr(code)}b")
    element = ElementTree.Element("e")
    element.text = text
    ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8"))
    assert text.startswith("a")
    assert text.endswith("b")
