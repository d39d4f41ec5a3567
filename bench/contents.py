"""What rules about contents cost: `text` and `data_any` together, over one redaction pass.

Both tasks get the same canonical arguments. One is the pass of the redactor that every recorded
call pays for. The other reads what a rule with five texts and a rule about data ask, as the
enforcer does, and decides both. Arguments are texts, rows and numbers, as nearly all calls without
a hit; a hit makes one exact search necessary, which has a bar of its own.
"""

from collections.abc import Iterator
from typing import Any

from bench.harness import Result
from bench.redaction import fastest
from subluminal.canonical import encode
from subluminal.core.contents.reading import ContentReader
from subluminal.core.records.redaction.redactor import Redactor
from subluminal.policy.contents import DataTest, Texts, TextTest

BAR = 1.5
HIT_BAR = 2.0
_WORDS = ("the quick brown fox returns every order", "of the customer to its value")
_TEXT = TextTest(
    {
        "any_of": ["rm -rf", "drop table", "password reset", "ignore previous"],
        "none_of": ["approved by"],
        "regex": None,
    }
)
_DATA = DataTest(["PII", "PCI", "SECRET"], favours=False)


def _prose(size: int) -> str:
    return " ".join(_WORDS[each % 2] for each in range(size // 8))[:size]


def _arguments() -> dict[str, dict[str, Any]]:
    rows = [{"id": n, "name": _WORDS[n % 2][:8], "sum": n * 1.5, "ok": True} for n in range(1_000)]
    return {
        "a text of 64 KiB": {"path": "/a", "content": _prose(65_536)},
        "a text of 1 KiB": {"path": "/a", "content": _prose(1_024)},
        "1,000 rows": {"rows": rows},
        "10,000 numbers": {"numbers": [n * 7 for n in range(10_000)]},
        "a text of 64 KiB, one hit": {"content": _prose(65_536) + " drop table"},
    }


def measure() -> Iterator[Result]:
    """Yields the cost of both matchers over that of one redaction pass."""
    redactor = Redactor()
    reader = ContentReader(redactor)
    words = frozenset(_TEXT.words)
    for what, args in _arguments().items():
        text = encode(args)

        def redact(text: bytes = text) -> object:
            return redactor.redact_bytes(text)

        def read(text: bytes = text, args: dict[str, Any] = args) -> object:
            found = reader.read(text, wants_data=True, words=words)
            return _DATA(found.data), Texts(args, None, found.absent).holds(_TEXT)

        bar = HIT_BAR if what.endswith("hit") else BAR
        once, both = fastest(redact, 2), fastest(read, 2)
        yield Result(f"text and data_any over redaction, {what}", both / once, bar, False)
