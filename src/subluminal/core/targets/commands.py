"""Reads one command of a line: opens wrappers and shells, and knows builtins and interpreters."""

import os
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import pairwise

from subluminal.core.targets import programs
from subluminal.core.targets.found import MAX_DEPTH, MAX_GLOBS, Directories, Found
from subluminal.core.targets.git import read_git
from subluminal.core.targets.globs import resolve_globs
from subluminal.core.targets.operands import operand_targets
from subluminal.core.targets.options import end_of_options
from subluminal.core.targets.patches import files_of
from subluminal.core.targets.words import Word

Nested = Callable[[str, Directories, int], Directories]
"""Reads a line inside of a line: (text, directories, depth) to the directories after it."""
Moved = tuple[Directories, Directories]
"""The directories after success and after failure."""

_ASSIGNMENT = re.compile(r"([^=]*)=(.*)", re.DOTALL)
_VERSION = re.compile(r"[0-9.]+$")
_FED = ("/dev/", "/proc/")
_AWK_ACTS = re.compile(r"system|getline|[|>]|@|printf?\s.*>|close|ENVIRON\[")
_SED_FLAG = re.compile(
    r"-(?:[nErsuz]*|[nEr]*i[^ /]{0,8}|l)"
    r"|--(?:quiet|silent|in-place(?:=\S*)?|regexp-extended|null-data|separate|posix|version|help)"
)
_SED_PLAIN = re.compile(
    r"\s*(?:(?:[0-9]+|\$|/[^/]*/)(?:,(?:[0-9]+|\$|/[^/]*/|\+[0-9]+))?!?\s*)?"
    r"(?:[pdDNnGgHhxlq=]|s(?P<d>[/|#,:@!])(?:\\.|(?!(?P=d))[^\\])*(?P=d)(?:\\.|(?!(?P=d))[^\\])*(?P=d)[gpIi0-9]*"
    r"|)\s*",
    re.DOTALL,
)


