"""Where the core gets the contents of a call from: the redactor in force, and a reader.

Light on purpose: the reader is loaded with the first call that needs it.
"""

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from subluminal.canonical import encode
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import DataClass
from subluminal.core.records.previews import Previewer
from subluminal.policy.contents import Texts
from subluminal.policy.evaluation import Call, Engine

if TYPE_CHECKING:
    from subluminal.core.contents.reading import ContentReader


class ContentSource:
    """Reads the contents of calls with the redactor in force."""

    def __init__(self, previewer: Previewer) -> None:
        self._previews = previewer
        self._reader: ContentReader | None = None

    def read(self, asked: Call, call: ToolCall, engine: Engine, args_text: bytes | None) -> Call:
        """Returns a call with its contents, if a rule for its tool asks for them. Needs no lock.

        `args_text` are the canonical arguments, if the caller has them.
        """
        wants_data, tests = engine.needs_data(asked), engine.text_tests(asked)
        if call.args is None or not (wants_data or tests):
            return asked
        text = encode(call.args) if args_text is None else args_text
        words = frozenset(word for test in tests for word in test.words)
        found = self._newest().read(text, wants_data=wants_data, words=words)
        said = None if call.given is None else call.given.user_input
        texts = Texts(call.args, said, found.absent if said is None else frozenset())
        for test in tests:
            texts.holds(test)  # long texts are searched here, and not under the run's lock
        return replace(asked, data=found.data, texts=texts)

    def _newest(self) -> "ContentReader":
        from subluminal.core.contents.reading import ContentReader

        if self._reader is None or self._reader.redactor is not self._previews.redactor:
            self._reader = ContentReader(self._previews.redactor)
        return self._reader


def data_in(args: dict[str, Any]) -> frozenset[DataClass]:
    """Returns the classes of data in arguments, by the shapes alone. For policy commands."""
    from subluminal.core.contents.reading import ContentReader
    from subluminal.core.records.redaction.redactor import Redactor

    found = ContentReader(Redactor()).read(encode(args), wants_data=True, words=frozenset())
    return found.data or frozenset()
