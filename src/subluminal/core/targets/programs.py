"""What well-known programs do with their arguments: the data of the shell reader.

A program that is in no table here is an ordinary command: its words are known, and what it does is
not (`docs/concepts/targets.md` says so). An option that a table does not name is taken as one
without a value, so its value counts as an operand: a target too many, never one too few.
"""

from typing import NamedTuple

RESERVED = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "do",
        "done",
        "case",
        "esac",
        "while",
        "until",
        "for",
        "select",
        "function",
        "{",
        "}",
        "!",
        "[[",
        "]]",
        "in",
    ]
)
"""Words that begin or end a compound command. In the place of a program they mean a misreading."""

UNREADABLE = {
    **dict.fromkeys(("eval",), "it runs text as commands"),
    **dict.fromkeys((".", "source"), "the file runs in this shell"),
    **dict.fromkeys(("alias", "unalias", "hash", "enable"), "it changes what a name runs"),
    "trap": "it runs text as commands later",
    **dict.fromkeys(("shopt", "setopt", "unsetopt", "emulate"), "it changes how lines are read"),
    **dict.fromkeys(
        ("coproc", "bind", "fc", "history", "complete", "compgen", "repeat", "foreach", "autoload"),
        "a shell feature that is not read",
    ),
    **dict.fromkeys(
        ("noglob", "nocorrect", "-", "zmodload", "functions", "zcompile"), "it belongs to zsh"
    ),
    **dict.fromkeys(("pushd", "popd", "dirs"), "the directory stack is not followed"),
    **dict.fromkeys(
        (
            *("su", "runuser", "pkexec", "sg", "watch", "parallel", "flock", "script", "strace"),
            *("ltrace", "gdb", "unshare", "nsenter", "chroot", "systemd-run", "busybox", "toybox"),
            *("at", "batch", "expect", "screen", "tmux", "taskset", "chrt", "setarch", "unbuffer"),
            *("osascript", "rlwrap", "entr", "start-stop-daemon", "fish", "pwsh", "powershell"),
            *("hub", "fakeroot", "dbus-run-session", "xvfb-run", "firejail", "bwrap", "cgexec"),
            *("numactl", "proot", "prlimit", "capsh", "setpriv", "ssh-agent", "dtach", "daemonize"),
            *(
                "chronic",
                "ifne",
                "sem",
                "hyperfine",
                "perf",
                "valgrind",
                "rr",
                "run-parts",
                "socat",
            ),
            *("ld.so", "nix-shell", "direnv", "nix", "newgrp"),
        ),
        "it runs other commands, which are not read",
    ),
}
"""Commands that are not read any further, with the reason."""

HARMLESS = frozenset(
    ("echo", "printf", "test", "[", "true", "false", ":", "exit", "return", "break", "continue")
) | frozenset(("shift", "sleep", "pwd"))
"""Commands whose arguments touch nothing, so that they need not be known; but see `Commands.simple`
for `printf` and `test`."""

ASSIGNING = frozenset(
    ("read", "mapfile", "readarray", "getopts", "unset", "export", "declare", "typeset", "local")
)
"""Builtins that set variables named by their arguments."""

STEERING = (
    *("PATH", "LD_*", "DYLD_*", "GLIBC_TUNABLES", "GCONV_PATH", "BASH*", "ENV", "IFS", "SHELLOPTS"),
    *("GLOBIGNORE", "CDPATH", "HOME", "PWD", "OLDPWD", "ZDOTDIR", "PS4", "PROMPT_COMMAND"),
    *("POSIXLY_CORRECT", "FPATH", "GIT_EXEC_PATH", "GIT_CONFIG*", "GIT_PROXY_COMMAND"),
    *("RANDOM", "SECONDS", "LINENO", "HISTCMD", "SRANDOM", "OPTIND", "EPOCH*"),
    *("GIT_ASKPASS", "SSH_ASKPASS", "GIT_DIR", "GIT_WORK_TREE", "FUNCNEST"),
)
"""Variables that change which program a name runs, or how the shell reads a line; and numbers of
bash, whose new value is evaluated."""