class Commands:
    """Reads the commands of one line into the targets of its call."""

    def __init__(self, found: Found, nested: Nested) -> None:
        self._found = found
        self._nested = nested

    def simple(self, words: list[Word], directories: Directories, depth: int) -> Moved:
        """Reads a command from its words."""
        name = words[0]
        if not name.known or name.globs or len(name.texts) != 1:
            told = name.texts[0] if name.texts else ""
            self._found.opaque(f"`{told}` in the place of a program is not known")
            return None, None
        argv: list[str] = []
        known = True
        for word in words:
            texts: tuple[str, ...] | None = word.texts
            if word.globs:
                self._found.globs += 1
                is_late = self._found.changes or self._found.globs > MAX_GLOBS
                is_hidden = is_late or not self._found.looks
                texts = None if is_hidden else resolve_globs(word, directories)
            if texts is None or not word.known:
                known = False
                texts = word.texts
                self._found.unread.update(texts)
            argv += texts
        if not known and not _may_be_unknown(argv[0].rpartition("/")[2], words):
            self._found.opaque(f"the arguments of `{argv[0]}` are not known")
        return self.argv(argv, directories, depth)

    def argv(self, argv: list[str], directories: Directories, depth: int) -> Moved:
        """Reads a command whose words are known."""
        found, same = self._found, (directories, directories)
        program = argv[0]
        if not program or program in programs.RESERVED or depth > MAX_DEPTH:
            found.opaque(f"`{program}` in the place of a program is not read")
            return None, None
        text = " ".join(argv)
        found.command(argv, text)
        name = program
        if "/" in program:
            name = program.rpartition("/")[2]
            found.path(program, "read", directories)
        if name not in programs.LOOKING:
            found.changes = True
        if name in programs.UNREADABLE:
            found.opaque(f"`{name}` is not read: {programs.UNREADABLE[name]}")
            return (None, None) if name in ("eval", ".", "source", "pushd", "popd") else same
        if name == "cd":
            return self._cd(argv, directories)
        if name in programs.WRAPPERS:
            return self._wrapper(name, argv, directories, depth)
        if name in programs.SHELLS:
            self._shell(argv, directories, depth)
            return same
        self._others(name, argv, text, directories, depth)
        return same

    def _others(
        self, name: str, argv: list[str], text: str, directories: Directories, depth: int
    ) -> None:
        reader = _READERS.get(name)
        if reader is not None:
            reader(self, argv, directories, depth)
        elif name not in programs.OPERANDS:
            plain = _VERSION.sub("", name).lower()
            if plain in programs.INTERPRETERS:
                self._interpreter(plain, argv, directories)
        opaque = programs.OPAQUE_SUBCOMMANDS.get(name)
        if opaque is not None:
            given = set(argv)
            for wanted in opaque:
                if wanted <= given:
                    self._found.opaque(f"this use of `{name}` runs other commands")
        runs = programs.RUNNING_OPTIONS.get(name)
        if runs is not None and any(_begins(word, runs) for word in argv[1:]):
            self._found.opaque(f"an option of `{name}` runs commands")
        operand_targets(name, argv, text, self._found, directories)

    def _runner(self, argv: list[str], directories: Directories, depth: int) -> None:
        subcommand = programs.RUNNERS[os.path.basename(argv[0])]
        if argv[1:2] == [subcommand]:
            self._inner(argv, 2, directories, depth)
        elif subcommand in argv and argv[1].startswith("-"):
            self._found.opaque(f"an option of `{argv[0]}` is not read")

    def _assigning(self, argv: list[str], _directories: Directories, _depth: int) -> None:
        if argv[0] != "printf":
            self.declare([Word((word,)) for word in argv[1:]])
        elif argv[1:2] and argv[1].startswith("-v"):
            self.declare([Word((argv[1][2:] or "".join(argv[2:3]),))])

    def _set(self, argv: list[str], _directories: Directories, _depth: int) -> None:
        if not programs.SET_OPTIONS.issuperset(argv[1:]):
            self._found.opaque("`set` changes how the line is read")

    def _let(self, _argv: list[str], _directories: Directories, _depth: int) -> None:
        self._found.opaque("arithmetic may run commands")

    def _test(self, argv: list[str], _directories: Directories, _depth: int) -> None:
        if not {"-v", "-R"}.isdisjoint(argv):
            self._found.opaque("a test of a variable may run commands")

    # Variables

    def check_name(self, name: str) -> None:
        """Notes an assignment to a variable that changes what the line means."""
        if any(fnmatchcase(name, each) for each in programs.STEERING):
            self._found.opaque(f"`{name}` changes which programs run, or how lines are read")

    def assign(self, name: str, value: Word | None, directories: Directories, depth: int) -> None:
        """Reads `NAME=value`."""
        self.check_name(name.partition("[")[0])
        if name in programs.OPTION_VARIABLES and not _is_plain_options(value):
            self._found.opaque(f"options in `{name}` may run commands")
        if name not in programs.COMMAND_VARIABLES:
            return
        if value is None or not value.known or value.globs or len(value.texts) > 1:
            self._found.opaque(f"`{name}` names a command that is not known")
        elif value.texts and value.texts[0]:
            self._nested(value.texts[0], directories, depth)

    def declare(self, words: list[Word]) -> None:
        """Reads the arguments of a builtin that sets variables."""
        for word in words:
            text = word.texts[0] if word.texts else ""
            if (
                not word.known
                or "[" in text
                or re.fullmatch(r"[-+][A-Za-z]*[inFfC][A-Za-z]*", text)
            ):
                self._found.opaque("a declaration is not read")
            self.check_name(text.partition("=")[0])

    # Directories

    def _cd(self, argv: list[str], directories: Directories) -> Moved:
        operands = [word for word in argv[1:] if word not in ("-L", "-P", "--", "-e")]
        if len(operands) > 1 or (operands and operands[0].startswith("-")):
            return None, directories
        to = operands[0] if operands else self._found.home
        if to.startswith("/"):
            return (os.path.normpath(to),), directories
        is_named = self._found.looks and to.partition("/")[0] not in (".", "..")
        searched = is_named and "CDPATH" in os.environ
        if directories is None or searched or not to or to in self._found.unread:
            return None, directories
        return tuple(os.path.normpath(f"{each}/{to}") for each in directories), directories

    # Commands in commands

    def _inner(self, argv: list[str], at: int, directories: Directories, depth: int) -> None:
        if at >= len(argv):
            return
        if argv[at].startswith("-"):
            self._found.opaque(f"an option of `{argv[0]}` is not read")
        else:
            self.argv(argv[at:], directories, depth + 1)

    def _wrapper(self, name: str, argv: list[str], directories: Directories, depth: int) -> Moved:
        found, same = self._found, (directories, directories)
        wrapper = programs.WRAPPERS[name]
        if name == "command" and len(argv) > 1 and argv[1] in ("-v", "-V"):
            return same
        at = end_of_options(argv, wrapper.options, numbers=name == "nice")
        if at is None:
            found.opaque(f"an option of `{name}` is not read")
            return same
        if name == "env" and argv[at : at + 1] == ["-"]:
            at += 1
        at += wrapper.skips
        while wrapper.assigns and at < len(argv):
            assigned = _ASSIGNMENT.fullmatch(argv[at])
            if assigned is None:
                break
            self.assign(assigned[1], Word((assigned[2],)), directories, depth)
            at += 1
        if at >= len(argv):
            if name in ("sudo", "doas"):
                found.opaque(f"`{name}` without a command")
            return same
        if name == "xargs":
            self._xargs(argv, at, directories)
        moved = self.argv(argv[at:], directories, depth + 1)
        return moved if wrapper.in_shell else same

    def _xargs(self, argv: list[str], at: int, directories: Directories) -> None:
        if os.path.basename(argv[at]) not in programs.HARMLESS:
            self._found.opaque(f"the arguments that xargs gives `{argv[at]}` are not known")
        for option, value in pairwise(argv):
            if option in ("-a", "--arg-file"):
                self._found.path(value, "read", directories)

    def _shell(self, argv: list[str], directories: Directories, depth: int) -> None:
        """Reads `sh -c TEXT` and `sh SCRIPT`."""
        at, is_text = 1, False
        while at < len(argv) and argv[at][:1] in ("-", "+") and len(argv[at]) > 1:
            option = argv[at]
            at += 1
            if option in ("--login", "--norc", "--noprofile", "--posix"):
                continue
            if option == "--":
                break
            letters = option[1:]
            if letters == "o" and argv[at : at + 1] and argv[at] in programs.SET_OPTIONS:
                at += 1
                continue
            if option[0] == "-" and "c" in letters:
                is_text = True
                letters = letters.replace("c", "")
            if any(letter not in programs.SHELL_FLAGS for letter in letters):
                self._found.opaque(f"an option of `{argv[0]}` is not read")
                return
        if at >= len(argv):
            self._found.opaque(f"`{argv[0]}` reads commands from its input")
        elif is_text:
            self._nested(argv[at], directories, depth)
        else:
            self._script(argv[0], argv[at], directories)

    def _script(self, program: str, script: str, directories: Directories) -> None:
        if script == "-" or script.startswith(_FED):
            self._found.opaque(f"`{program}` reads code from its input")
        else:
            self._found.path(script, "read", directories)

    def _interpreter(self, name: str, argv: list[str], directories: Directories) -> None:
        """Reads `python SCRIPT`; code on the command line or from the input is opaque."""
        interpreter = programs.INTERPRETERS[name]
        at = end_of_options(argv, interpreter.options)
        if at is None:
            first = next(word for word in argv[1:] if word.startswith("-"))
            module = f"-{interpreter.module}"
            tail = [word for word in argv[1:] if not programs.PRINTING.issuperset((word,))]
            if interpreter.module and _module_at(argv, interpreter.options, module):
                if not programs.CODE_MODULES.isdisjoint(argv):
                    self._found.opaque(f"a module that `{argv[0]}` runs takes code")
                return
            self._found.opaque(f"`{argv[0]} {first if tail else ''}` may run code")
        elif at >= len(argv):
            if programs.PRINTING.isdisjoint(argv):
                self._found.opaque(f"`{argv[0]}` reads code from its input")
        elif argv[at] not in interpreter.words:
            if name == "deno" and argv[at] in ("eval", "repl"):
                self._found.opaque(f"`deno {argv[at]}` runs code")
            elif name == "deno" and argv[at] == "run":
                return
            else:
                self._script(argv[0], argv[at], directories)

    def _find(self, argv: list[str], directories: Directories, depth: int) -> None:
        starts = _find_starts(argv)
        writes = "-delete" in argv
        for number, word in enumerate(argv):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                rest = argv[number + 1 :]
                end = _end_of_exec(rest)
                if not rest[:end]:
                    self._found.opaque("`find -exec` without a command")
                    continue
                program = os.path.basename(rest[0])
                operands = programs.OPERANDS.get(program)
                writes = writes or (operands is not None and operands.access == "write")
                writes = writes or (
                    operands is not None and any(each in rest[:end] for each in operands.in_place)
                )
                if any(start.startswith("-") for start in starts) or program in programs.SHELLS:
                    self._found.opaque("the arguments that find gives are not known")
                if word.endswith("dir"):
                    self._found.opaque(f"`{word}` runs in other directories")
                self.argv(rest[:end], directories, depth + 1)
            elif word in ("-fprint", "-fprintf", "-fls", "-fprint0"):
                for path in argv[number + 1 : number + 2]:
                    self._found.path(path, "write", directories)
            elif word == "-files0-from":
                self._found.opaque("the directories that find looks into are not known")
        for start in starts or ["."]:
            self._found.path(start, "write" if writes else "read", directories)

    # Programs whose arguments may be code

    def _patch(self, argv: list[str], directories: Directories, _depth: int) -> None:
        files = files_of(argv[1]) if len(argv) == 2 else None
        if files is None:
            self._found.opaque("the patch is not in the arguments")
        for each in files or ():
            self._found.path(each, "write", directories)

    def _awk(self, argv: list[str], _directories: Directories, _depth: int) -> None:
        at = end_of_options(argv, programs.Options("", "Fv", ("--posix",), ("--field-separator",)))
        if at is None:
            if "-f" not in argv and "--file" not in argv:
                self._found.opaque("an option of awk is not read")
        elif at < len(argv) and _AWK_ACTS.search(argv[at]):
            self._found.opaque("the awk program may run commands or write files")

    def _sed(self, argv: list[str], _directories: Directories, _depth: int) -> None:
        scripts = _sed_scripts(argv)
        if scripts is None:
            self._found.opaque("an option of sed is not read")
            return
        for script in scripts:
            if not all(map(_SED_PLAIN.fullmatch, _sed_commands(script))):
                self._found.opaque("the sed script may run commands or write files")

    def _git(self, argv: list[str], directories: Directories, _depth: int) -> None:
        read_git(argv, self._found, directories)


