"""Where a run is recorded when the user's home cannot be: a home of its own, gone afterwards.

A container may have no home, a user without a name, or a root file system that nobody can write.
What the user's home says is still obeyed, because a policy must not be lost with the write access.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from subluminal.config import env
from subluminal.config.places import Places, make_private_dir, places
from subluminal.errors import SubluminalError

_NAME = ".home"
_OBEYED = ("policy.yaml", "config.toml", "secrets")


class Home(NamedTuple):
    """A home that can be written, and what the agent's environment says of it."""

    places: Places
    environ: dict[str, str]
    is_passing: bool
    """whether it was made for this run alone"""

    def remove(self) -> None:
        """Takes a passing home away: its keys are nobody else's business."""
        if self.is_passing:
            import shutil

            shutil.rmtree(self.places.home, ignore_errors=True)


def find_home(environ: Mapping[str, str], artifact: str | None, *, is_streamed: bool) -> Home:
    """The user's home, else one inside the artifact, else one for as long as events are streamed.

    Raises SubluminalError where a run would leave no record anywhere.
    """
    where = places(environ)
    problem = _problem(where, environ)
    if problem is None:
        return Home(where, {}, False)
    if artifact is None and not is_streamed:
        raise SubluminalError(
            f"cannot use `{where.home}`: {problem}",
            hint="choose another with SUB_HOME, or record the run with --artifact",
        )
    try:
        root = _made(artifact)
        for name in _OBEYED:
            kept = os.path.join(where.home, name)
            if os.path.lexists(kept):
                os.symlink(kept, os.path.join(root, name))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(
            f"cannot use `{where.home}` ({problem}), nor another place: {reason}",
            hint="give an --artifact directory that can be written",
        ) from None
    import tempfile

    named = {env.SUB_HOME.name: root}
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        # Nothing but the artifact can be written; agents and shims need a place for large things.
        named["TMPDIR"] = make_private_dir(os.path.join(root, "tmp"))
    return Home(places({**environ, **named}), named, True)


def _problem(where: Places, environ: Mapping[str, str]) -> str | None:
    if not environ.get(env.SUB_HOME.name) and os.path.expanduser("~") == "~":
        return "this user has no home directory"
    try:
        for directory in (where.state, where.journal):
            make_private_dir(directory)
            if not os.access(directory, os.W_OK | os.X_OK):
                return f"`{directory}` cannot be written"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None


def _made(artifact: str | None) -> str:
    # Few runs ever need these.
    import shutil
    import tempfile

    if artifact is None:
        return tempfile.mkdtemp(prefix="subluminal-")
    root = os.path.join(artifact, _NAME)
    shutil.rmtree(root, ignore_errors=True)
    os.mkdir(root, 0o700)
    return root
