"""Where the token of this process comes from: an argument, SUB_ATTESTATION, or a file that rotates.

The token is read only if a rule asks about agents, and leaves this process only for the helper
that verifies it.
"""

import time
from collections.abc import Mapping

from subluminal.config import env
from subluminal.config.private_files import read_bounded
from subluminal.core.policies.files import Stamp, stamp_of

_MAX_BYTES = 16_385
"""One byte more than the longest token: a longer one is refused, not cut."""
_RACY_NS = 50_000_000
"""A file younger than this may change again without a new time: file times have ticks of 10 ms."""


class TokenSource:
    """The token of one process. `token` is what was read last."""

    def __init__(self, environ: Mapping[str, str], given: str | None = None) -> None:
        """`given` goes before the environment."""
        text = given or environ.get(env.SUB_ATTESTATION.name, "")
        self._path = "" if text else environ.get(env.SUB_ATTESTATION_FILE.name, "")
        self._stamp: Stamp | None = None
        self.token = text.strip().encode("utf-8", "surrogateescape")[:_MAX_BYTES]
        self.problem = ""
        """why the file gives no token, or empty"""

    def __bool__(self) -> bool:
        return bool(self.token or self._path)

    def look(self) -> bool:
        """Reads the file again if it changed; returns whether the token changed."""
        if not self._path:
            return False
        stamp = stamp_of(self._path)
        if stamp is not None and stamp == self._stamp:
            return False
        is_racy = stamp is None or time.time_ns() - stamp.mtime_ns < _RACY_NS
        self._stamp = None if is_racy else stamp
        before = self.token, self.problem
        try:
            self.token = read_bounded(self._path, _MAX_BYTES).strip()
            self.problem = "" if self.token else "the token's file is empty"
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self.token, self.problem = b"", f"the token's file cannot be read: {reason}"
        return (self.token, self.problem) != before