COMMAND_VARIABLES = frozenset(
    (
        *("PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR"),
        *("GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "BROWSER"),
    )
)
"""Variables whose value is a command line that a program runs."""

SET_OPTIONS = frozenset(
    (
        *("-e", "-u", "-x", "-eu", "-ex", "-ux", "-eux", "-euo", "-exo", "-eo", "-uo", "-euxo"),
        *("-o", "+e", "+u", "+x", "pipefail", "errexit", "nounset", "xtrace", "+o", "-v", "+v"),
    )
)
"""Arguments of `set` that do not change what a line means."""


class Options(NamedTuple):
    """The options of a program that stand before its operands."""

    flags: str = ""
    """letters without a value"""
    valued: str = ""
    """letters with a value"""
    long: tuple[str, ...] = ()
    """long options without a value, or with one behind `=`"""
    long_valued: tuple[str, ...] = ()
    """long options whose value may be the next word"""


class Wrapper(NamedTuple):
    """A program that runs the command in its arguments."""

    options: Options = Options()
    skips: int = 0
    """number of operands before the command"""
    assigns: bool = False
    """whether `NAME=VALUE` may stand before the command"""
    in_shell: bool = False
    """whether the command runs in this shell, so that `cd` counts"""


WRAPPERS: dict[str, Wrapper] = {
    "sudo": Wrapper(
        Options(
            "AbEHnPSkN",
            "ugpCrtTU",
            ("--non-interactive", "--preserve-env", "--set-home", "--stdin", "--background"),
            ("--user", "--group", "--prompt"),
        ),
        assigns=True,
    ),
    "doas": Wrapper(Options("nL", "u")),
    "env": Wrapper(
        Options("i0v", "u", ("--ignore-environment", "--null", "--debug"), ("--unset",)),
        assigns=True,
    ),
    "timeout": Wrapper(
        Options(
            "vfp",
            "ks",
            ("--foreground", "--preserve-status", "--verbose"),
            ("--kill-after", "--signal"),
        ),
        skips=1,
    ),
    "nohup": Wrapper(),
    "setsid": Wrapper(Options("cfw", "", ("--wait", "--fork", "--ctty"))),
    "nice": Wrapper(Options("", "n", (), ("--adjustment",))),
    "ionice": Wrapper(Options("t", "cn")),
    "stdbuf": Wrapper(Options("", "ioe", (), ("--input", "--output", "--error"))),
    "time": Wrapper(Options("p"), in_shell=True),
    "command": Wrapper(Options("p"), in_shell=True),
    "builtin": Wrapper(in_shell=True),
    "exec": Wrapper(Options("cl", "a"), in_shell=True),
    "caffeinate": Wrapper(Options("disum", "t")),
    "xargs": Wrapper(
        Options(
            "0rtxpo",
            "nPLsIdEa",
            ("--null", "--no-run-if-empty", "--verbose", "--exit"),
            ("--max-args", "--max-procs", "--max-lines", "--replace", "--delimiter", "--arg-file"),
        )
    ),
}
"""Programs that are opened: the command in their arguments is a command too."""

RUNNERS = {
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "dotenv"), "run"),
    **dict.fromkeys(("bundle", "pnpm", "yarn"), "exec"),
}
"""Programs whose subcommand runs the command behind it."""

SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash"])
SHELL_FLAGS = "abefhklmnptuvxBCEHPT"
"""Options of shells that may stand beside `-c`, or before a script."""


class Interpreter(NamedTuple):
    """A program that runs a script. Every option that is not named here may be code."""

    options: Options
    module: str = ""
    """option behind which a module or script of the project is named, not code"""
    words: tuple[str, ...] = ()
    """subcommands that run no code from the command line"""


