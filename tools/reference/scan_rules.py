"""Generates a page for each rule of `sub scan`: what it means, what to do, hits and near misses.

Hits and near misses are the cases that the tests run (tests/cases/scan).
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from tools.field_docs import doc_of, one_line, paragraphs
from tools.reference.markdown import page, table

from subluminal.importer.scan.rules import WEIGHTS, About, Rule, about

_CASES = Path(__file__).parents[2] / "tests" / "cases" / "scan"


def pages() -> dict[str, str]:
    """Returns the list of rules, and a page for each."""
    found = {f"docs/reference/scan-rules/{rule.value}.md": _page(rule) for rule in Rule}
    return {"docs/reference/scan-rules.md": _list(), **found}


def _list() -> str:
    parts = ["Rules of `sub scan`", f"{one_line(Rule.__doc__ or '')} {_scores()}"]
    for kind in About:
        rows = [
            (f"[`{rule.value}`](scan-rules/{rule.value}.md)", _levels(rule), _sentence(rule))
            for rule in Rule
            if about(rule) is kind
        ]
        parts += [f"## About {kind.value}", table(["rule", "level", "meaning"], rows)]
    return page(*parts)


def _scores() -> str:
    weights = ", ".join(f"{level.value} {weight}" for level, weight in WEIGHTS.items())
    return (
        f"A finding adds to the risk score of its server: {weights}; at most 100. From 70 the "
        "recommendation is `block`, from 40 `review`, else `allow`."
    )


def _page(rule: Rule) -> str:
    meaning, *advice = _parts(rule)
    cases = tomllib.loads((_CASES / f"{rule.value}.toml").read_text("utf-8"))
    return page(
        rule.value,
        f"**Level:** {_levels(rule)}. **Looks at:** {about(rule).value}.",
        f"**What it means.** {meaning}",
        "**What to do.** " + "\n\n".join(advice),
        "## Hits",
        "\n".join(f"- {case['name']}: {_shown(case)}" for case in cases["hit"]),
        "## Near misses",
        "\n".join(
            f"- {case['name']}, because {case['why']}: {_shown(case)}"
            for case in cases["near_miss"]
        ),
        "[All rules](../scan-rules.md)",
    )


def _levels(rule: Rule) -> str:
    cases = tomllib.loads((_CASES / f"{rule.value}.toml").read_text("utf-8"))
    used = {case["level"] for case in cases["hit"] if "level" in case}
    return ", ".join(level.value for level in WEIGHTS if level.value in used)


def _sentence(rule: Rule) -> str:
    return _parts(rule)[0].partition(". ")[0].removesuffix(".") + "."


def _parts(rule: Rule) -> list[str]:
    parts = paragraphs(doc_of(Rule, rule.name))
    if len(parts) < 2:
        raise ValueError(f"Rule.{rule.name} needs two paragraphs: what it means, and what to do")
    return parts


def _shown(case: dict[str, Any]) -> str:
    """Returns what a case consists of, in ASCII: characters that nobody sees stay escapes."""
    files = dict(case.get("files", {}))
    if "path" in case:
        files[case["path"]] = case["text"]
    if files:
        return ", ".join(f"`{name}`: {_code(text)}" for name, text in files.items())
    if "tool" in case:
        return _tool(json.loads(case["tool"]))
    if "servers" in case:
        servers = json.loads(case["servers"]).items()
        return "; ".join(
            f"`{name}` lists {', '.join(map(_tool, tools))}" for name, tools in servers
        )
    told = _code(case["entry"] if "entry" in case else case["manifest"])
    modes = ", ".join(f"`{name}` {mode}" for name, mode in case.get("modes", {}).items())
    return f"{told} with modes {modes}" if modes else told


def _tool(tool: dict[str, Any]) -> str:
    """Returns a tool as `name(parameters)` and its description, if that is all there is to it."""
    schema = tool.get("inputSchema", {})
    parameters = schema.get("properties", {})
    plain = all(list(each) == ["type"] for each in parameters.values())
    if not plain or set(schema) - {"type", "properties"}:
        return _code(json.dumps(tool))
    name = json.dumps(tool["name"])[1:-1]
    return f"`{name}({', '.join(parameters)})` {_code(json.dumps(tool['description']))}"


def _code(text: str) -> str:
    try:
        text = json.dumps(json.loads(text))
    except ValueError:
        text = "; ".join(line for line in text.splitlines() if line)
    text = _short_runs(text)
    fence = "``" if "`" in text else "`"
    pad = " " if fence == "``" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _short_runs(text: str) -> str:
    text = re.sub(r" {12,}", lambda run: f" [{len(run[0])} spaces] ", text)
    return re.sub(r"(?:\\n){12,}", lambda run: f" [{len(run[0]) // 2} line breaks] ", text)
