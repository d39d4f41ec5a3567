"""Which policy files a run is under, and what stands in them (policy-layers).

Layers: managed (the fleet's), user (`$SUB_HOME/policy.yaml`), repository (the nearest
`.subluminal/policy.yaml`, or the file that --policy or SUB_POLICY names).
"""

import os
import stat
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.contracts.limits import MAX_BUNDLE_BYTES
from subluminal.contracts.vocabulary import Layer


class PolicyFile(NamedTuple):
    """A layer and the file it comes from. An `explicit` file must exist."""

    layer: Layer
    path: str
    explicit: bool = False


class Stamp(NamedTuple):
    """What changes when a file is written or replaced."""

    mtime_ns: int
    size: int
    inode: int


def policy_files(places: Places, cwd: str, explicit: str | None) -> list[PolicyFile]:
    """Returns the layers that may have a policy, strictest owner first."""
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
    """Reads a policy file, one byte past the limit at most: the loader says what is too large."""
    # A pipe without a writer must not stop the loop.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is not a file")
        return file.read(MAX_BUNDLE_BYTES + 1)


def repository_policy(places: Places, cwd: str) -> str | None:
    """The nearest policy up to the repository's root, if this user or root owns it.

    Anyone may put a file into /tmp; a policy of somebody else's is not ours to obey. Below the
    user's home directory, outside of any repository, the user's own policy is not found again.
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
