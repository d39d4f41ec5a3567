"""What may be shown of arguments and results: redacted first, then cut (Pack 1.10, unprintable-
secrets).
"""

from hashlib import sha256
from typing import TypeGuard

from subluminal.canonical import new_hash
from subluminal.contracts.limits import TRUNCATED
from subluminal.contracts.templates import encode_json
from subluminal.core.records.redaction.redactor import Redactor

_MAX_SENTENCE_BYTES = 1_024
"""An error's message in an event; an upstream may send a whole page."""

_DIGEST_OF_TRUNCATED = sha256(TRUNCATED.encode()).hexdigest().encode()


Preview = tuple[bytes, bytes]
"""A preview as it stands in an event: `truncated` and the members after it, each with the comma
before it; then the last member, the text, which may be dropped later (provable-ledger), or
nothing."""


class Previewer:
    """Makes previews under one setting. `record_mode` is config.settings' record.mode."""

    def __init__(
        self, redactor: Redactor, *, record_mode: str, max_bytes: int, full_bytes: int
    ) -> None:
        self._redactor = redactor
        self._off = record_mode == "off"
        self._max_bytes = full_bytes if record_mode == "full" else max_bytes

    def adopt(self, other: "Previewer") -> None:
        """Goes over to another one's settings, for all who hold this one."""
        self._redactor, self._off = other._redactor, other._off
        self._max_bytes = other._max_bytes

    @property
    def looked_at_bytes(self) -> int:
        """A text that is longer than this is previewed as if it ended here."""
        # One more than the redactor looks at tells that there was more.
        return 0 if self._off else self._max_bytes + self._redactor.hold_back_bytes + 1

    # Nearly all texts are clean. These two are in every call's way, so they make such a preview
    # themselves.

    def args(self, text: bytes | None, args_hash: bytes) -> Preview:
        """Previews canonical arguments; None where they were too large to inspect."""
        if not self._is_clean(text):
            return self._preview(text, b"args_preview", args_hash)
        return b'false,"hash":"%b"' % args_hash, b',"args_preview":' + encode_json(text.decode())

    def result(self, text: bytes | None) -> Preview:
        """Previews a result; None where it was too large to inspect."""
        if not self._is_clean(text):
            return self._preview(text, b"result_preview", None)
        digest = new_hash()
        digest.update(text)
        text_json = b',"result_preview":' + encode_json(text.decode())
        return b'false,"hash":"%b"' % digest.hexdigest().encode(), text_json

    def _is_clean(self, text: bytes | None) -> TypeGuard[bytes]:
        """Whether a text is short, ASCII and without a secret: nothing to decode, mask or cut."""
        return (
            text is not None
            and len(text) <= self._max_bytes
            and not self._off
            and text.isascii()
            and not self._redactor.screen(text)
        )

    def definition(self, text: bytes) -> str | None:
        """Masks a tool's definition; None where nothing is to be shown."""
        return None if self._off else self.safe(text.decode("utf-8", "replace"))

    def sentence(self, text: str) -> str:
        """Masks and cuts what others say of an error, which may be of any size."""
        return self._redactor.preview(text, _MAX_SENTENCE_BYTES).text

    def warm(self) -> None:
        """Compiles the patterns now, so that the first call need not wait for it."""
        self._redactor.warm()

    def safe(self, text: str) -> str:
        """Masks what goes into an event or an answer beside previews: names, sentences, hints."""
        if text.isascii() and not self._redactor.screen(text.encode()):
            return text  # as nearly all are
        return self._redactor.redact(text)[0]

    def _preview(self, text: bytes | None, member: bytes, text_hash: bytes | None) -> Preview:
        if text is None:
            text_json = b',"%b":"%b"' % (member, TRUNCATED.encode())
            return b'true,"hash":"%b"' % _DIGEST_OF_TRUNCATED, text_json
        if self._off:
            return b"false", b""
        # No more than the redactor looks at; half a character at the cut does not matter.
        bound = self._max_bytes + self._redactor.hold_back_bytes
        readable = text[:bound].decode("utf-8", "replace")
        shown = self._redactor.preview(readable, self._max_bytes)
        truncated = shown.truncated or len(text) > bound
        if shown.flags or truncated or text_hash is None:
            text_hash = sha256(shown.text.encode("utf-8", "replace")).hexdigest().encode()
        preview_json = b"true" if truncated else b"false"
        if shown.flags:
            preview_json += b',"redaction_flags":' + encode_json(list(shown.flags))
        text_json = b',"%b":%b' % (member, encode_json(shown.text))
        return b'%b,"hash":"%b"' % (preview_json, text_hash), text_json
