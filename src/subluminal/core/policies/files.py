"""Finds and reads the policy files of a run (policy-layers).

The layers are user (`$SUB_HOME/policy.yaml`) and repository (the nearest `.subluminal/policy.yaml`,
or the file that --policy or SUB_POLICY names).
"""

import os
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.config.plain_files import plain_file
from subluminal.contracts.limits import MAX_BUNDLE_BYTES
from subluminal.contracts.vocabulary import Layer


class PolicyFile(NamedTuple):
    """A layer and its file. An `explicit` file, named by --policy or SUB_POLICY, must exist."""

    layer: Layer
    path: str
    explicit: bool = False


class Stamp(NamedTuple):
    """The facts about a file that change when it is written or replaced."""

    mtime_ns: int
    size: int
    inode: int


def policy_files(places: Places, cwd: str, explicit: str | None) -> list[PolicyFile]:
    """Returns the files that may hold a policy: the user's first, then the repository's."""
    files = [PolicyFile(Layer.USER, places.policy)]
    if explicit:
        path = os.path.join(cwd, os.path.expanduser(explicit))
        files.append(PolicyFile(Layer.REPOSITORY, path, explicit=True))
    else:
        found = repository_policy(places, cwd)
        if found:
            files.append(PolicyFile(Layer.REPOSITORY, found))
    return files


def stamp_of(path: str) -> Stamp | None:
    """Returns the file's stamp; None if there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ino)


def read_policy(path: str) -> bytes:
    """Reads a policy file, up to one byte more than the limit: the loader refuses it then."""
    with open(path, "rb", opener=plain_file) as file:
        return file.read(MAX_BUNDLE_BYTES + 1)


def repository_policy(places: Places, cwd: str) -> str | None:
    """Returns the nearest policy up to the repository's root that this user or root owns, or None.

    Other owners are ignored: anyone may put a file into /tmp. The user's own policy, which the
    search may meet in the home directory, is not a repository's policy.
    """
    directory = cwd
    while True:
        path = os.path.join(directory, ".subluminal", "policy.yaml")
        try:
            owner = os.stat(path).st_uid
        except OSError:
            owner = None
        if owner in (os.getuid(), 0) and os.path.realpath(path) != os.path.realpath(places.policy):
            return path
        parent = os.path.dirname(directory)
        if parent == directory or os.path.exists(os.path.join(directory, ".git")):
            return None
        directory = parent
