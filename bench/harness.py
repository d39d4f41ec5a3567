"""Measures tasks in turns and compares their medians.

Absolute times differ from machine to machine; ratios from one interleaved run hardly do. A
benchmark is a module `bench/NAME.py` with `measure() -> Iterator[Result]`.
"""

import gc
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Result(NamedTuple):
    """A ratio and its bar. `at_least` is True if a larger ratio is better."""

    name: str
    ratio: float
    bar: float
    at_least: bool
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.ratio >= self.bar if self.at_least else self.ratio <= self.bar

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        word = "ok  " if self.ok else "FAIL"
        return (
            f"{word} {self.name:<44} {self.ratio:6.2f}x  (bar {sign} {self.bar:g}x)  {self.detail}"
        )

    def as_json(self) -> str:
        """Returns the result as one line of JSON."""
        return json.dumps({**self._asdict(), "ratio": round(self.ratio, 3), "ok": self.ok})


def interleaved(
    tasks: Sequence[Callable[[], object]], *, rounds: int, number: int = 1
) -> list[float]:
    """Returns the median time of each task in seconds. In every round, each runs `number` times."""
    for task in tasks:
        task()  # not measured: the first run fills caches and imports modules
    times: list[list[float]] = [[] for _ in tasks]
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for task, seconds in zip(tasks, times, strict=True):
                begun = time.perf_counter()
                for _ in range(number):
                    task()
                seconds.append((time.perf_counter() - begun) / number)
    finally:
        gc.enable()
    return [statistics.median(seconds) for seconds in times]


def command(*words: str) -> Callable[[], object]:
    """Returns a task that runs a process to its end."""

    def run() -> object:
        return subprocess.run(words, stdout=subprocess.DEVNULL, check=True)

    return run
