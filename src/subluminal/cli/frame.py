"""The frame around every command: finds it, parses its arguments, turns errors into exit codes.

It uses argparse and no CLI framework, which would triple the start-up time (docs/adr/0002).
"""

import argparse
import importlib
import os
import sys
from types import ModuleType
from typing import Any, NoReturn

from subluminal.cli.output import Output, terminal_width
from subluminal.cli.table import COMMANDS, Command, Group
from subluminal.config.places import home_problem, places
from subluminal.errors import ExitCode, InvalidInput, SubluminalError, UsageError

_MAX_SENTENCE_CHARS = 4_096
"""Longer than any name in a policy, and short enough to be sent with each refusal."""


def run_command(words: list[str]) -> int:
    """Runs `sub WORDS…` and returns its exit code. The user never sees a traceback."""
    out = Output()
    try:
        code = _dispatch(words, out)
        sys.stdout.flush()
        return code
    except InvalidInput as error:
        for problem in error.problems:
            out.error(str(problem), problem.hint)
        return error.exit_code
    except SubluminalError as error:
        out.error(str(error), error.hint)
        return error.exit_code
    except BrokenPipeError:
        # The reader of stdout has gone. Without this, Python would fail again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except KeyboardInterrupt:
        return 128 + 2
    except Exception as bug:  # noqa: BLE001 - one of the three edges (style rule 15)
        from subluminal.config.bug_report import write_bug_report

        path = write_bug_report(bug, words)
        out.error(
            f"a bug in sub: {type(bug).__name__}",
            f"please report it and attach `{path}`" if path else "run it again with SUB_DEBUG=1",
        )
        return ExitCode.BUG


def _dispatch(words: list[str], out: Output) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        return _print_overview(out)
    if words[0] in ("-V", "--version"):
        words = ["version", *words[1:]]
    found, rest, path = find(words)
    if isinstance(found, Group):
        if rest and rest[0] not in ("-h", "--help"):
            raise _unknown(rest[0], list(found.commands), f"sub {path}")
        return _print_group(found, path, out)
    module = importlib.import_module(found.module)
    parser = parser_of(module, found, path)
    args = parser.read(rest)
    if found.needs_home:
        _need_home()
    result: int = module.run(args, out)
    return result


def _need_home() -> None:
    problem = home_problem(places(os.environ))
    if problem is not None:
        raise SubluminalError(problem[0], hint=problem[1])


def find(words: list[str]) -> tuple[Command | Group, list[str], str]:
    """Splits words into the command they name, its arguments, and its full name."""
    entry = COMMANDS.get(words[0])
    if entry is None:
        visible = [name for name, command in COMMANDS.items() if not _hidden(command)]
        raise _unknown(words[0], visible, "sub")
    if isinstance(entry, Group) and len(words) > 1 and words[1] in entry.commands:
        return entry.commands[words[1]], words[2:], f"{words[0]} {words[1]}"
    return entry, words[1:], words[0]


def parser_of(module: ModuleType, command: Command, path: str) -> "Parser":
    """Builds the parser of one command."""
    parser = Parser(
        prog=f"sub {path}",
        description=_sentence(command.summary),
        epilog="example:\n" + "\n".join(f"  {line}" for line in module.EXAMPLE.splitlines()),
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Is given its width: argparse would load `shutil` for it, even if no help is printed."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_width() - 2)


class Parser(argparse.ArgumentParser):
    """argparse with our error style: one sentence and a hint, exit code 2."""

    terms: str | None = None
    """the argument that takes words from before, between and after the options"""

    def read(self, words: list[str]) -> "Args":
        """Parses a command line. argparse alone takes `terms` from one place only."""
        if self.terms is None:
            return self.parse_args(words)
        end = words.index("--") if "--" in words else len(words)
        args, more = self.parse_known_args(words[:end])
        unknown = [word for word in more if word.startswith("-")]
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        getattr(args, self.terms).extend([*more, *words[end + 1 :]])
        return args

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=self._hint(message))

    def option_strings(self) -> list[str]:
        """Returns every option of this command."""
        return [name for action in self._actions for name in action.option_strings]

    def _hint(self, message: str) -> str:
        prefix = "unrecognized arguments: "
        if message.startswith(prefix):
            from subluminal.contracts.shape import did_you_mean

            word = message.removeprefix(prefix).split()[0].partition("=")[0]
            close = did_you_mean(word, [*self.option_strings(), *[""] * 13])
            if close:
                return close
        return f"see `{self.prog} --help`"


def sentence(text: str) -> str:
    """The argparse type of text that goes into records and refusals."""
    if len(text) > _MAX_SENTENCE_CHARS:
        raise argparse.ArgumentTypeError(f"write at most {_MAX_SENTENCE_CHARS} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("the text is not UTF-8") from None
    return text


def positive(text: str) -> int:
    """The argparse type of a count that is at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of at least 1")
    return int(text)


def _unknown(word: str, known: list[str], prog: str) -> UsageError:
    from subluminal.contracts.shape import did_you_mean

    hint = did_you_mean(word, known)
    return UsageError(f"unknown command `{word}`", hint=hint or f"see `{prog} --help`")


def _hidden(entry: Command | Group) -> bool:
    return isinstance(entry, Command) and entry.hidden


def _print_overview(out: Output) -> int:
    out.line("Subluminal decides, records and proves every tool call of your agents.\n")
    out.line("usage: sub COMMAND …\n")
    for name, entry in COMMANDS.items():
        if not _hidden(entry):
            out.line(f"  {name:<12} {entry.summary}")
    out.line("\nSee `sub COMMAND --help` for details and an example.")
    return ExitCode.OK


def _print_group(group: Group, path: str, out: Output) -> int:
    out.line(f"usage: sub {path} COMMAND …\n\n{_sentence(group.summary)}\n")
    for name, command in group.commands.items():
        out.line(f"  {name:<12} {command.summary}")
    out.line(f"\nSee `sub {path} COMMAND --help` for details and an example.")
    return ExitCode.OK


def _sentence(summary: str) -> str:
    return f"{summary[:1].upper()}{summary[1:]}."


Args = Any
"""A parsed command line. argparse's Namespace has no types."""
