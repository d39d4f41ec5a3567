"""Identifiers that sort by time: UUID version 7 (Pack 0.3). Five lines instead of a dependency."""

import os
import time


def uuid7() -> str:
    """Returns a new UUIDv7: milliseconds in front, then randomness."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF000 << 64) | 0x7000 << 64  # version 7
    value = value & ~(0xC000 << 48) | 0x8000 << 48  # RFC 9562's variant
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
