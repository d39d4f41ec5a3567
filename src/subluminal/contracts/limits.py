"""Bounds that both sides of the wire rely on, each with its reason (Pack 1.10)."""

MAX_INSPECT_BYTES = 1_048_576
"""Largest message that is inspected, in bytes. A larger one is forwarded whole, with its arguments
unread (Pack 1.10)."""

MAX_PREVIEW_BYTES = 16_384
"""Largest preview, in bytes of UTF-8 (Pack 1.10)."""

TRUNCATED = "[TRUNCATED]"
"""Text of a preview that was not taken because the message was too large (Pack 1.10)."""

REDACTED = "[REDACTED:"
"""Beginning of the mark that replaces masked text; a name and `]` follow."""

MAX_BUNDLE_BYTES = 4_194_304
"""Largest policy file, in bytes. A larger one is a mistake or an attack, and is refused."""

MAX_POLICY_EVENT_BYTES = 1_048_576
"""Largest compiled policy that a policy_loaded event contains, in bytes. Of a larger one the event
has only the name and hash."""

MAX_BUNDLE_DEPTH = 32
"""Deepest nesting of a policy file, in levels. The deepest valid bundle needs 7."""

MAX_RULES = 10_000
"""Most rules of one bundle."""

MAX_AMOUNT = 10**12
"""Largest count or duration of a rule: 31 years in milliseconds. In micro-tokens it still fits in
64 bits."""

MAX_PATTERN_CHARS = 1_024
"""Longest glob or regex, in characters."""

MAX_NAME_BYTES = 256
"""Longest server or tool name that is matched, in bytes of UTF-8. A longer one is an evaluation
error. MCP recommends at most 128 characters for the name of a tool."""

MAX_CALL_COST = 20_000
"""Most that one call may cost under one bundle, in units of about a microsecond. A bundle that can
cost more is not compiled."""

MAX_TARGETS_BYTES = 8_192
"""Most text of all targets of one call, in bytes. A call with more is opaque: patterns are matched
against this text, so it bounds the cost of a decision."""

MAX_WINDOW_ENTRIES = 64
"""Entries up to which a window counts exactly. Above, it counts in buckets."""

MAX_RECENT_KEYS = 4_096
"""Dedupe and repeat keys that a run remembers. Beyond, the least recently used is forgotten."""

MAX_COUNTERS = 8_192
"""Budgets, token buckets and windows of one run. Beyond, a new one is an evaluation error."""

MAX_SEQUENCE_CALLS = 64
"""Longest pattern of a `sequence` rule, in calls: its state fits in one cell."""

MAX_TEXTS = 256
"""Most texts in one list of `match.text`. Each is searched in all arguments of a call."""
