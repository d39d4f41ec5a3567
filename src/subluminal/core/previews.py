"""What may be shown of arguments and results: redacted first, then cut (Pack 1.10, D12)."""

from hashlib import sha256
from typing import NamedTuple, Protocol

from subluminal.contracts.limits import TRUNCATED
from subluminal.contracts.templates import encode_json

# A secret that the first cut tears is not recognised any more. No written form of one is longer
# than this (core.redaction.forms), so as much is dropped from the end of what was cut.
_TORN_CHARS = 8_192

_DIGEST_OF_TRUNCATED = sha256(TRUNCATED.encode()).hexdigest().encode()


class TextRedactor(Protocol):
    """Masks secrets; see core.redaction."""

    def redact(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Returns the masked text and the names of what was masked."""


class Preview(NamedTuple):
    """A preview as it stands in an event: members that each begin with a comma, or nothing."""

    truncated: bool
    members_json: bytes


class Previewer:
    """Makes previews under one setting. `record_mode` is config.settings' record.mode."""

    def __init__(
        self, redactor: TextRedactor, *, record_mode: str, max_bytes: int, full_bytes: int
    ) -> None:
        self._redact = redactor.redact
        self._off = record_mode == "off"
        self._max_bytes = full_bytes if record_mode == "full" else max_bytes

    def args(self, text: bytes | None) -> Preview:
        """Previews arguments; None where they were too large to inspect."""
        return self._preview(text, b"args_preview")

    def result(self, text: bytes | None) -> Preview:
        """Previews a result; None where it was too large to inspect."""
        return self._preview(text, b"result_preview")

    def safe(self, text: str) -> str:
        """Masks a sentence that goes into an event: error messages, summaries, hints."""
        return self._redact(text)[0]

    def _preview(self, text: bytes | None, member: bytes) -> Preview:
        if text is None:
            tail = b',"hash":"%b","%b":"%b"' % (_DIGEST_OF_TRUNCATED, member, TRUNCATED.encode())
            return Preview(True, tail)
        if self._off:
            return Preview(False, b"")
        head = text[: self._max_bytes + 2 * _TORN_CHARS]
        masked, flags = self._redact(head.decode("utf-8", "replace"))
        if len(text) > len(head):
            masked = masked[:-_TORN_CHARS]
        shown = masked.encode()
        truncated = len(shown) > self._max_bytes or len(text) > len(head)
        if truncated:
            masked = shown[: self._max_bytes].decode("utf-8", "ignore")
            shown = masked.encode()
        digest = sha256(shown).hexdigest().encode()
        flagged = b',"redaction_flags":' + encode_json(list(flags)) if flags else b""
        return Preview(
            truncated, b'%b,"hash":"%b","%b":%b' % (flagged, digest, member, encode_json(masked))
        )
