"""Bounds that both sides of the wire rely on, each with its reason (Pack 1.10, shared-runs-byte-transparent)."""

MAX_INSPECT_BYTES = 1_048_576
"""A message above this is forwarded whole but not inspected (Pack 1.10)."""

MAX_PREVIEW_BYTES = 16_384
"""UTF-8 bytes of one preview string (Pack 1.10)."""

TRUNCATED = "[TRUNCATED]"
"""Stands for a preview that was not taken (Pack 1.10)."""

REDACTED = "[REDACTED:"
"""How the mark begins that stands for what was masked; its name and a bracket follow."""

MAX_BUNDLE_BYTES = 4_194_304
"""A policy file above this is refused: it would be a mistake or an attack, not a policy."""

MAX_POLICY_EVENT_BYTES = 1_048_576
"""A compiled policy above this is named in its policy_loaded event, but not in it."""

MAX_BUNDLE_DEPTH = 32
"""Nesting of a policy file. The deepest valid bundle needs 7."""

MAX_RULES = 10_000
"""Rules in one bundle."""

MAX_PATTERN_CHARS = 1_024
"""Characters of one glob or regex."""

MAX_NAME_CHARS = 1_024
"""Server and tool names are matched up to here; a longer name is an evaluation error (linear-patterns)."""

MAX_WINDOW_ENTRIES = 64
"""Windows are exact up to this many entries and bucketed above (shared-runs)."""

MAX_RECENT_KEYS = 4_096
"""Dedupe and repeat keys remembered per run; the least recently used goes first (shared-runs)."""

MAX_COUNTERS = 8_192
"""Budgets, buckets and windows kept per run; past it a new one is an evaluation error (shared-runs)."""
