"""`sub scan`: reports what is risky in clients' configurations and in what servers list."""

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from subluminal.cli.asking import agreed, is_at_terminal, need_person
from subluminal.cli.files import write_output
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.screens.scans import Paint, scan_lines, scan_summary
from subluminal.config.places import places, working_directory
from subluminal.counts import counted
from subluminal.errors import ExitCode, SubluminalError, UsageError
from subluminal.importer.clients.description import Client, Scene
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.document import EntryKind
from subluminal.importer.scan.definitions import Tool
from subluminal.importer.scan.rules import Level, Row, reaches
from subluminal.importer.scan.scanning import Configured, Definitions, rows_of
from subluminal.operator.scanning import client_of, gather, read_manifests, recorded_definitions
from subluminal.visible import json_shown

if TYPE_CHECKING:
    from subluminal.operator.listing import Command

EXAMPLE = """sub scan
sub scan claude --fail-on high
sub scan --path .mcp.json --format sarif -o scan.sarif
sub scan --manifest server.json
sub scan cursor --start"""


def add_arguments(parser: Parser) -> None:
    names = list(CLIENTS)
    parser.add_argument(
        "clients",
        nargs="*",
        type=_client,
        metavar="CLIENT",
        help=f"{', '.join(names[:-1])} or {names[-1]}; default: every client found",
    )
    parser.add_argument("--path", metavar="FILE", help="only this configuration")
    parser.add_argument(
        "--manifest",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="manifests of servers; without CLIENT or --path, nothing else is scanned",
    )
    parser.add_argument(
        "--start",
        action="store_true",
        help="start each stdio server, list its tools and end it; asks first, calls nothing",
    )
    parser.add_argument("--yes", action="store_true", help="with --start: start without asking")
    parser.add_argument(
        "--fail-on",
        choices=[level.value for level in Level],
        metavar="LEVEL",
        help="exit 1 at a finding of this level or worse, or if a file could not be scanned: "
        "critical, high, medium, low, info",
    )
    parser.add_argument(
        "--format",
        choices=["text", "json", "sarif"],
        default="text",
        help="default text; json prints one JSON object per server",
    )
    parser.add_argument(
        "--json", action="store_const", const="json", dest="format", help="same as --format json"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the report to a file")


def _client(name: str) -> Client:
    if name not in CLIENTS:
        raise argparse.ArgumentTypeError(f"`{name}` is not a client; choose {', '.join(CLIENTS)}")
    return CLIENTS[name]


def run(args: Args, out: Output) -> int:
    if args.yes and not args.start:
        raise UsageError("`--yes` needs `--start`")
    where = places(os.environ)
    scene = Scene(os.environ, working_directory())
    if args.start:
        need_person("sub scan --start", where)
    manifests = read_manifests(args.manifest)
    clients = _clients(args, scene)
    gathered = gather(scene, where, clients, args.path)
    for problem in gathered.problems:
        out.warning(f"not scanned: {problem}", problem.hint)
    recorded = recorded_definitions(where) if clients else None
    if recorded is not None and recorded.note:
        out.warning(recorded.note)
    definitions: Definitions = recorded.definitions if recorded is not None else {}
    entries = gathered.entries
    if args.start:
        entries = _started(entries, scene, args, out)
    everything = bool(clients) and not args.clients and args.path is None
    rows = rows_of(
        entries, manifests, definitions, bare=gathered.bare, with_unconfigured=everything
    )
    _print(rows, gathered.problems, scene, args, out)
    if args.format == "text":
        _say_what_next(rows, entries, definitions, out)
    failed = args.fail_on is not None and (
        bool(gathered.problems) or reaches(rows, Level(args.fail_on))
    )
    return ExitCode.NO if failed else ExitCode.OK


def _clients(args: Args, scene: Scene) -> list[Client]:
    if args.path is not None:
        if len(args.clients) > 1:
            raise UsageError("`--path` is one file, of one client")
        return args.clients or [client_of(args.path, scene)]
    if args.manifest and not args.clients:
        return []
    return args.clients or list(CLIENTS.values())


def _print(
    rows: Sequence[Row],
    problems: Sequence[SubluminalError],
    scene: Scene,
    args: Args,
    out: Output,
) -> None:
    paint = out.paint if args.output is None else lambda text, _colour: text
    lines = list(_report(rows, problems, scene, args, paint))
    if args.output is None:
        for line in lines:
            out.line(line)
    else:
        write_output(args.output, (f"{line}\n".encode() for line in lines), 0o666)


def _report(
    rows: Sequence[Row],
    problems: Sequence[SubluminalError],
    scene: Scene,
    args: Args,
    paint: Paint,
) -> Iterator[str]:
    if args.format == "text":
        yield from scan_lines(rows, scene.user_home, paint)
    elif args.format == "json":
        for row in rows:
            yield json_shown(msgspec.json.encode(row.as_dict()).decode())
    else:
        from subluminal.operator.scan_sarif import scan_as_sarif

        log = scan_as_sarif(rows, problems, scene.project_folders()[-1])
        yield json_shown(msgspec.json.format(msgspec.json.encode(log), indent=2).decode())


def _started(
    entries: Sequence[Configured], scene: Scene, args: Args, out: Output
) -> list[Configured]:
    """Starts the stdio servers one after another, if a person agrees, and lists their tools.

    Equal commands are started once.
    """
    from subluminal.operator.listing import command_of, list_tools

    commands: dict[int, Command] = {}
    for at, each in enumerate(entries):
        if each.entry.kind is EntryKind.REMOTE:
            out.talk(f"`{shown(each.entry.server)}` is reached by URL, so it is not started")
        try:
            if each.starts:
                commands[at] = command_of(each.client, each.entry, scene.environ)
        except SubluminalError as problem:
            out.warning(f"`{each.entry.server}` cannot be started: {problem}")
    programs = {_identity(command): command for command in commands.values()}
    if programs and not (args.yes or _agreed(list(programs.values()), out)):
        raise SubluminalError("nothing was started")
    listed: dict[str, list[Tool]] = {}
    for identity, command in programs.items():
        out.progress(f"starting {shown(command.server)} …")
        try:
            listed[identity] = list_tools(command, scene.cwd)
        except SubluminalError as problem:
            out.progress()
            out.warning(f"`{command.server}` listed no tools: {problem}")
    out.progress()
    return [
        each._replace(listed=listed.get(_identity(commands[at]))) if at in commands else each
        for at, each in enumerate(entries)
    ]


def _identity(command: "Command") -> str:
    return repr((command.words, sorted(command.environ.items())))


def _agreed(commands: "Sequence[Command]", out: Output) -> bool:
    from subluminal.core.records.redaction.redactor import Redactor

    if not is_at_terminal():
        raise SubluminalError(
            "`sub scan --start` starts programs, and there is no terminal to ask at",
            hint="read the entries first, then use `--yes`",
        )
    redactor = Redactor()
    for each in commands:
        line = redactor.redact(" ".join(each.words))[0]
        out.talk(f"  {shown(each.server)}: {shown(line)}")
        if each.withheld:
            out.talk(f"    without {', '.join(map(shown, each.withheld))}")
    return agreed(f"start {counted(len(commands), 'program')}? They run with your rights.")


def _say_what_next(
    rows: Sequence[Row],
    entries: Sequence[Configured],
    definitions: Definitions,
    out: Output,
) -> None:
    if not rows:
        out.talk("No MCP servers are configured here.")
        return
    out.talk(scan_summary(rows))
    unlisted = {each.recorded_name for each in entries if each.listed is None}
    unlisted -= definitions.keys()
    if unlisted:
        told = counted(len(unlisted), "server")
        out.talk(f"The tools of {told} are not on record: `--start` lists them.")
    if any(row.findings for row in rows):
        out.talk("Each rule is explained in docs/reference/scan-rules.md.")
