"""The event journal: every shim appends its events before it acts on them (journal-first).

`writing` is on the path of every call and imports nothing heavier than hashlib. Programs that
follow journals use `reading`, and those that prove them use `verifying`: import the module you
need. This package re-exports only what writers need.
"""

from subluminal.journal.files import JournalUnavailable
from subluminal.journal.writing import Journal

__all__ = ["Journal", "JournalUnavailable"]
