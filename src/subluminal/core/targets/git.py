"""Reads a git command: its settings, and what runs programs or writes files.

A subcommand that git does not have itself is an alias or a program of its own: it is not read.
"""

import os
from collections.abc import Callable, Iterator
from itertools import pairwise

from subluminal.core.targets.found import Directories, Found

_PLACES = frozenset(("-C", "--git-dir", "--work-tree"))
_SETTINGS = frozenset(("-c", "--config", "--config-env"))
_VALUED = _PLACES | frozenset(("-c", "--config-env", "--namespace", "--super-prefix"))
_GLOBAL = frozenset(
    (
        *("-p", "--paginate", "-P", "--no-pager", "--no-replace-objects", "--bare", "--version"),
        *("--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs"),
        *("--no-optional-locks", "--help", "-h", "-v", "--exec-path", "--html-path", "--man-path"),
        *("--no-lazy-fetch", "--no-advice"),
    )
)
_READ = _GLOBAL | _VALUED
_KEYS = (
    *("user.", "color.", "core.quotepath", "init.defaultbranch", "commit.gpgsign", "advice."),
    *("core.autocrlf", "http.version", "protocol.version", "safe.directory", "log.", "column."),
    *("pull.rebase", "pull.ff", "fetch.prune", "push.autosetupremote", "core.eol", "branch."),
)
"""Settings that may change: no other is known not to name a program."""
_RUNS = ("--upload-pack", "--receive-pack", "--exec", "--config-env", "--extcmd")
"""Options that name a program."""
_SUBCOMMANDS = frozenset(
    (
        *("add", "am", "annotate", "apply", "archive", "bisect", "blame", "branch", "bundle"),
        *("cat-file", "check-attr", "check-ignore", "check-mailmap", "check-ref-format"),
        *("checkout", "checkout-index", "cherry", "cherry-pick", "clean", "clone", "column"),
        *("commit", "commit-graph", "commit-tree", "config", "count-objects", "describe", "diff"),
        *("diff-files", "diff-index", "diff-tree", "fast-export", "fetch", "fmt-merge-msg"),
        *("for-each-ref", "format-patch", "fsck", "gc", "grep", "hash-object", "help", "init"),
        *(
            "interpret-trailers",
            "log",
            "ls-files",
            "ls-remote",
            "ls-tree",
            "lfs",
            "mailinfo",
            "merge",
        ),
        *("merge-base", "merge-file", "merge-tree", "mv", "name-rev", "notes", "patch-id"),
        *("prune", "pull", "push", "range-diff", "read-tree", "rebase", "reflog", "remote"),
        *("repack", "replace", "request-pull", "rerere", "reset", "restore", "rev-list"),
        *("rev-parse", "revert", "rm", "shortlog", "show", "show-branch", "show-ref"),
        *("sparse-checkout", "stage", "stash", "status", "stripspace", "submodule", "switch"),
        *("symbolic-ref", "tag", "update-index", "update-ref", "var", "verify-commit"),
        *("verify-tag", "version", "whatchanged", "worktree", "write-tree"),
    )
)
"""Subcommands that run no programs but those that options and settings name."""
_RUNNING = {
    subcommand: (*_RUNS, *options)
    for subcommand, options in {
        "rebase": ("-x",),
        "grep": ("-O", "--open-files-in-pager"),
        "clone": ("-u", "--template"),
        "init": ("--template",),
        "remote": ("--mirror",),
        "apply": ("--unsafe-paths",),
        "help": ("-w", "--web"),
    }.items()
}
"""Subcommand to the beginnings of options with which it runs programs, or writes elsewhere."""
_RUNNING_WORDS = {"bisect": ("run", "visualize", "view"), "submodule": ("foreach",)}
_CLONE_VALUED = frozenset(
    (
        *("-b", "--branch", "-o", "--origin", "--depth", "-j", "--jobs", "--filter", "--reference"),
        *("--shallow-since", "--shallow-exclude", "--server-option", "--reference-if-able", "-c"),
        *("--config", "--bundle-uri"),
    )
)
_WORKTREE_VALUED = frozenset(("-b", "-B", "--reason", "--orphan"))


_PUSH_LETTERS = frozenset("vqnfud46")


def read_git(argv: list[str], found: Found, directories: Directories) -> None:
    """Adds what a git command touches."""
    at = _subcommand(argv, found)
    options = argv[:at]
    if at > 1 or "clone" in argv:
        _settings(argv, at, found)
    for option, value in pairwise((*options, "")):
        name, has_value, given = option.partition("=")
        if name in _PLACES:
            found.path(given if has_value else value, "write", directories)
    if at < len(argv):
        _read(argv, at, found, _moved(options, directories))


def _read(argv: list[str], at: int, found: Found, directories: Directories) -> None:
    name, words = argv[at], argv[at + 1 :]
    plain = [argv[0], name, *(_apart(words) if name == "push" else words)]
    if plain != argv:
        # So that a rule about `git push -f` is also about `git -C x push -uf`.
        found.command(plain, " ".join(plain))
    if name not in _SUBCOMMANDS:
        found.opaque(f"`git {name}` may be an alias, or run other programs")
    for number, word in enumerate(words):
        if word.startswith("-"):
            _output(words[number : number + 2], name, found, directories)
            if _runs(name, word):
                found.opaque(f"this use of `git {name}` runs other commands")
        elif "ext::" in word or word in _RUNNING_WORDS.get(name, ()):
            found.opaque(f"this use of `git {name}` runs other commands")
    reader = _READERS.get(name)
    if reader is not None:
        reader(words, found, directories)


