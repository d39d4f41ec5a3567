"""The bug reports of one process: one for each place in the code, a few at most."""

from subluminal.config.places import Places

_MAX_REPORTS = 16
"""Most bug reports that one process writes."""


class BugReports:
    """Writes the reports of one process."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._seen: set[tuple[str, int]] = set()

    def write(self, bug: Exception) -> str | None:
        """Writes a report and returns its path; None if the bug is known or the disk is full."""
        where = _raised_at(bug)
        if where in self._seen or len(self._seen) >= _MAX_REPORTS:
            return None
        self._seen.add(where)
        # Loaded only when there is a bug: formatting tracebacks takes a megabyte.
        from subluminal.config.bug_report import write_bug_report

        return write_bug_report(bug, ["shim"], self._places)


def _raised_at(bug: Exception) -> tuple[str, int]:
    trace = bug.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace else ("", 0)
