"""The files that a patch changes: `apply_patch` blocks and unified diffs."""

import re

_BLOCK = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+?)[ \t\r]*$", re.MULTILINE)
_DIFF = re.compile(r"^(?:---|\+\+\+) ([^\t\r\n]+)", re.MULTILINE)
_MOVED = re.compile(r"^(?:rename|copy) (?:from|to) ([^\r\n]+)", re.MULTILINE)


def files_of(patch: str) -> list[str] | None:
    """Returns the files that a patch names; None if the text is not a patch that can be read."""
    if "*** Begin Patch" in patch:
        return [found[1].strip() for found in _BLOCK.findall(patch)] or None
    names = [_stripped(name) for name in _DIFF.findall(patch)] + _MOVED.findall(patch)
    if any(name.startswith('"') for name in names):
        return None  # quoted names have escapes
    return [name for name in dict.fromkeys(names) if name != "/dev/null"] or None


def _stripped(name: str) -> str:
    return name[2:] if name[:2] in ("a/", "b/") else name
