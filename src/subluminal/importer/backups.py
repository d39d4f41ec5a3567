"""What client files were before we changed them: `$SUB_HOME/backups`, 0600, one folder a change.

A backup is written before the file is, and says which bytes we left there: as long as the file
still has them, nobody else touched it. No shared index, so that no two imports can damage one.
"""

import hashlib
import os
import shutil

import msgspec

from subluminal.clock import now, rfc3339
from subluminal.config.places import Places, make_private_dir
from subluminal.errors import SecretUnavailable, SubluminalError
from subluminal.secrets.private_files import read_private, write_private

_MANIFEST = "manifest.json"
_BYTES = "before"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one change."""

    v: int = 1
    backup_id: str
    kind: str
    """`import`, or `restore`: what was there before it was undone"""
    client: str
    path: str
    """as it was given"""
    real_path: str
    created_at: str
    after_sha256: str
    """of what we left in the file"""
    servers: list[list[str]]
    """paths of the entries that were wrapped after the change"""


class Backup(msgspec.Struct, frozen=True):
    """One backup, and where it is."""

    folder: str
    manifest: Manifest

    def before(self) -> bytes:
        """The file's bytes before the change; notes stand in for secrets that were bound since."""
        data = read_private(os.path.join(self.folder, _BYTES))
        if data is None:
            raise SubluminalError(f"the backup `{self.folder}` has lost its contents")
        return data

    def overwrite(self, data: bytes) -> None:
        """Replaces the kept bytes, when values in them have moved elsewhere."""
        write_private(os.path.join(self.folder, _BYTES), data)

    def discard(self) -> None:
        """Removes a backup of a change that did not happen."""
        shutil.rmtree(self.folder, ignore_errors=True)


def digest(data: bytes) -> str:
    """What a file is known by."""
    return hashlib.sha256(data).hexdigest()


def make_backup(
    places: Places,
    *,
    kind: str,
    client: str,
    path: str,
    real_path: str,
    before: bytes,
    after: bytes,
    servers: list[list[str]],
) -> Backup:
    """Keeps a file's bytes, durably, before it is changed."""
    at = now().wall_ms
    stamp = rfc3339(at).replace(":", "").replace("-", "")
    manifest = Manifest(
        backup_id=f"{stamp}-{client}-{os.urandom(4).hex()}",
        kind=kind,
        client=client,
        path=path,
        real_path=real_path,
        created_at=rfc3339(at),
        after_sha256=digest(after),
        servers=servers,
    )
    folder = os.path.join(places.backups, manifest.backup_id)
    try:
        make_private_dir(folder)
        write_private(os.path.join(folder, _BYTES), before)
        # The manifest last: a folder without one is a change that never began.
        write_private(os.path.join(folder, _MANIFEST), msgspec.json.encode(manifest))
    except (OSError, SecretUnavailable) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise SubluminalError(f"cannot back up to `{folder}`: {error}") from None
    return Backup(folder, manifest)


def list_backups(places: Places, real_path: str | None = None) -> list[Backup]:
    """Every backup, oldest first; of one file if its path is given."""
    try:
        names = sorted(os.listdir(places.backups))
    except OSError:
        return []
    found = [_load(os.path.join(places.backups, name)) for name in names]
    return [b for b in found if b and real_path in (None, b.manifest.real_path)]


def _load(folder: str) -> Backup | None:
    try:
        data = read_private(os.path.join(folder, _MANIFEST))
        return Backup(folder, msgspec.json.decode(data, type=Manifest)) if data else None
    except (SecretUnavailable, msgspec.MsgspecError):
        return None
