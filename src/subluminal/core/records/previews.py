"""Makes previews of arguments and results: redacted first, then cut (Pack 1.10)."""

from collections.abc import Callable
from hashlib import sha256

from subluminal.canonical import new_hash
from subluminal.contracts.limits import TRUNCATED
from subluminal.contracts.targets import PathTarget, Targets
from subluminal.contracts.templates import encode_json
from subluminal.core.records.redaction.redactor import Preview as RedactedText
from subluminal.core.records.redaction.redactor import Redactor

_MAX_SENTENCE_BYTES = 1_024
"""Size limit of an error message in an event: a server may send a whole page."""

_DIGEST_OF_TRUNCATED = sha256(TRUNCATED.encode()).hexdigest().encode()


Preview = tuple[bytes, bytes]
"""A preview as two pieces of an event's JSON.

First the value of `truncated` and the members after it. Then the last member, with its comma: the
text, which may be dropped later (provable-ledger), or nothing.
"""


class _MaskedTexts:
    """Masks texts, and remembers whether it changed any."""

    def __init__(self, safe: Callable[[str], str]) -> None:
        self._safe = safe
        self.changed = False

    def __call__(self, text: str) -> str:
        found = self._safe(text)
        self.changed = self.changed or found != text
        return found

    def words(self, words: list[str]) -> list[str]:
        """Masks a command. `--token` and its value are two words, so all are masked as one text."""
        text = " ".join(words)
        found = self(text)
        return words if found == text else found.split(" ", 1)


class Previewer:
    """Makes previews under one setting. `record_mode` is `record.mode` of the settings."""

    def __init__(
        self, redactor: Redactor, *, record_mode: str, max_bytes: int, full_bytes: int
    ) -> None:
        self._redactor = redactor
        self._off = record_mode == "off"
        self._is_full = record_mode == "full"
        self._max_bytes = full_bytes if self._is_full else max_bytes
        self.looked_at_bytes = self._looked_at_bytes()
        """the number of bytes of a text that a preview can depend on"""

    def adopt(self, other: "Previewer") -> None:
        """Takes over the settings of another previewer, for all who hold this one."""
        self._redactor, self._off = other._redactor, other._off
        self._is_full, self._max_bytes = other._is_full, other._max_bytes
        self.looked_at_bytes = other.looked_at_bytes

    @property
    def redactor(self) -> Redactor:
        """The redactor in force."""
        return self._redactor

    @property
    def is_off(self) -> bool:
        """Whether nothing of a call's contents is recorded."""
        return self._off

    @property
    def is_full(self) -> bool:
        """Whether contents are recorded as far as they are inspected."""
        return self._is_full

    @property
    def max_bytes(self) -> int:
        """Size limit of one preview."""
        return self._max_bytes

    def _looked_at_bytes(self) -> int:
        # One byte more than the redactor uses shows that the text was cut.
        return 0 if self._off else self._max_bytes + self._redactor.hold_back_bytes + 1

    # Nearly all texts are clean: short, ASCII and without a secret, so there is nothing to mask or
    # cut. Every call passes `args` and `result`, which make the preview of a clean text themselves.

    def args(self, text: bytes | None, args_hash: bytes) -> Preview:
        """Previews canonical arguments; `text` is None if they were too large to inspect."""
        if (
            text is None
            or len(text) > self._max_bytes
            or self._off
            or not text.isascii()
            or self._redactor.screen(text)
        ):
            return self._preview(text, b"args_preview", args_hash)
        return b'false,"hash":"%b"' % args_hash, b',"args_preview":' + encode_json(text.decode())

    def result(self, text: bytes | None) -> Preview:
        """Previews a result; `text` is None if it was too large to inspect."""
        if (
            text is None
            or len(text) > self._max_bytes
            or self._off
            or not text.isascii()
            or self._redactor.screen(text)
        ):
            return self._preview(text, b"result_preview", None)
        digest = new_hash()
        digest.update(text)
        text_json = b',"result_preview":' + encode_json(text.decode())
        return b'false,"hash":"%b"' % digest.hexdigest().encode(), text_json

    def definition(self, text: bytes) -> str | None:
        """Masks a tool's definition; None if previews are off."""
        return None if self._off else self.safe(text.decode("utf-8", "replace"))

    def sentence(self, text: str, max_bytes: int = _MAX_SENTENCE_BYTES) -> str:
        """Masks and cuts an error message of a server, which may be of any size."""
        return self._redactor.preview(text, max_bytes).text

    def text(self, text: str) -> RedactedText | None:
        """Masks and cuts a text of any size as a preview; None if previews are off."""
        return None if self._off else self._redactor.preview(text, self._max_bytes)

    def warm(self) -> None:
        """Compiles the patterns now, so that the first call need not wait for that."""
        self._redactor.warm()

    def safe(self, text: str) -> str:
        """Masks text of events and answers that is not a preview: names, sentences, hints."""
        if text.isascii() and not self._redactor.screen(text.encode()):
            return text  # nearly always
        return self._redactor.redact(text)[0]

    def targets(self, targets: Targets) -> Targets:
        """Masks a call's targets for the record. If previews are off, only `opaque` is kept."""
        if self._off:
            return Targets(opaque=targets.opaque, masked=True)
        masked = _MaskedTexts(self.safe)
        return Targets(
            commands=[masked.words(words) for words in targets.commands],
            paths=[PathTarget(masked(each.path), each.access) for each in targets.paths],
            hosts=[masked(host) for host in targets.hosts],
            opaque=targets.opaque,
            why=[masked(why) for why in targets.why],
            roots=[masked(root) for root in targets.roots],
            masked=masked.changed,
        )

    def _preview(self, text: bytes | None, member: bytes, text_hash: bytes | None) -> Preview:
        if text is None:
            text_json = b',"%b":"%b"' % (member, TRUNCATED.encode())
            return b'true,"hash":"%b"' % _DIGEST_OF_TRUNCATED, text_json
        if self._off:
            return b"false", b""
        # No more than the redactor uses. Half a character at the cut is not shown.
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
