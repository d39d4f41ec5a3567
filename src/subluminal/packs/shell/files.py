"""The guards of `file.write` and `file.delete`.

Paths are compared as written, without `..`. Links are not followed: the machine is not looked at.
"""

import os
from fnmatch import fnmatchcase
from typing import Any

from subluminal.kernel import (
    Decision,
    Escalate,
    EscalateTo,
    Execute,
    IntentEnvelope,
    Refuse,
    basis,
    refuse,
)
from subluminal.packs.fields import member, texts
from subluminal.packs.shell.lines import is_within
from subluminal.packs.shell.secrets import is_credential_file

WRITE, DELETE = "file.write", "file.delete"
KINDS = (WRITE, DELETE)

PATH_INVALID = "path_invalid"
PATH_OUTSIDE = "path_outside_roots"
PATH_PROTECTED = "path_protected"
CODES = (PATH_INVALID, PATH_OUTSIDE, PATH_PROTECTED)


def check_path(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """There must be a path: absolute, or relative to the only root."""
    if envelope.kind not in KINDS or _path(envelope, state) is not None:
        return None
    refusal = refuse("STATE", PATH_INVALID, "This is not a path that can be judged.")
    return Refuse(refusal, (basis("schema", "payload_invalid", field="path"),))


def check_roots(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """A path must be below a root; a root itself is neither written nor deleted."""
    if envelope.kind not in KINDS:
        return None
    path, roots = _path(envelope, state) or "/", _roots(state)
    if is_within(path, roots) and path not in roots:
        return None
    refusal = refuse("BUSINESS_RULE", PATH_OUTSIDE, "This file is outside of the allowed places.")
    return Refuse(refusal, (basis("business", "rule_violated", rule="roots"),))


def escalate_credential_file(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """A person decides about files with credentials."""
    path = _path(envelope, state) if envelope.kind in KINDS else None
    if path is None or not is_credential_file(path):
        return None
    reason = basis("business", "rule_satisfied", rule="credential_file")
    return Escalate(EscalateTo.HUMAN, f"a credential file: {path}", (reason,))


def refuse_protected(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """Protected files stay as they are.

    An entry is a path, which protects all below it, or a glob; one without `/` is about names.
    """
    path = _path(envelope, state) if envelope.kind in KINDS else None
    if path is None or not _is_protected(path, state):
        return None
    refusal = refuse("BUSINESS_RULE", PATH_PROTECTED, "This file is protected.")
    return Refuse(refusal, (basis("business", "rule_violated", rule="protected"),))


def execute_inside(envelope: IntentEnvelope, _state: Any) -> Decision | None:
    """Everything else below a root may be written and deleted."""
    if envelope.kind not in KINDS:
        return None
    return Execute((basis("business", "rule_satisfied", rule="roots"),))


def _path(envelope: IntentEnvelope, state: Any) -> str | None:
    path: Any = member(envelope, "path")
    roots = _roots(state)
    if not isinstance(path, str) or not path.isprintable() or path.startswith("~"):
        return None
    if not path or (not path.startswith("/") and len(roots) != 1):
        return None
    return os.path.normpath(path if path.startswith("/") else f"{roots[0]}/{path}").replace(
        "//", "/"
    )


def _roots(state: Any) -> tuple[str, ...]:
    return tuple(os.path.normpath(root) for root in texts(state, "roots") if root.startswith("/"))


def _is_protected(path: str, state: Any) -> bool:
    beginnings = {path, *(root for root in _parents(path))}
    for entry in texts(state, "protected"):
        if "/" not in entry:
            if any(fnmatchcase(os.path.basename(each), entry) for each in beginnings):
                return True
            continue
        wholes = [entry] if entry.startswith("/") else [f"{root}/{entry}" for root in _roots(state)]
        for whole in map(os.path.normpath, wholes):
            if any(fnmatchcase(each, whole) for each in beginnings):
                return True
    return False


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


STATE_GUARDS = (check_path, check_roots)
BUSINESS = (escalate_credential_file, refuse_protected, execute_inside)
