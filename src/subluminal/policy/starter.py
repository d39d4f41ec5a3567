"""Writes a first policy for the tools that were recorded, for `sub policy init`.

The policy lets agents work. It stops loops, failing tools and endless runs with a hint, and has
examples to uncomment. Which tools change something is told by their names and by the hints of their
servers; a person checks the list. Pure: tools in, text out.
"""

import re
from collections.abc import Iterable, Iterator
from textwrap import dedent, indent
from typing import Any, NamedTuple

from subluminal.contracts.limits import MAX_NAME_BYTES, REDACTED
from subluminal.counts import counted
from subluminal.policy.promoting import literal_glob
from subluminal.policy.text.inserting import as_flow

_MAX_LISTED = 500
"""Most tools that the policy lists. More of them are better described by patterns."""
_MAX_COLUMNS = 100
_LEAST_CALLS = 1_000
"""Smallest budget of a whole run."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DESTROYS = _words(
    "delete remove drop destroy purge truncate wipe erase kill terminate revoke uninstall prune"
    " reset overwrite force"
)
_WRITES = _DESTROYS | _words(
    "write create update edit insert add set put post patch send push merge commit move rename copy"
    " upload publish deploy apply execute exec run start stop restart restore import replace append"
    " close open assign approve cancel submit install grant invite transfer"
)
_READS = _words(
    "get list read search find show describe query fetch view status log diff inspect count check"
    " lookup browse preview explain help ping whoami select"
)
_ANY_WRITES = ["write_*", "create_*", "update_*", "edit_*", "delete_*", "remove_*", "move_*"]
_ANY_WRITES += ["send_*", "post_*", "push_*", "merge_*"]
_ANY_DESTROYS = ["delete_*", "remove_*", "drop_*"]


class KnownTool(NamedTuple):
    """A tool that was recorded."""

    server_name: str
    tool_name: str
    annotations: dict[str, Any]
    """what its server says about it; {} if nothing is known"""


class _Listed(NamedTuple):
    """Patterns of tools that belong into one rule."""

    server_name: str | None
    """None for all servers"""
    globs: list[str]


class Starter(NamedTuple):
    """A first policy."""

    text: str
    tools: int
    """number of recorded tools that were looked at"""
    writes: int
    """number of these that change something"""


def starter_policy(
    tools: Iterable[KnownTool], *, mode: str, today: str, largest_run: int
) -> Starter:
    """Returns a policy with comments. `largest_run` is the most calls that a recorded run made."""
    known = sorted(filter(_is_nameable, tools), key=lambda tool: tool[:2])
    writes = [tool for tool in known if _writes(tool)]
    destroys = [tool for tool in writes if _destroys(tool)]
    listed = _by_server(writes) or [_Listed(None, _ANY_WRITES)]
    parts = [
        _head(mode, today, known, writes),
        *_tags(listed, len(writes)),
        _limits(largest_run),
        _examples(_by_server(destroys) or [_Listed(None, _ANY_DESTROYS)]),
    ]
    return Starter("\n".join(parts), len(known), len(writes))


def _is_nameable(tool: KnownTool) -> bool:
    """Whether a rule can name a tool: its names are not masked and can be matched."""
    return all(
        name and REDACTED not in name and len(name.encode("utf-8", "replace")) <= MAX_NAME_BYTES
        for name in tool[:2]
    )


def _verbs(tool: KnownTool) -> list[str]:
    return [word.lower() for word in _WORDS.findall(tool.tool_name)]


def _writes(tool: KnownTool) -> bool:
    """Whether a tool changes something: by its server's word, else by its name."""
    read_only = tool.annotations.get("readOnlyHint")
    if isinstance(read_only, bool):
        return not read_only
    if tool.annotations.get("destructiveHint") is True:
        return True
    words = _verbs(tool)
    # `list_deleted_files` reads: what a name says first counts.
    first = next((word for word in words if word in _WRITES or word in _READS), "")
    return first in _WRITES


def _destroys(tool: KnownTool) -> bool:
    hint = tool.annotations.get("destructiveHint")
    if isinstance(hint, bool):
        return hint
    return not _DESTROYS.isdisjoint(_verbs(tool))


def _by_server(tools: list[KnownTool]) -> list[_Listed]:
    found: dict[str, list[str]] = {}
    for tool in tools[:_MAX_LISTED]:
        found.setdefault(tool.server_name, []).append(literal_glob(tool.tool_name))
    return [_Listed(server, globs) for server, globs in found.items()]


