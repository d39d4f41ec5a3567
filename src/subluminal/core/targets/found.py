"""Collects the targets of one call while its arguments are read, within bounds."""

from subluminal.contracts.limits import MAX_TARGETS_BYTES
from subluminal.contracts.targets import Access, PathTarget, Targets
from subluminal.core.targets.hosts import host_of
from subluminal.core.targets.paths import forms_of, is_file, network_host

MAX_LINE_BYTES = 8_192
"""Longest command line or patch header that is read, in bytes."""
MAX_COMMANDS = 64
"""Most commands of one call."""
MAX_GLOBS = 16
"""Most globs of one call that are resolved: each reads a directory."""
MAX_DEPTH = 24
"""Deepest nesting of commands in commands."""
_MAX_REASONS = 8

Directories = tuple[str, ...] | None
"""The directories in which a command may run; None if they are not known."""


class Found:
    """The targets of one call so far."""

    def __init__(self, cwd: str, home: str, *, looks: bool = True) -> None:
        self.cwd = cwd
        self.home = home
        self.looks = looks
        """whether links and globs are resolved; if not, the machine is not looked at"""
        self._commands: list[list[str]] = []
        self._paths: dict[tuple[str, Access], None] = {}
        self._hosts: dict[str, None] = {}
        self._why: dict[str, None] = {}
        self._room = MAX_TARGETS_BYTES
        self.unread: set[str] = set()
        """words as written whose value is not known: they are not paths"""
        self.changes = False
        """whether a command so far may have made files: from then on globs cannot be resolved"""
        self._links: dict[str, None] = {}
        self._touched: set[str] = set()
        self.globs = 0
        """number of globs that were resolved"""

    def opaque(self, why: str) -> None:
        """Notes that the call may touch more than is listed."""
        if len(self._why) < _MAX_REASONS:
            self._why[why if len(why) <= 160 else why[:159] + "…"] = None

    def command(self, argv: list[str], text: str) -> None:
        """Adds a command; `text` is its words joined by blanks."""
        if len(self._commands) >= MAX_COMMANDS:
            self.opaque(f"more than {MAX_COMMANDS} commands")
        elif self._fits(text):
            self._commands.append(argv)

    def path(self, written: str, access: Access, directories: Directories) -> None:
        """Adds a path as written and, if a link leads elsewhere, as resolved."""
        if not written or not is_file(written) or written in self.unread:
            return
        host = network_host(written)
        if host is not None:
            self.host(host)
        if not written.startswith("/") and directories is None:
            self.opaque(f"`{written}` is relative to a directory that is not known")
            return
        for directory in directories or ("/",):
            forms = forms_of(written, directory, looks=self.looks)
            self._touched.update(forms)
            self._add(forms, access)

    def link(self, written: str, directories: Directories, *, shown: bool = True) -> None:
        """Notes a link that the line makes: what lies behind it cannot be told beforehand.

        A name that ends with `/` is a directory in which links are made.
        """
        if not written.startswith("/") and directories is None:
            self.opaque(f"`{written}` is relative to a directory that is not known")
        for directory in directories or ("/",):
            forms = forms_of(written, directory, looks=self.looks)
            if not written.endswith("/"):
                self._links.update(dict.fromkeys(forms))
            if shown:
                self._add(forms, "write")

    def _add(self, forms: tuple[str, ...], access: Access) -> None:
        for form in forms:
            key = (form, access)
            if key not in self._paths and self._fits(form):
                self._paths[key] = None

    def url(self, text: str, directories: Directories) -> bool:
        """Adds the host, or the file, of a URL. Returns False if the text is not a URL."""
        found = host_of(text)
        if found is None:
            return False
        host, why = found
        if why:
            self.opaque(why)
        elif host:
            self.host(host)
        if text[:7].lower() == "file://":
            self.path("/" + text[7:].partition("/")[2], "read", directories)
        return True

    def host(self, name: str) -> None:
        """Adds a host."""
        name = name.lower().rstrip(".")
        if name and name not in self._hosts and self._fits(name):
            self._hosts[name] = None

    def _fits(self, text: str) -> bool:
        try:
            size = len(text.encode()) + 1
        except UnicodeEncodeError:
            self.opaque("a name that is not valid Unicode")
            return False
        if size > self._room:
            self.opaque(f"more than {MAX_TARGETS_BYTES} bytes of targets")
            return False
        self._room -= size
        return True

    def targets(self, roots: list[str]) -> Targets:
        """Returns what was found."""
        for link in self._links:
            if any(path == link or path.startswith(f"{link}/") for path in self._touched):
                self.opaque(f"`{link}` is a link that the line makes")
        return Targets(
            commands=self._commands,
            paths=[PathTarget(path, access) for path, access in self._paths],
            hosts=list(self._hosts),
            opaque=bool(self._why),
            why=list(self._why),
            roots=roots,
        )