_NODE = Options(
    "",
    "rC",
    (
        *("--test", "--watch", "--check", "--version", "--help", "--no-warnings", "--inspect"),
        *("--enable-source-maps", "--experimental-strip-types", "--max-old-space-size"),
        *(
            "--test-reporter",
            "--test-name-pattern",
            "--trace-warnings",
            "--expose-gc",
            "--env-file",
        ),
        *("--experimental-vm-modules", "--test-only", "--inspect-brk", "--trace-deprecation"),
    ),
    ("--require",),
)
INTERPRETERS: dict[str, Interpreter] = {
    "python": Interpreter(
        Options("BbdEIOPqsSuvVx?h", "WX", ("--version", "--help", "--check-hash-based-pycs")), "m"
    ),
    "node": Interpreter(_NODE),
    "nodejs": Interpreter(_NODE),
    "tsx": Interpreter(_NODE, words=("watch",)),
    "ts-node": Interpreter(Options("TP", "", ("--esm", "--transpile-only", "--version"))),
    "deno": Interpreter(
        Options("", "", ("--version", "--help")),
        words=("test", "lint", "fmt", "check", "cache", "task", "info", "install", "bench", "add"),
    ),
    "bun": Interpreter(
        Options("", "", ("--version", "--help")),
        words=(
            "install",
            "add",
            "remove",
            "test",
            "build",
            "run",
            "x",
            "update",
            "pm",
            "i",
            "create",
        ),
    ),
    **dict.fromkeys(("pypy", "ipython", "micropython"), Interpreter(Options("BEIOsSu"), "m")),
    **dict.fromkeys(("elixir", "raku", "scala", "jshell", "irb", "ghci"), Interpreter(Options())),
    "perl": Interpreter(Options("cvwWt", "", ("--version", "--help"))),
    "ruby": Interpreter(Options("cvwW", "IS", ("--version", "--help"))),
    "php": Interpreter(
        Options("lvimn", "cdfS", ("--version", "--help", "--ini")),
    ),
    "lua": Interpreter(Options("v")),
    "rscript": Interpreter(Options("", "", ("--version", "--vanilla", "--help"))),
    "julia": Interpreter(Options("", "", ("--version", "--help", "--project"))),
    "groovy": Interpreter(Options()),
    "tclsh": Interpreter(Options()),
}
"""Interpreters. A version behind the name is ignored: `python3.12` is `python`."""

PRINTING = frozenset(("--version", "--help", "-V", "-v", "-h"))
"""Options with which an interpreter prints something and needs no script."""

OPAQUE_SUBCOMMANDS: dict[str, tuple[frozenset[str], ...]] = {
    name: tuple(frozenset(line.split()) for line in lines)
    for name, lines in {
        "docker": ("exec", "run"),
        "podman": ("exec", "run"),
        "kubectl": ("exec", "debug"),
        "npm": ("exec -c", "exec --call"),
        "npx": ("-c", "--call"),
        "crontab": ("",),
    }.items()
}
"""Program to words that together mean: commands are run, and not here or not by this program."""

RUNNING_OPTIONS: dict[str, tuple[str, ...]] = {
    "rsync": ("-e", "--rsh"),
    "tar": ("--to-command", "--checkpoint-action", "-I", "--use-compress-program"),
    **dict.fromkeys(
        ("ssh", "scp", "sftp"), ("ProxyCommand", "LocalCommand", "-oProxyC", "-oLocalC")
    ),
    **dict.fromkeys(("vi", "vim"), ("-c", "+", "--cmd")),
    "make": ("SHELL=",),
    "man": ("-P", "--pager"),
}
"""Program to the beginnings of words that name a command which it runs."""

CURL_VALUED = frozenset(
    f"--{name}"
    for name in (
        *("request", "header", "data", "data-raw", "data-binary", "data-urlencode", "form", "json"),
        *("output", "user", "user-agent", "referer", "cookie", "cookie-jar", "max-time", "retry"),
        *("connect-timeout", "retry-delay", "proxy", "cacert", "cert", "key", "write-out", "range"),
        *("upload-file", "config", "dump-header", "limit-rate", "interface", "resolve"),
    )
)
"""Long options of curl whose value is the next word."""


class Operands(NamedTuple):
    """Which arguments of a program are paths."""

    access: str
    """`read` or `write`: what the program does with its operands; empty if they are not paths"""
    skips: int = 0
    """number of first operands that are not paths"""
    last: str = ""
    """access of the last operand, if it differs: the destination of a copy"""
    valued: str = ""
    """letters of options with a value that is not a path"""
    long_valued: tuple[str, ...] = ()
    """long options with a value that is not a path"""
    reads: tuple[str, ...] = ()
    """options whose value is a path that is read"""
    writes: tuple[str, ...] = ()
    """options whose value is a path that is written"""
    script: tuple[str, ...] = ()
    """options that replace the first operand, which is otherwise skipped"""
    in_place: tuple[str, ...] = ()
    """options with which the operands are written"""


