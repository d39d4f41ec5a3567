"""Makes the rows of a scan from configurations, manifests and definitions that are given to it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from subluminal.importer.clients.description import Client
from subluminal.importer.document import Document, Entry, EntryKind
from subluminal.importer.expected import says_off
from subluminal.importer.scan.definitions import Tool, definition_findings
from subluminal.importer.scan.entries import EntryScan, Surroundings
from subluminal.importer.scan.launching import program_of
from subluminal.importer.scan.lines import Lines
from subluminal.importer.scan.manifest import Manifest, manifest_findings
from subluminal.importer.scan.naming import Offer, compare
from subluminal.importer.scan.rules import Finding, Level, Row, severity
from subluminal.importer.wrapper import recognise

Definitions = Mapping[str, Sequence[Tool]]
"""The tools of servers, by the name that their shims have."""


class Configured(NamedTuple):
    """One entry, and what was found in it."""

    client: Client
    path: str
    entry: Entry
    line: int
    transport: str | None
    program: str
    starts: bool
    """whether the client starts a program for it"""
    findings: list[Finding]
    listed: Sequence[Tool] | None = None
    """its tools, if it was started for this scan; else what is on record counts"""

    @property
    def recorded_name(self) -> str:
        """The name under which a shim records the server."""
        found = recognise(self.entry.argv)
        return found.wrapper.server if found else self.entry.server


def scan_document(
    document: Document, around: Callable[[Entry], Surroundings]
) -> Iterator[Configured]:
    """Yields what the rules find in each entry of a configuration."""
    lines = Lines(document.text)
    for entry in document.entries:
        scan = EntryScan(document, entry, lines, around(entry))
        stdio = entry.kind is EntryKind.STDIO
        program = program_of(scan.words) if stdio else ""
        yield Configured(
            document.client,
            document.path,
            entry,
            scan.line,
            scan.transport,
            program,
            stdio and not says_off(document.client, entry),
            list(scan.findings()),
        )


def rows_of(
    entries: Sequence[Configured],
    manifests: Sequence[Manifest],
    definitions: Definitions,
    *,
    bare: Sequence[Row] = (),
    with_unconfigured: bool,
) -> list[Row]:
    """Returns the rows, worst first, with those of files without servers.

    `with_unconfigured` adds servers that have definitions and are in no configuration.
    """
    judged = {name: list(definition_findings(tools)) for name, tools in definitions.items()}
    compared = {
        client: compare(_offers([e for e in entries if e.client.name == client], definitions))
        for client in dict.fromkeys(each.client.name for each in entries)
    }
    rows = [_configured_row(each, judged, compared[each.client.name]) for each in entries]
    rows += [*bare, *_manifest_rows(manifests)]
    if with_unconfigured:
        known = {each.recorded_name for each in entries}
        rows += [
            Row(name, None, None, None, None, _sorted(found))
            for name, found in judged.items()
            if name not in known
        ]
    return sorted(rows, key=_order)


def _offers(entries: Sequence[Configured], definitions: Definitions) -> list[Offer]:
    """Returns what each server of a client lists, each server once."""
    found = {
        each.recorded_name: Offer(each.recorded_name, tools, each.program)
        for each in entries
        if (tools := _tools_of(each, definitions)) is not None
    }
    return list(found.values())


def _tools_of(each: Configured, definitions: Definitions) -> Sequence[Tool] | None:
    return definitions.get(each.recorded_name) if each.listed is None else each.listed


def _configured_row(
    each: Configured, judged: Mapping[str, list[Finding]], compared: Mapping[str, list[Finding]]
) -> Row:
    name = each.recorded_name
    own = judged.get(name, ()) if each.listed is None else definition_findings(each.listed)
    listed = [*own, *compared.get(name, ())]
    # A definition has no line of its own in the file: the entry's is where to act.
    findings = [*each.findings, *(found._replace(line=each.line) for found in listed)]
    return Row(
        each.entry.server,
        each.client.name,
        each.path,
        each.line,
        each.transport,
        _sorted(findings),
    )


def _manifest_rows(manifests: Sequence[Manifest]) -> list[Row]:
    compared = compare([Offer(each.name, each.tools) for each in manifests])
    return [
        Row(
            each.name,
            None,
            each.path,
            each.line,
            None,
            _sorted(
                [
                    *manifest_findings(each),
                    *definition_findings(each.tools),
                    *compared.get(each.name, ()),
                ]
            ),
        )
        for each in manifests
    ]


def _sorted(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda each: (severity(each.level), each.line or 0)))


def _order(row: Row) -> tuple[int, int, str, str]:
    worst = min((severity(each.level) for each in row.findings), default=len(Level))
    return worst, -row.risk_score, row.file or "", row.server_name
