"""How long calls took: counted by the millisecond, so that a million of them fit."""

from collections import Counter
from collections.abc import Mapping

_QUANTILES = (("p50", 50), ("p95", 95), ("p99", 99))


class Latencies:
    """Milliseconds, each with how often it came."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, latency_ms: int) -> None:
        self._counts[latency_ms] += 1

    def summary(self) -> dict[str, int]:
        """Count, quantiles by nearest rank, and the longest; only the count where there is none."""
        total = self._counts.total()
        if not total:
            return {"count": 0}
        found = {"count": total}
        for name, percent in _QUANTILES:
            found[name] = _at(self._counts, -(-total * percent // 100))
        return found | {"max": max(self._counts)}


def _at(counts: Mapping[int, int], rank: int) -> int:
    passed = 0
    for latency_ms in sorted(counts):
        passed += counts[latency_ms]
        if passed >= rank:
            break
    return latency_ms
