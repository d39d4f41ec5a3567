"""The home that a run is recorded in: the user's, or a temporary one if that cannot be written.

A container may have no home, a user without a name, or a read-only root file system. Policy,
settings and secrets of the user's home still apply: lost write access must not lose a policy.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from subluminal.config import env
from subluminal.config.places import Places, make_private_dir, places
from subluminal.errors import SubluminalError

_NAME = ".home"
_LINKED = ("policy.yaml", "config.toml", "secrets")


class Home(NamedTuple):
    """A home that can be written."""

    places: Places
    environ: dict[str, str]
    """variables that the agent needs to find it"""
    is_temporary: bool
    """whether it was made for this run alone"""

    def remove(self) -> None:
        """Deletes a temporary home: it holds keys."""
        if self.is_temporary:
            import shutil

            shutil.rmtree(self.places.home, ignore_errors=True)


def find_home(environ: Mapping[str, str], artifact: str | None, *, is_streamed: bool) -> Home:
    """Returns the user's home, else one inside the artifact, else one in a temporary directory.

    Raises SubluminalError if the run would leave no record anywhere.
    """
    where = places(environ)
    problem = _problem(where, environ)
    if problem is None:
        return Home(where, {}, False)
    if artifact is None and not is_streamed:
        raise SubluminalError(
            f"cannot use `{where.home}`: {problem}",
            hint="choose another home with SUB_HOME, or record the run with --artifact",
        )
    try:
        root = _made(artifact)
        for name in _LINKED:
            kept = os.path.join(where.home, name)
            if os.path.lexists(kept):
                os.symlink(kept, os.path.join(root, name))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(
            f"cannot use `{where.home}` ({problem}) or a temporary home: {reason}",
            hint="name a writable directory with --artifact",
        ) from None
    import tempfile

    named = {env.SUB_HOME.name: root}
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        # Only the artifact can be written, and agents and shims need a place for large files.
        named["TMPDIR"] = make_private_dir(os.path.join(root, "tmp"))
    return Home(places({**environ, **named}), named, True)


def _problem(where: Places, environ: Mapping[str, str]) -> str | None:
    if not environ.get(env.SUB_HOME.name) and os.path.expanduser("~") == "~":
        return "this user has no home directory"
    try:
        for directory in (where.state, where.journal):
            make_private_dir(directory)
            if not os.access(directory, os.W_OK | os.X_OK):
                return f"`{directory}` is not writable"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None


def _made(artifact: str | None) -> str:
    import shutil
    import tempfile

    if artifact is None:
        return tempfile.mkdtemp(prefix="subluminal-")
    root = os.path.join(artifact, _NAME)
    shutil.rmtree(root, ignore_errors=True)
    os.mkdir(root, 0o700)
    return root
