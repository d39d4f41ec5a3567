"""A real Secret Service for a test: gnome-keyring on a D-Bus of its own, in a home of its own."""

import os
import signal
import subprocess
from pathlib import Path

import secretstorage
from keyring.backends import SecretService

BUS_CONFIG = """<busconfig><type>session</type><listen>unix:path={path}</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow own="*"/>
<allow eavesdrop="true"/></policy></busconfig>"""


class PrivateSecretService:
    """Starts the two daemons; `stop` ends them. Unlocked until `lock` is called."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        (home / "run").mkdir(mode=0o700)
        config = home / "bus.conf"
        config.write_text(BUS_CONFIG.format(path=home / "bus"))
        self.address = f"unix:path={home / 'bus'}"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "DBUS_SESSION_BUS_ADDRESS": self.address,
        }
        self._bus = self._start(
            ["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address=1"]
        )
        assert self._bus.stdout is not None
        assert self._bus.stdout.readline()
        # The password on stdin makes and opens the login keyring; the daemon then says where it is.
        self._keyring = self._start(
            ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"]
        )
        assert self._keyring.stdin is not None
        assert self._keyring.stdout is not None
        self._keyring.stdin.write(b"correct horse\n")
        self._keyring.stdin.close()
        self._wait_until_owned()

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _wait_until_owned(self) -> None:
        # gdbus waits on the bus itself, so nothing here sleeps.
        subprocess.run(
            ["gdbus", "wait", "--session", "--timeout", "20", "org.freedesktop.secrets"],
            env=self.environ,
            check=True,
            timeout=25,
        )

    def lock(self) -> None:
        """Locks the keyring. There is no prompter on this bus, so nothing can unlock it."""
        connection = secretstorage.dbus_init()
        try:
            secretstorage.get_default_collection(connection).lock()
        finally:
            connection.close()

    def stop(self) -> None:
        for process in (self._keyring, self._bus):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None and not pipe.closed:
                    pipe.close()


def backend() -> SecretService.Keyring:
    """The keyring library's own backend for it."""
    return SecretService.Keyring()
