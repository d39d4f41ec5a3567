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
            *(
                "ed",
                "ex",
                "red",
                "dc",
                "at",
                "batch",
                "expect",
                "screen",
                "tmux",
                "taskset",
                "chrt",
                "setarch",
                "unbuffer",
            ),
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
            *(
                "ld-linux-x86-64.so.2",
                "ld-linux-aarch64.so.1",
                "ld-linux.so.2",
                "cpio",
                "catchsegv",
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
    *("GIT_ASKPASS", "SSH_ASKPASS", "GIT_DIR", "GIT_WORK_TREE", "FUNCNEST", "GIT_TEMPLATE_DIR"),
    *("GIT_TRACE*", "PERL5OPT", "PERL5DB", "RUBYOPT", "LESSOPEN", "LESSCLOSE", "LESS", "MAKEFILES"),
    *("TAR_OPTIONS", "VIMINIT", "EXINIT", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONHOME"),
    *("npm_config_*", "NPM_CONFIG_*", "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"),
    *("HTTPS_PROXY", "ALL_PROXY"),
)
"""Variables that change which program a name runs, or how the shell reads a line; and numbers of
bash, whose new value is evaluated."""

COMMAND_VARIABLES = frozenset(
    (
        *("PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR"),
        *("GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "BROWSER"),
        *("CC", "CXX", "LD", "AR", "RUSTC", "RUSTC_WRAPPER", "RSYNC_RSH", "SHELL", "SUDO_ASKPASS"),
    )
)
"""Variables whose value is a command line that a program runs."""

OPTION_VARIABLES = frozenset(
    ("NODE_OPTIONS", "GOFLAGS", "RUSTFLAGS", "MAKEFLAGS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
)
"""Variables whose value are options of a program; some options run commands."""

PLAIN_OPTIONS = (
    r"(?:(?:-j[0-9]*|-mod=[a-z]+|-race|-v|-count=[0-9]+|-tags=[A-Za-z0-9_,]+|-D ?warnings"
    r"|-C target-cpu=native|-Xm[xs][0-9]+[kmgKMG]|--max[-_]old[-_]space[-_]size=[0-9]+"
    r"|--no-warnings|--experimental-vm-modules|--enable-source-maps"
    r"|--openssl-legacy-provider)(?: +|$))*"
)
"""A regex of values of such variables that run nothing."""

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

CODE_MODULES = frozenset(("timeit", "code", "pdb", "asyncio", "IPython", "idlelib", "sqlite3"))
"""Modules behind `python -m` that take code from the command line or from the input."""

PRINTING = frozenset(("--version", "--help", "-V", "-v", "-h"))
"""Options with which an interpreter prints something and needs no script."""

EDITORS = ("vi", "vim", "view", "nvim", "rvim", "vimdiff", "nano")
"""Editors whose operands are files."""

OPAQUE_SUBCOMMANDS: dict[str, tuple[frozenset[str], ...]] = {
    name: tuple(frozenset(line.split()) for line in lines)
    for name, lines in {
        **dict.fromkeys(("docker", "podman", "nerdctl"), ("exec", "run")),
        **dict.fromkeys(("conda", "mamba", "micromamba"), ("run",)),
        **dict.fromkeys(("mise", "asdf"), ("exec", "x")),
        **dict.fromkeys(("poetry", "pipenv"), ("shell",)),
        "bun": ("exec", "repl", "run -e", "run --eval", "run -"),
        "kubectl": ("exec", "debug"),
        "npm": ("exec -c", "x -c", "explore"),
        "gh": ("alias", "extension"),
        "crontab": ("",),
    }.items()
}
"""Program to words that together mean: commands are run, and not here or not by this program."""

RUNNING_OPTIONS: dict[str, tuple[str, ...]] = {
    "rsync": ("-e", "--rsh", "--rsync-path", "--config", "--daemon"),
    "tar": (
        *("--to-command", "--checkpoint-action", "-I", "--use-compress-program", "-F"),
        *("--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"),
    ),
    **dict.fromkeys(EDITORS, ("-c", "+", "--cmd", "-S", "-s", "-u", "-e", "-E", "--eval", "-l")),
    "emacs": ("--eval", "-l", "--load", "-f", "--funcall", "--batch", "--script", "-batch"),
    "less": ("+",),
    "jobs": ("-x",),
    "make": ("SHELL=", ".SHELLFLAGS=", "--eval", "-E", "-f-", "--file=-", "/dev/stdin"),
    "cmake": ("-E",),
    "man": ("-P", "--pager"),
    "npm": ("--call", "--script-shell", "--node-options"),
    "npx": ("-c", "--call", "-yc", "--script-shell", "--node-options"),
    "sort": ("--compress-program",),
    **dict.fromkeys(("nc", "ncat", "netcat"), ("-e", "-c", "--exec", "--sh-exec", "--lua-exec")),
    "zip": ("-TT", "--unzip-command"),
    **dict.fromkeys(("gcc", "cc", "g++", "c++"), ("-wrapper",)),
    "go": ("-toolexec", "-exec", "-vettool", "--toolexec", "--exec", "--vettool"),
    "sqlite3": (
        *(".sh", ".sy", ".on", ".ou", ".lo", ".re", ".im", ".ba", ".ex", ".ed", ".sa", ".cl"),
        *("-cmd", "-init"),
    ),
    "curl": ("-K", "--config", "--connect-to", "--resolve"),
    "wget": ("-e", "--execute", "-i", "--input-file", "--use-askpass", "--config"),
    "ssh": ("-F", "-I", "-L", "-R", "-D", "-W", "-w"),
    "scp": ("-F", "-S", "-D"),
    "sftp": ("-F", "-S", "-D", "-b"),
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


_LIKE = "--reference"
_READ = Operands("read")
_WRITE = Operands("write")
_COPY = Operands("read", last="write", writes=("-t", "--target-directory"), valued="S")
OPERANDS: dict[str, Operands] = {
    **dict.fromkeys(
        (
            *("cat", "tac", "nl", "rev", "more", "wc", "file", "stat", "md5sum", "sha1sum"),
            *("sha256sum", "strings", "readlink", "realpath", "ls", "du", "diff", "cmp"),
            *("hexdump", "od", "base64", "bat", "column", "comm", "paste", "zcat"),
        ),
        _READ,
    ),
    **dict.fromkeys(
        ("head", "tail"), Operands("read", valued="nc", long_valued=("--lines", "--bytes"))
    ),
    "cut": Operands("read", valued="dfcb"),
    "uniq": Operands("read", last="write", valued="fsw"),
    "xxd": Operands("read", last="write", valued="cglos"),
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
        (
            *(
                "rm",
                "rmdir",
                "unlink",
                "shred",
                "tee",
                "emacs",
                "sponge",
                "mkfifo",
                "link",
                "mknod",
            ),
            *(
                "gzip",
                "gunzip",
                "bzip2",
                "bunzip2",
                "xz",
                "unxz",
                "setfacl",
                "mount",
                "umount",
                *EDITORS,
            ),
        ),
        _WRITE,
    ),
    "touch": Operands("write", valued="dt", reads=("-r", "--reference")),
    "mkdir": Operands("write", valued="m", long_valued=("--mode",)),
    "truncate": Operands("write", valued="s", long_valued=("--size",), reads=("-r",)),
    # A mode may look like an option: `chmod -x FILE`.
    "chmod": Operands("write", skips=1, script=(*(f"-{each}" for each in "rwxXstugoa"), _LIKE)),
    "chattr": Operands("write", skips=1, script=tuple(f"-{each}" for each in "aAcCdDeijmPsStTux")),
    **dict.fromkeys(("chown", "chgrp"), Operands("write", skips=1, script=(_LIKE,))),
    "cp": _COPY,
    "scp": _COPY._replace(valued="cDFiJloPSX"),
    "rsync": Operands(
        "read",
        last="write",
        writes=(
            *("--log-file", "--write-batch", "--only-write-batch", "--temp-dir", "-T"),
            *("--backup-dir", "--partial-dir"),
        ),
    ),
    "install": _COPY._replace(valued="mogS", in_place=("-d", "--directory")),
    "mv": Operands("write", writes=("-t", "--target-directory"), valued="S"),
    "curl": Operands(
        "",
        valued="XHduAebmFwxUrzCPyYtQ",
        long_valued=tuple(sorted(CURL_VALUED - {"--output", "--upload-file", "--config"})),
        writes=("-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar"),
        reads=("-T", "--upload-file", "-E", "--cert", "--key", "--cacert", "--netrc-file"),
    ),
    "wget": Operands(
        "",
        reads=("--post-file", "--body-file"),
        writes=(
            *("-O", "--output-document", "-P", "--directory-prefix", "-o", "-a", "--output-file"),
            *("--append-output", "--save-cookies", "--warc-file", "--hsts-file"),
        ),
    ),
    "zip": Operands("read"),
    "unzip": Operands("read", valued="x", writes=("-d",)),
    **dict.fromkeys(("7z", "7za", "ar"), Operands("write", skips=1, writes=("-o",))),
    "setfattr": Operands("write", valued="nvx"),
    "zstd": Operands("write", writes=("-o",)),
    "sudoedit": Operands("write", valued="ugC"),
    "fallocate": Operands("write", valued="lo", long_valued=("--length", "--offset")),
    "mktemp": Operands("write", writes=("-p", "--tmpdir")),
    "patch": Operands(
        "write",
        valued="pFDBYzgV",
        reads=("-i", "--input"),
        writes=("-o", "--output", "-d", "--directory", "-r", "--reject-file"),
    ),
    **dict.fromkeys(
        ("gcc", "cc", "g++", "c++", "clang", "clang++", "ld"), Operands("read", writes=("-o",))
    ),
    "split": Operands("read", last="write", valued="bln"),
    "csplit": Operands("", writes=("-f", "--prefix")),
    "iconv": Operands("read", valued="ft", writes=("-o", "--output")),
    "tree": Operands("read", valued="LPI", writes=("-o",)),
    "less": Operands("read", writes=("-o", "-O", "--log-file", "--LOG-FILE")),
    "cd": Operands(""),
}
"""Paths among the arguments of common programs."""

EXACT_WRITES = {
    "go": ("-o",),
    "rustc": ("-o", "--out-dir"),
    "openssl": ("-out", "-writerand"),
    "javac": ("-d",),
    **dict.fromkeys(("pip", "pip3"), ("-t", "--target", "--prefix", "--root")),
    "npm": ("--prefix",),
    "cargo": ("--target-dir", "--out-dir", "--root"),
    "make": ("-C", "--directory"),
    "cmake": ("-B", "--install-prefix", "--prefix"),
    "ssh": ("-E", "-S"),
}
"""Program to options whose value is a path that is written; letters are not joined."""

TAR = Operands(
    "",
    valued="bKNVLFITX",
    reads=("-f", "--file"),
    writes=("-C", "--directory", "-g", "--listed-incremental", "--one-top-level", "--index-file"),
)
"""The options of `tar`. What is read is the archive."""
LINK = Operands("", writes=("-t", "--target-directory"), valued="S", long_valued=("--suffix",))
"""The options of `ln`."""

LOOKING = (
    HARMLESS
    | frozenset(("cd", "export", "set", "which", "type", "command", "time", "date", "wait"))
    | frozenset(name for name, each in OPERANDS.items() if each.access == "read" and not each.last)
    | frozenset(("uniq", "xxd"))
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
