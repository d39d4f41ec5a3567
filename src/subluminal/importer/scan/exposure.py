"""Finds out whether other users can write a configuration, or replace it.

Root and the owner may always write. A group counts as others unless it is the owner's own.
"""

import os
import stat
from functools import cache
from typing import NamedTuple

_ROOT_UID = 0


class Exposure(NamedTuple):
    """Why other users can write a file."""

    message: str
    hint: str
    reachable: bool = True
    """False if the mode is open, and a directory above keeps the others out"""


class _Step(NamedTuple):
    """The file, or a directory above it."""

    path: str
    uid: int
    gid: int
    mode: int

    @property
    def is_sticky(self) -> bool:
        return bool(self.mode & stat.S_ISVTX)


def find_exposure(path: str) -> Exposure | None:
    """Returns the worst way in which others can write a file; None if they cannot."""
    me = os.geteuid()
    try:
        known = [_looked_at(each) for each in _above(os.path.realpath(path))]
    except OSError:
        return None
    found = [_of_step(known, at, me) for at in range(len(known))]
    exposures = [each for each in found if each is not None]
    return next((each for each in exposures if each.reachable), exposures[0] if exposures else None)


def _above(path: str) -> list[str]:
    """Returns a file and the directories above it, the root first."""
    steps = [path]
    while os.path.dirname(steps[-1]) != steps[-1]:
        steps.append(os.path.dirname(steps[-1]))
    return steps[::-1]


def _looked_at(path: str) -> _Step:
    found = os.stat(path)
    return _Step(path, found.st_uid, found.st_gid, found.st_mode)


def _of_step(steps: list[_Step], at: int, me: int) -> Exposure | None:
    step = steps[at]
    is_file = at == len(steps) - 1
    what = "the file" if is_file else "its directory"
    # In a sticky directory such as /tmp, others cannot replace what is not theirs.
    shielded = not is_file and step.is_sticky and steps[at + 1].uid in (me, _ROOT_UID)
    if step.uid not in (me, _ROOT_UID) and me != _ROOT_UID:
        return Exposure(
            f"{what} `{step.path}` belongs to another user",
            f"check it, then run `sudo chown {me} {step.path}`",
        )
    if shielded:
        return None
    mode = f"{stat.S_IMODE(step.mode):04o}"
    if step.mode & stat.S_IWOTH:
        reachable = all(above.mode & stat.S_IXOTH for above in steps[:at])
        told = f"every user can write {what} `{step.path}` (mode {mode})"
        if not reachable:
            told += ", though a directory above keeps them out"
        return Exposure(told, f"check it, then run `chmod o-w {step.path}`", reachable)
    if not step.mode & stat.S_IWGRP or _is_own_group(step.gid, step.uid):
        return None
    if not all(_may_enter(above, step.gid) for above in steps[:at]):
        return None
    told = f"users of a group can write {what} `{step.path}` (mode {mode})"
    return Exposure(told, f"check it, then run `chmod g-w {step.path}`")


def _may_enter(folder: _Step, gid: int) -> bool:
    if folder.gid == gid:
        return bool(folder.mode & stat.S_IXGRP)
    return bool(folder.mode & stat.S_IXOTH)


@cache
def _is_own_group(gid: int, uid: int) -> bool:
    """Whether a group is the owner's private one: named like the owner, with no other members."""
    import grp
    import pwd

    if gid == uid == _ROOT_UID:
        return True
    try:
        group, owner = grp.getgrgid(gid), pwd.getpwuid(uid).pw_name
    except KeyError:
        return gid == uid
    return group.gr_name == owner and set(group.gr_mem) <= {owner}
