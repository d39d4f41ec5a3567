"""Plain data as text that stands well in a person's YAML or JSON file."""

import json
import re
from typing import Any

# What YAML 1.2 does not print, a byte order mark in the middle, and line breaks that YAML 1.1 had
# and 1.2 has not: two parsers would split the text at different places.
UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_REORDERS = re.compile("[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb]")
"""Makes an editor show text other than it is."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NO_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""What some YAML parser takes for something other than a string."""


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON that is also YAML: readable in any script, with nothing invisible in it."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    for hidden in (UNPRINTABLE, _REORDERS):
        text = hidden.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    return text


def as_flow(value: Any) -> str:
    """YAML on one line, with quotes only where they are needed."""
    if isinstance(value, dict):
        members = [f"{as_flow(key)}: {as_flow(item)}" for key, item in value.items()]
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_flow(item) for item in value) + "]"
    if isinstance(value, str) and _WORD.fullmatch(value) and value.lower() not in _NO_WORDS:
        return value
    return as_json(value)


def as_block(rule: dict[str, Any]) -> list[str]:
    """A rule as lines of YAML: one for each member, and for each part of its match."""
    lines: list[str] = []
    for name, value in rule.items():
        if name == "match":
            lines += ["match:", *(f"  {part}: {as_flow(item)}" for part, item in value.items())]
        else:
            lines.append(f"{name}: {as_flow(value)}")
    return lines