def _begins(word: str, runs: tuple[str, ...]) -> bool:
    """Whether a word begins like one of `runs`; a long option may be shortened."""
    option = word.partition("=")[0]
    is_short = option.startswith("--") and len(option) > 3
    return word.startswith(runs) or (is_short and any(each.startswith(option) for each in runs))


def _is_plain_options(value: Word | None) -> bool:
    texts = ("",) if value is None else value.texts
    is_known = value is not None and value.known
    return is_known and all(re.fullmatch(programs.PLAIN_OPTIONS, text) for text in texts)


def _may_be_unknown(name: str, words: list[Word]) -> bool:
    """Whether it does not matter what the unknown words of a command are.

    `printf` and `test` have an option that evaluates a name, so an option must not be unknown.
    """
    if name == "printf":
        return len(words) > 1 and words[1].known
    if name == "test":
        first = words[1:3] if len(words) > 3 else words[1:2]
        is_quoted = all(word.known or word.texts[0].startswith('"') for word in words)
        return is_quoted and (len(words) == 2 or (len(words) <= 4 and first[-1].known))
    return name in programs.HARMLESS


def _module_at(argv: list[str], options: programs.Options, module: str) -> bool:
    """Whether only known options stand before `-m MODULE`."""
    letter = module[1:]
    for number, word in enumerate(argv[1:], start=1):
        if word.startswith("-") and not word.startswith("--") and word.endswith(letter):
            before = [*argv[:number], *([f"-{word[1:-1]}"] if len(word) > 2 else [])]
            return end_of_options([*before, "x"], options) == len(before)
        if word.startswith("-") and word.endswith("c"):
            return False
    return False