def _subcommand(argv: list[str], found: Found) -> int:
    """Returns the index of the subcommand: the first word behind git's own options."""
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        word = argv[at]
        name = word.partition("=")[0]
        if name not in _READ or (name == "--exec-path" and name != word):
            found.opaque("an option of git is not read")
        at += 2 if word in _VALUED else 1
    return at


def _settings(argv: list[str], at: int, found: Found) -> None:
    is_clone = argv[at : at + 1] == ["clone"]
    for number, word in enumerate(argv):
        # Behind other subcommands than clone, `-c` means something else.
        if number > at and not is_clone:
            return
        name, has_value, value = word.partition("=")
        if name in _SETTINGS:
            setting = value if has_value else "".join(argv[number + 1 : number + 2])
            if not setting.lower().startswith(_KEYS):
                found.opaque(f"`git -c {setting[:40]}` may run commands")


def _apart(words: list[str]) -> Iterator[str]:
    """Yields the words of a push; joined options are parted, `--delete` is `-d`."""
    for word in words:
        letters = word[1:]
        if word[:1] == "-" and len(letters) > 1 and _PUSH_LETTERS.issuperset(letters):
            yield from (f"-{letter}" for letter in letters)
        elif len(word) > 4 and "--delete".startswith(word):
            yield "-d"
        else:
            yield word


def _moved(options: list[str], directories: Directories) -> Directories:
    """Returns the directories that `-C` leads to."""
    for option, value in pairwise(options):
        if option == "-C" and value.startswith("/"):
            directories = (value,)
        elif option == "-C" and directories is not None:
            directories = tuple(f"{each}/{value}" for each in directories)
    return directories


def _runs(subcommand: str, word: str) -> bool:
    """Whether a word makes a subcommand run programs. A long option may be shortened."""
    beginnings = _RUNNING.get(subcommand, _RUNS)
    name = word.partition("=")[0]
    return (
        word.startswith(beginnings)
        or (subcommand == "rebase" and word[1:2] != "-" and "x" in word)
        or (len(name) > 4 and any(each.startswith(name) for each in beginnings))
    )


def _output(words: list[str], name: str, found: Found, directories: Directories) -> None:
    """Adds the file in which output is written, if the first of the words names one."""
    word, value = words[0], "".join(words[1:])
    option, has_value, given = word.partition("=")
    is_prefix = option == "--prefix" and name == "checkout-index"
    if is_prefix or option in ("--output", "--output-directory", "--separate-git-dir"):
        found.path(given if has_value else value, "write", directories)
    elif name in ("archive", "format-patch") and word.startswith("-o"):
        found.path(word[2:] or value, "write", directories)


def _operands(words: list[str], valued: frozenset[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in valued:
            next(rest, "")
        elif not word.startswith("-"):
            yield word


def _clone(words: list[str], found: Found, directories: Directories) -> None:
    operands = list(_operands(words, _CLONE_VALUED))
    for source in operands[:1]:
        name = os.path.basename(source.rstrip("/").removesuffix(".git")).rpartition(":")[2]
        for place in operands[1:2] or [name]:
            found.path(place, "write", directories)


def _init(words: list[str], found: Found, directories: Directories) -> None:
    for place in _operands(words, frozenset(("-b", "--initial-branch", "--object-format"))):
        found.path(place, "write", directories)


def _worktree(words: list[str], found: Found, directories: Directories) -> None:
    operands = list(_operands(words[1:], _WORKTREE_VALUED))
    if words[:1] == ["add"]:
        operands = operands[:1]
    for place in operands if words[:1] != ["list"] else ():
        found.path(place, "write", directories)


def _bundle(words: list[str], found: Found, directories: Directories) -> None:
    for place in [word for word in words[1:] if not word.startswith("-")][:1]:
        found.path(place, "write" if words[0] == "create" else "read", directories)


def _config(words: list[str], found: Found, directories: Directories) -> None:
    writes = False
    operands = list(_operands(words, frozenset(("-f", "--file", "--type", "--default"))))
    if operands[:1] in (["set"], ["unset"], ["rename-section"], ["remove-section"]):
        operands, writes = operands[1:], True
    elif operands[:1] in (["get"], ["list"]):
        return
    getting = any(word.startswith(("--get", "--list", "-l")) for word in words)
    writes = not getting and (writes or len(operands) > 1 or any("-e" in word for word in words))
    if not writes:
        return
    if not operands or not operands[0].lower().startswith(_KEYS):
        found.opaque(f"the setting `{''.join(operands[:1])[:40]}` may run commands")
    for word, value in pairwise((*words, "")):
        name, has_value, given = word.partition("=")
        if name in ("-f", "--file"):
            found.path(given if has_value else value, "write", directories)
    if "--global" in words:
        found.path(f"{found.home}/.gitconfig", "write", directories)
    if "--system" in words:
        found.path("/etc/gitconfig", "write", directories)


def _submodule(words: list[str], found: Found, directories: Directories) -> None:
    if words[:1] == ["add"]:
        valued = frozenset(("-b", "--branch", "--name", "--reference", "--depth"))
        for place in list(_operands(words[1:], valued))[1:2]:
            found.path(place, "write", directories)


_READERS: dict[str, Callable[[list[str], Found, Directories], None]] = {
    "clone": _clone,
    "init": _init,
    "worktree": _worktree,
    "bundle": _bundle,
    "config": _config,
    "submodule": _submodule,
}
"""Subcommands whose operands are paths, or settings."""
