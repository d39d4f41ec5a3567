"""The files that a patch changes: `apply_patch` blocks and unified diffs."""

import re

# Clients differ in the blanks that they accept before `***` and behind `:`.
_BLOCK = re.compile(
    r"^[^\S\n]*\*\*\*[^\S\n]*(?:(?:Add|Update|Delete) File|Move to):(.+)$", re.MULTILINE
)
_OTHER = re.compile(
    r"^\*\*\*(?! ?(?:(?:Add|Update|Delete) File|Move to):"
    r"| (?:(?:Begin|End) Patch|End of File)\s*$)",
    re.MULTILINE,
)
_DIFF = re.compile(r"^(?:---|\+\+\+) ([^\t\r\n]+)", re.MULTILINE)
_MOVED = re.compile(r"^(?:rename|copy) (?:from|to) ([^\r\n]+)", re.MULTILINE)


def files_of(patch: str) -> list[str] | None:
    """Returns the files that a patch names; None if the text is not a patch that can be read."""
    if "*** Begin Patch" in patch:
        names = [name.strip() for name in _BLOCK.findall(patch)]
        return None if _OTHER.search(patch) or not all(names) else names or None
    names = [_stripped(name) for name in _DIFF.findall(patch)] + _MOVED.findall(patch)
    if any(name.startswith('"') for name in names):
        return None  # quoted names have escapes
    return [name for name in dict.fromkeys(names) if name != "/dev/null"] or None


def _stripped(name: str) -> str:
    return name[2:] if name[:2] in ("a/", "b/") else name
