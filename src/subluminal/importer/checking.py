"""Checks an edited configuration before it is written: only what was meant to change has changed.

A failure here is a bug in the importer. Raising leaves the user's file as it is.
"""

from collections.abc import Callable
from typing import Any

from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Scope
from subluminal.importer.document import Document, Entry, EntryKind
from subluminal.importer.hooks.finding import find_hooks, without_ours
from subluminal.importer.overrides import reserved_members
from subluminal.importer.wrapper import Installation, recognise


def check_wrapped(
    before: Document, after: Document, ours: Installation, scope: Scope | None
) -> None:
    """Raises unless every stdio entry starts the same server as before, through our shim."""

    def fits(old: Entry, new: Entry) -> bool:
        found = recognise(new.argv)
        return bool(found and found.wrapper.program == ours.program) and _same_server(old, new)

    _check(before, after, fits, scope)


def check_unwrapped(before: Document, after: Document) -> None:
    """Raises unless every stdio entry starts the same server as before, without a shim."""
    _check(before, after, lambda old, new: not recognise(new.argv) and _same_server(old, new))


def check_hooked(before: Document, after: Document) -> None:
    """Raises unless every event that the hook needs runs it, and nothing else has changed."""
    _check_rest(before, after)
    hooks = after.client.hooks
    found = [each.event for each in find_hooks(after.client, after.root)]
    if hooks is None or any(found.count(event) != 1 for event in hooks.events):
        raise _not_safe(before.path, "a hook would be missing")


def check_unhooked(before: Document, after: Document) -> None:
    """Raises unless no event runs our hook, and nothing else has changed."""
    _check_rest(before, after)
    if find_hooks(after.client, after.root):
        raise _not_safe(before.path, "a hook would stay")


def _check_rest(before: Document, after: Document) -> None:
    was, now = (without_ours(each.client, each.root) for each in (before, after))
    if repr(was) != repr(now):
        raise _not_safe(before.path, "something besides the hooks would change")


def _check(
    before: Document,
    after: Document,
    fits: Callable[[Entry, Entry], bool],
    scope: Scope | None = None,
) -> None:
    same_servers = [e.path for e in before.entries] == [e.path for e in after.entries]
    pairs = zip(before.entries, after.entries, strict=False)
    if not same_servers or not all(_fits(old, new, fits) for old, new in pairs):
        raise _not_safe(before.path, "a server would no longer start as before")
    # Compared as text: TOML's nan is not equal to itself, and order counts.
    if repr(_rest(before, scope)) != repr(_rest(after)):
        raise _not_safe(before.path, "something besides the servers' commands would change")


def _not_safe(path: str, reason: str) -> SubluminalError:
    return SubluminalError(
        f"cannot edit `{path}` safely: {reason}",
        hint="nothing was changed; this is a bug in `sub`, please report it",
    )


def _fits(old: Entry, new: Entry, fits: Callable[[Entry, Entry], bool]) -> bool:
    if old.kind is not EntryKind.STDIO:
        return old.kind is new.kind
    return new.kind is EntryKind.STDIO and fits(old, new)


def _same_server(old: Entry, new: Entry) -> bool:
    was, now = recognise(old.argv), recognise(new.argv)
    return old.argv[was.length if was else 0 :] == new.argv[now.length if now else 0 :]


def _rest(document: Document, scope: Scope | None = None) -> Any:
    """Returns the whole configuration without the parts that an import may change.

    `scope` is given for the text before the import, of which variables may be gone after it.
    """
    value = document.root.value()
    shape = document.client.shape
    for entry in document.entries:
        if entry.kind is EntryKind.STDIO:
            found = value
            for name in entry.path:
                found = found[name]
            for key in ("command", "args", shape.env_vars_key):
                found.pop(key, None)
            variables = found.get(shape.env_key)
            if isinstance(variables, dict):
                gone = {m.name for m in reserved_members(document.client, entry, scope)}
                found[shape.env_key] = sorted(variables.keys() - gone)
                if not found[shape.env_key]:
                    del found[shape.env_key]  # no table is an empty one; TOML may have no header
    return value