def _head(mode: str, today: str, known: list[KnownTool], writes: list[KnownTool]) -> str:
    servers = len({tool.server_name for tool in known})
    source = (
        f"from {counted(len(known), 'recorded tool')} of {counted(servers, 'server')};"
        f" {len(writes)} of them {'changes' if len(writes) == 1 else 'change'} something"
        if known
        else "without any recorded tools: the names below are guesses"
    )
    return dedent(f"""\
        # A first policy, written by `sub policy init` on {today}
        # {source}.
        # It lets agents work, and stops loops, failing tools and endless runs with a hint.
        # What is missing here has a default: see docs/reference/bundle.md.
        policy_id: starter
        # guardrails: enforce the rules. observe: only record what would be refused.
        mode: {mode}
        # A call that cannot be judged passes, for example because it is too large to read.
        # Change this to BLOCK when rules below deny calls by their arguments.
        defaults: {{decision_on_error: ALLOW}}
        rules:""")


def _tags(listed: list[_Listed], writes: int) -> Iterator[str]:
    why = "as their names or their servers say" if writes else "by the usual names"
    yield f"  # Tools that change something, {why}. Check this list."
    if writes > _MAX_LISTED:
        more = writes - _MAX_LISTED
        yield f"  # {more} more are not listed. Patterns such as `create_*` are shorter."
    taken: set[str] = set()
    for each in listed:
        rule_id = _rule_id("writes", each.server_name, taken)
        yield indent(_rule(rule_id, "tag", each, "tag: {add_risk_class: [write_like]}"), "  ")


def _limits(largest_run: int) -> str:
    calls = max(_LEAST_CALLS, _round_up(3 * largest_run))
    writes = calls // 5
    told = f" The largest recorded run made {largest_run:,} calls." if largest_run else ""
    return indent(
        dedent(f"""\
            # The same call again and again: an agent in a loop.
            - rule_id: loop
              kind: breaker
              effect:
                breaker:
                  repeat_threshold: 6
                  repeat_window_ms: 120000
                  hint_text: You made this same call several times. Try something else.

            # A tool that keeps failing.
            - rule_id: failing-tool
              kind: breaker
              effect:
                breaker:
                  scope: server_tool
                  error_threshold: 6
                  window_ms: 60000
                  hint_text: This tool fails again and again. Wait a minute, or do without it.

            # No more than ten calls a second for long.
            - rule_id: pace
              kind: rate_limit
              severity: info
              effect:
                rate_limit:
                  capacity: 60
                  refill_tokens: 10
                  refill_period_ms: 1000
                  on_limit: THROTTLE
                  backoff_ms: 500

            # Writes of one run.
            - rule_id: write-budget
              kind: budget
              match: {{risk_class: [write_like]}}
              effect: {{budget: {{limit_calls: {writes}, hint_text: Stop and report.}}}}

            # Calls of one run.{told}
            - rule_id: run-budget
              kind: budget
              effect: {{budget: {{limit_calls: {calls}, hint_text: Stop and report.}}}}
            """),
        "  ",
    )


def _round_up(number: int) -> int:
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step


def _examples(listed: list[_Listed]) -> str:
    taken: set[str] = set()
    effect = "require: approval, message: this cannot be undone"
    asking = [
        _rule(_rule_id("ask", each.server_name, taken), "deny", each, effect) for each in listed
    ]
    text = "\n".join(
        [
            "Examples. To use one, remove the `# ` in front of its lines.",
            "",
            "A person must approve these calls; `sub approvals` lists those that wait.",
            *asking,
            "Refuse a call, and say what would pass.",
            _FORCE_PUSH,
        ]
    )
    return "".join(f"  # {line}".rstrip() + "\n" for line in text.splitlines())


_FORCE_PUSH = """\
- rule_id: no-force-push
  kind: deny
  severity: critical
  match: {tool_name: {glob: ["*push*"]}, args: {key_equals: {force: true}}}
  effect: {message: a force push rewrites what others have, suggest: {force: {set: false}}}
"""


def _rule_id(word: str, server_name: str | None, taken: set[str]) -> str:
    slug = re.sub("[^a-z0-9]+", "-", (server_name or "").lower()).strip("-")[:40]
    name = made = f"{word}-{slug}" if slug else word
    number = 1
    while made in taken:
        number += 1
        made = f"{name}-{number}"
    taken.add(made)
    return made


def _rule(rule_id: str, kind: str, listed: _Listed, effect: str) -> str:
    lines = [f"- rule_id: {rule_id}", f"  kind: {kind}", "  match:"]
    if listed.server_name is not None:
        lines.append(f"    server_name: {{glob: [{as_flow(literal_glob(listed.server_name))}]}}")
    lines += _wrapped("    tool_name: {glob: [", listed.globs, "]}")
    return "\n".join([*lines, f"  effect: {{{effect}}}", ""])


def _wrapped(opening: str, globs: list[str], closing: str) -> list[str]:
    """Writes a list in as few lines as fit."""
    margin = " " * len(opening)
    lines, line = [], opening
    words = [f"{as_flow(glob)}, " for glob in globs]
    words[-1] = words[-1].removesuffix(", ")
    for word in words:
        if len(line) + len(word) > _MAX_COLUMNS and line.strip() not in ("", opening.strip()):
            lines.append(line.rstrip())
            line = margin
        line += word
    return [*lines, line + closing]
