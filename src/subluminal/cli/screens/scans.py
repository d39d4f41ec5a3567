"""What `sub scan` prints for people: every server, worst first, one line for each finding."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from subluminal.cli.output import shown
from subluminal.counts import counted
from subluminal.importer.scan.rules import Finding, Level, Recommendation, Row, severity

_COLOURS = {
    Level.CRITICAL: "red",
    Level.HIGH: "red",
    Level.MEDIUM: "yellow",
    Level.LOW: "cyan",
    Level.INFO: "dim",
}
_ADVICE = {
    Recommendation.BLOCK: "red",
    Recommendation.REVIEW: "yellow",
    Recommendation.ALLOW: "green",
}
_SHARED_BY = 3
"""A finding that so many servers share is printed once."""
_NAMES_SHOWN = 8

Paint = Callable[[str, str], str]
_Key = tuple[str, str, str, str]


def scan_lines(rows: Sequence[Row], user_home: str, paint: Paint) -> Iterator[str]:
    """Yields the lines of a report."""
    owners = _shared(rows)
    quiet: list[Row] = []
    for row in rows:
        own = [each for each in row.findings if _key(each) not in owners]
        if own:
            yield _heading(row, user_home, paint)
            yield from _findings(row, own, user_home, paint)
            yield ""
        else:
            quiet.append(row)
    for row in quiet:
        yield _heading(row, user_home, paint)
    if quiet and owners:
        yield ""
    if owners:
        yield paint("several servers", "bold")
        for finding, names in sorted(owners.values(), key=lambda each: severity(each[0].level)):
            yield f"  {_word(finding, paint)}  {shown(finding.message)}"
            yield f"            {counted(len(names), 'server')}: {_listed(names)}"
            if finding.hint:
                yield f"            {paint(shown(finding.hint), 'dim')}"
        yield ""


def scan_summary(rows: Sequence[Row]) -> str:
    """Returns one line that counts servers and findings."""
    levels = Counter(each.level for row in rows for each in row.findings)
    told = ", ".join(f"{levels[level]} {level.value}" for level in Level if levels[level])
    return f"{counted(len(rows), 'server')}: {told or 'nothing found'}"


def _key(finding: Finding) -> _Key:
    return finding.rule.value, finding.level.value, finding.message, finding.hint


def _shared(rows: Sequence[Row]) -> dict[_Key, tuple[Finding, list[str]]]:
    """Returns the findings that several servers have in the same words."""
    found: dict[_Key, tuple[Finding, list[str]]] = {}
    for row in rows:
        for each in row.findings:
            found.setdefault(_key(each), (each, []))[1].append(shown(row.server_name))
    return {key: value for key, value in found.items() if len(value[1]) >= _SHARED_BY}


def _listed(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - _NAMES_SHOWN} more" if len(unique) > _NAMES_SHOWN else ""
    return ", ".join(unique[:_NAMES_SHOWN]) + more


def _heading(row: Row, user_home: str, paint: Paint) -> str:
    advice = paint(row.recommendation.value, _ADVICE[row.recommendation])
    known = [row.client or "", row.transport or "", _place(row.file, row.line, user_home)]
    about = "  ".join(each for each in known if each) or "in the ledger only"
    name = shown(row.server_name) or "(a file without servers)"
    return f"{paint(name, 'bold')}  {about}  risk {row.risk_score}, {advice}"


def _findings(row: Row, findings: Sequence[Finding], user_home: str, paint: Paint) -> Iterator[str]:
    hinted = ""
    for each in findings:
        place = _place(row.file, each.line, user_home)
        yield f"  {_word(each, paint)}  {f'{place}  ' if place else ''}{shown(each.message)}"
        if each.hint and each.hint != hinted:
            yield f"            {paint(shown(each.hint), 'dim')}"
        hinted = each.hint


def _word(finding: Finding, paint: Paint) -> str:
    return f"{paint(f'{finding.level.value:<8}', _COLOURS[finding.level])}  {finding.rule.value}"


def _place(file: str | None, line: int | None, user_home: str) -> str:
    if file is None:
        return ""
    inside = user_home != os.sep and file.startswith(user_home + os.sep)
    name = shown(f"~{file[len(user_home) :]}" if inside else file)
    return f"{name}:{line}" if line else name
