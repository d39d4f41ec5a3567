"""The store in memory keeps what contracts.counters promises; the body is shared with the others."""

import pytest
from tests.counters_suite import CountersSuite

from subluminal.policy.counters import MemoryCounters


class TestMemoryCounters(CountersSuite):
    @pytest.fixture
    def make_counters(self):
        return MemoryCounters