_READ = Operands("read")
_WRITE = Operands("write")
_COPY = Operands("read", last="write", writes=("-t", "--target-directory"), valued="S")
OPERANDS: dict[str, Operands] = {
    **dict.fromkeys(
        (
            *("cat", "tac", "nl", "rev", "less", "more", "wc", "file", "stat", "md5sum", "sha1sum"),
            *("sha256sum", "strings", "readlink", "realpath", "ls", "tree", "du", "diff", "cmp"),
            *("xxd", "hexdump", "od", "base64", "bat", "column", "comm", "paste", "zcat", "view"),
        ),
        _READ,
    ),
    **dict.fromkeys(
        ("head", "tail"), Operands("read", valued="nc", long_valued=("--lines", "--bytes"))
    ),
    "cut": Operands("read", valued="dfcb"),
    "uniq": Operands("read", valued="fsw"),
    "sort": Operands("read", valued="ktSE", writes=("-o", "--output")),
    "jq": Operands("read", skips=1, valued="L", script=("-f", "--from-file")),
    **dict.fromkeys(
        ("grep", "egrep", "fgrep", "rg", "ag"),
        Operands(
            "read",
            skips=1,
            valued="eABCmgtTdD",
            long_valued=("--regexp", "--glob", "--type", "--max-count", "--context"),
            reads=("-f", "--file"),
            script=("-e", "-f", "--regexp", "--file", "--files"),
        ),
    ),
    "sed": Operands(
        "read",
        skips=1,
        valued="el",
        long_valued=("--expression",),
        reads=("-f", "--file"),
        script=("-e", "-f", "--expression", "--file"),
        in_place=("-i", "--in-place"),
    ),
    **dict.fromkeys(
        ("awk", "gawk", "mawk"),
        Operands("read", skips=1, valued="Fv", reads=("-f", "--file"), script=("-f", "--file")),
    ),
    **dict.fromkeys(
        ("rm", "rmdir", "unlink", "shred", "tee", "vi", "vim", "nano", "emacs", "sponge", "mkfifo"),
        _WRITE,
    ),
    "touch": Operands("write", valued="dt", reads=("-r", "--reference")),
    "mkdir": Operands("write", valued="m", long_valued=("--mode",)),
    "truncate": Operands("write", valued="s", long_valued=("--size",), reads=("-r",)),
    **dict.fromkeys(("chmod", "chown", "chgrp", "setfacl", "chattr"), Operands("write", skips=1)),
    **dict.fromkeys(("cp", "rsync", "scp"), _COPY),
    "install": _COPY._replace(valued="mogS"),
    "mv": Operands("write", writes=("-t", "--target-directory"), valued="S"),
    "curl": Operands(
        "",
        valued="XHduAebmFEwxUrzCPyYtQ",
        long_valued=tuple(sorted(CURL_VALUED - {"--output", "--upload-file", "--config"})),
        writes=("-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar"),
        reads=("-T", "--upload-file", "-K", "--config"),
    ),
    "wget": Operands("", writes=("-O", "--output-document", "-P", "--directory-prefix", "-o")),
    "zip": Operands("read"),
    "unzip": Operands("read", valued="x", writes=("-d",)),
    "gzip": _WRITE,
    "gunzip": _WRITE,
    "gcc": Operands("read", writes=("-o",)),
    "cc": Operands("read", writes=("-o",)),
    "split": Operands("read", valued="bln"),
    "cd": Operands(""),
}
"""Paths among the arguments of common programs."""

LINK = Operands("", writes=("-t", "--target-directory"), valued="S", long_valued=("--suffix",))
"""The options of `ln`."""

LOOKING = (
    HARMLESS
    | frozenset(("cd", "export", "set", "which", "type", "command", "time", "date", "wait"))
    | frozenset(name for name, each in OPERANDS.items() if each.access == "read" and not each.last)
)
"""Programs that make no files, unless their arguments say so."""

WRITES_HERE = frozenset(("wget", "unzip", "patch"))
"""Programs that write into the working directory unless an option says otherwise."""

REMOTE = frozenset(("ssh", "scp", "rsync", "sftp", "git", "mosh"))
"""Programs that take `user@host:path`."""

HOST_OPERAND = frozenset(
    ("ssh", "sftp", "mosh", "ping", "nc", "ncat", "netcat", "telnet", "dig", "host", "nslookup",
     "curl", "wget", "http", "https", "ftp", "whois", "traceroute")
)  # fmt: skip
"""Programs whose operands are hosts or URLs without a scheme."""
HOST_VALUED = {
    "ssh": "bcDEeFIiJLlmOopQRSWw",
    "sftp": "BbcDFiJloPRSs",
    "curl": "oXHduAebmFEwDcTKxUrzCPyYtQ",
    "wget": "OPoateTwQU",
    "nc": "wpsiXxqTVIO",
    "ping": "ciWwsItQ",
}
"""Letters of options with a value, for programs that take hosts."""
