"""Settings that change while a shim runs: what they change here, and what waits for a restart.

The server's own part (its secrets, what it may see of the client's credentials) is given to it when
it starts, and cannot be taken back.
"""

from collections.abc import Callable, Sequence

from subluminal.config.settings import ServerSettings, Settings
from subluminal.core.host import Runs
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction.redactor import Redactor, redactor_for
from subluminal.core.settings_file import Change, SettingsFile
from subluminal.errors import SubluminalError
from subluminal.secrets.value import SecretValue


def previewer_for(settings: Settings, redactor: Redactor) -> Previewer:
    """What may be shown under these settings."""
    return Previewer(
        redactor,
        record_mode=settings.record.mode,
        max_bytes=settings.limits.max_preview_bytes,
        full_bytes=settings.limits.max_inspect_bytes,
    )


class LiveSettings:
    """The settings of one shim, followed."""

    def __init__(
        self, file: SettingsFile, server: str, values: Sequence[SecretValue], runs: Runs
    ) -> None:
        self._file = file
        self._server = server
        self._values = values
        self._runs = runs
        self._at_start = _given_at_start(file.settings, server)
        self.before_change: Callable[[], None] = lambda: None
        """records what happened under the settings that go"""

    @property
    def settings(self) -> Settings:
        """What is in force."""
        return self._file.settings

    def poll(self, mono_ms: int) -> Settings | None:
        """Takes over what changed, and records it; new settings for the caller's own part."""
        before = self._file.settings
        change = self._file.poll(mono_ms)
        if change is None:
            return None
        settings = change.settings
        if settings is not None:
            try:
                redactor = redactor_for(settings.redact, self._values)
                return self._adopt(settings, previewer_for(settings, redactor))
            except SubluminalError as error:  # a pattern that cannot be used
                self._file.settings = before
                change = self._file.refuse(str(error))
        if change is not None:
            self._tell_refused(change)
        return None

    def _adopt(self, settings: Settings, previewer: Previewer) -> Settings:
        self.before_change()
        self._runs.adopt(previewer, settings.limits.max_journal_bytes)
        detail = "the settings were read anew"
        if _given_at_start(settings, self._server) != self._at_start:
            detail += "; secret_bindings and pass_env hold when the server is started again"
        self._runs.health("alive", server_name=self._server, detail=detail)
        return settings

    def _tell_refused(self, change: Change) -> None:
        detail = f"the settings stay as they were: {change.problem}"
        self._runs.health("degraded", server_name=self._server, detail=detail)


def of_server(settings: Settings, server: str) -> ServerSettings:
    """What the settings say about one server."""
    return settings.servers.get(server, ServerSettings())


def _given_at_start(settings: Settings, server: str) -> tuple[object, ...]:
    own = of_server(settings, server)
    return own.secret_bindings, own.pass_env, settings.secrets