def _end_of_exec(words: list[str]) -> int:
    """Returns where the command of `find -exec` ends: at `;`, or at `+` behind `{}`."""
    for number, word in enumerate(words):
        if word == ";" or (word == "+" and words[number - 1 : number] == ["{}"]):
            return number
    return len(words)


def _find_starts(argv: list[str]) -> list[str]:
    at = 1
    while at < len(argv) and argv[at] in ("-L", "-P", "-H"):
        at += 1
    starts: list[str] = []
    for word in argv[at:]:
        if word.startswith(("-", "(", "!", ",")):
            break
        starts.append(word)
    return starts


def _sed_scripts(argv: list[str]) -> list[str] | None:
    scripts: list[str] = []
    words = iter(argv[1:])
    rest: list[str] = []
    from_file = False
    for word in words:
        if word in ("-e", "--expression"):
            scripts.append(next(words, ""))
        elif word in ("-f", "--file"):
            next(words, "")
            from_file = True
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif _SED_FLAG.fullmatch(word):
            continue
        elif word.startswith("-") and len(word) > 1:
            return None
        else:
            rest.append(word)
    if from_file:
        return None
    return scripts or rest[:1]


def _sed_commands(script: str) -> list[str]:
    """Splits a script at `;` and line ends, but not inside of `s/…;…/…/`."""
    if _SED_PLAIN.fullmatch(script):
        return [script]
    return re.split(r"[;\n]", script)


_READERS: dict[str, Callable[[Commands, list[str], Directories, int], None]] = {
    **dict.fromkeys(programs.RUNNERS, Commands._runner),
    **dict.fromkeys((*programs.ASSIGNING, "printf"), Commands._assigning),
    **dict.fromkeys(("test", "["), Commands._test),
    **dict.fromkeys(("apply_patch", "applypatch"), Commands._patch),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), Commands._awk),
    "set": Commands._set,
    "let": Commands._let,
    "find": Commands._find,
    "sed": Commands._sed,
    "git": Commands._git,
}
"""Commands that are read in a way of their own."""
