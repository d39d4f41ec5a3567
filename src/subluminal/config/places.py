"""Where things are on disk. Directories are created on first use, with mode 0700."""

import os

from subluminal.config import env

TYPE_CHECKING = False
if TYPE_CHECKING:  # the import would delay the start of a server
    from collections.abc import Mapping


class Places:
    """The paths of one home."""

    def __init__(self, home: str, runtime_dir: str) -> None:
        self.home = home
        self.runtime_dir = runtime_dir
        self.ledgerd_socket = os.path.join(runtime_dir, "ledgerd.sock")
        self.settings = os.path.join(home, "config.toml")
        self.journal = os.path.join(home, "journal")
        self.state = os.path.join(home, "state")
        self.handovers = os.path.join(self.state, "handovers")
        self.executions = os.path.join(self.state, "executions.db")
        self.ledger = os.path.join(home, "ledger.db")
        self.policy = os.path.join(home, "policy.yaml")
        self.secrets = os.path.join(home, "secrets")
        self.cache = os.path.join(home, "cache")
        self.reports = os.path.join(home, "reports")
        self.backups = os.path.join(home, "backups")


def places(environ: "Mapping[str, str]", home: str | None = None) -> Places:
    """Returns the paths of the home: the argument, else SUB_HOME, else `~/.subluminal`."""
    chosen = home or environ.get(env.SUB_HOME.name) or "~/.subluminal"
    root = os.path.abspath(os.path.expanduser(chosen))
    runtime = environ.get(env.SUB_RUNTIME_DIR.name)
    if not runtime and environ.get("XDG_RUNTIME_DIR"):
        runtime = os.path.join(environ["XDG_RUNTIME_DIR"], "subluminal")
    return Places(root, runtime or os.path.join(root, "run"))


def working_directory() -> str:
    """Returns the current directory; the root if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"


def home_problem(where: Places) -> tuple[str, str] | None:
    """Returns why a home cannot be trusted, and what to do; None if it can, or does not exist.

    Whoever can write there decides about policies, secrets and stops (local-is-not-trusted).
    """
    for path in (where.home, where.state, where.journal):
        try:
            found = os.stat(path)
        except OSError:
            continue  # it does not exist yet, or cannot be used at all, which others report
        if found.st_uid != os.geteuid():
            return (
                f"`{path}` belongs to another user",
                "set SUB_HOME to a directory of your own; a new one below it will do",
            )
        if found.st_mode & 0o022 and os.access(path, os.W_OK):
            mode = f"{found.st_mode & 0o7777:04o}"
            return (
                f"other users can write to `{path}` (mode {mode})",
                f"check what is in it, then run `chmod 700 {path}`",
            )
    return exposed_file(where)


def exposed_file(where: Places) -> tuple[str, str] | None:
    """Returns why settings or policy of a home cannot be trusted, and what to do; None if they can.

    In a directory that nobody else can enter, a file's own mode does not matter.
    """
    try:
        others = os.stat(where.home).st_mode & 0o011
    except OSError:
        return None
    for path in (where.settings, where.policy):
        try:
            found = os.stat(path)
        except OSError:
            continue
        is_foreign = others and found.st_uid not in (os.geteuid(), 0)
        # Whoever may enter the directory (x) must not write the file (w).
        if is_foreign or (found.st_mode & others << 1 and os.access(path, os.W_OK)):
            return (
                f"other users can write to `{path}` (mode {found.st_mode & 0o7777:04o})",
                f"check what is in it, then run `chmod 600 {path}` and `chmod 700 {where.home}`",
            )
    return None


def make_private_dir(path: str) -> str:
    """Creates a directory, and its parents, that only its owner can enter."""
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        make_private_dir(parent)  # os.makedirs would give parents the mode of the umask
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    return path


def encode_name(name: str) -> str:
    """Encodes a name from outside as one safe path component.

    Different names stay different (shared-runs).
    """
    safe = "".join(
        char if char.isascii() and (char.isalnum() or char in "-_") else f"%{ord(char):x}."
        for char in name
    )
    if len(safe) <= 120:
        return safe or "%"
    import hashlib  # only for names longer than any id that we make

    return f"{safe[:60]}%{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def recordable(name: str) -> str:
    """Encodes a name from outside as text that an event can hold.

    Different names stay different.
    """
    return name.encode("utf-8", "backslashreplace").decode()
