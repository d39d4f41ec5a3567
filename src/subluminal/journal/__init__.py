"""The write-ahead event journal (journal-first): every shim appends its events before it acts on them.

`writing` is on the hot path and imports nothing heavier than hashlib. Followers use `reading`.
Import the module you need; this package re-exports only what the hot path writes with.
"""

from subluminal.journal.files import JournalUnavailable
from subluminal.journal.writing import Journal

__all__ = ["Journal", "JournalUnavailable"]
