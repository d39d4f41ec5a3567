"""The time of redaction, for 300-byte arguments and full previews, with and without a hit.

The bars are times, so each ratio is the time divided by its bar. The redactor searches for five
secrets in all their shapes.
"""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial

from bench.harness import Result
from subluminal.contracts.limits import MAX_PREVIEW_BYTES
from subluminal.core.records.redaction.redactor import Redactor
from subluminal.secrets.value import SecretValue

ARGUMENT_BAR_US = 25.0
PREVIEW_BAR_US = 150.0

SECRETS = [SecretValue(f"secret_{n}", f"Zk3Qp7Lm2+v9Rt5/n8Yc4Hd6Fj1Gs{n:06}=") for n in range(5)]


def _text(size: int, note: str = 'a "quoted"\nline') -> str:
    """Returns rows as JSON within JSON, as MCP servers do; the middle row has the note."""
    count = size // 100
    rows = [
        {"id": n, "name": f"user {n}", "mail": f"u{n}@example.com", "note": "a line"}
        for n in range(count + 1)
    ]
    rows[count // 2]["note"] = note
    return json.dumps({"rows": json.dumps(rows)})[:size]


def fastest(task: Callable[[], object], number: int, rounds: int = 300) -> float:
    """Returns the time of the fastest round, in microseconds: the bar is for the code alone.

    A round is shorter than a scheduler's slice, so that some rounds are undisturbed even on a busy
    machine.
    """
    task()
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(number):
            task()
        best = min(best, (time.perf_counter() - begun) / number)
    return best * 1e6


def measure() -> Iterator[Result]:
    """Yields the time divided by its bar, for each case."""
    redactor = Redactor(SECRETS)
    for what, size, bar_us, number in (
        ("300 B argument", 300, ARGUMENT_BAR_US, 20),
        ("16 KiB preview", MAX_PREVIEW_BYTES, PREVIEW_BAR_US, 5),
    ):
        clean, dirty = _text(size), _text(size, f"it is {SECRETS[3].reveal()}")
        for case, text, names in (("no hit", clean, ()), ("one hit", dirty, ("secret_3",))):
            assert redactor.preview(text, MAX_PREVIEW_BYTES).flags == names
            us = fastest(partial(redactor.preview, text, MAX_PREVIEW_BYTES), number)
            detail = f"{us:.1f} us, bar {bar_us:g} us"
            yield Result(f"redact {what}, {case}: cost/bar", us / bar_us, 1.0, False, detail)
