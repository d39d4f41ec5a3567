"""Backups of client files from before each change: `$SUB_HOME/backups`, 0600, one folder a change.

A backup is written before the file is changed. Its manifest has the hash of the bytes that we left
in the file: as long as the file has that hash, nobody else has touched it. There is no shared
index that two imports at once could damage.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping

import msgspec

from subluminal.clock import now, rfc3339
from subluminal.config.places import Places, make_private_dir
from subluminal.errors import SecretUnavailable, SubluminalError
from subluminal.secrets.private_files import read_private, write_private

_MANIFEST = "manifest.json"
_BYTES = "before"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one change to one file."""

    v: int = 1
    backup_id: str
    kind: str
    """`import`, or `restore` for a backup made before an import was undone"""
    client: str
    path: str
    """path as the user or the client gave it; `real_path` has symbolic links resolved"""
    real_path: str
    created_at: str
    after_sha256: str
    """hash of the bytes that we left in the file"""
    servers: list[list[str]]
    """path inside the file of each entry that is wrapped after the change"""
    hooks: list[str] = []
    """events that run our hook after the change"""
    trusted: dict[str, str] = {}
    """hashes by which Codex trusts hooks after the change, by the hook's key"""
    is_new: bool = False
    """the file did not exist before"""
    folders: list[str] = []
    """directories that were made for a new file"""


class Backup(msgspec.Struct, frozen=True):
    """One backup and its folder."""

    folder: str
    manifest: Manifest

    def before(self) -> bytes:
        """Returns the bytes from before the change. Notes replace secrets that were moved since."""
        data = read_private(os.path.join(self.folder, _BYTES))
        if data is None:
            raise SubluminalError(
                f"the backup in `{self.folder}` is incomplete: its file `{_BYTES}` is missing",
                hint="list the other backups with `sub restore --list`",
            )
        return data

    def overwrite(self, data: bytes) -> None:
        """Replaces the backed-up bytes, after secrets in them were moved to a secret store."""
        write_private(os.path.join(self.folder, _BYTES), data)

    def discard(self) -> None:
        """Removes the backup of a change that did not happen."""
        shutil.rmtree(self.folder, ignore_errors=True)


def digest(data: bytes) -> str:
    """Returns the hash by which a file's contents are recognised."""
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
    hooks: list[str] | None = None,
    trusted: Mapping[str, str] | None = None,
    new_folders: list[str] | None = None,
) -> Backup:
    """Writes a file's bytes to a new backup, durably. Call it before changing the file.

    `new_folders` is given for a file that does not exist yet.
    """
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
        hooks=hooks or [],
        trusted=dict(trusted or {}),
        is_new=new_folders is not None,
        folders=new_folders or [],
    )
    folder = os.path.join(places.backups, manifest.backup_id)
    try:
        make_private_dir(folder)
        write_private(os.path.join(folder, _BYTES), before)
        # The manifest is written last: a folder without one belongs to a change that never began.
        write_private(os.path.join(folder, _MANIFEST), msgspec.json.encode(manifest))
    except (OSError, SecretUnavailable) as error:
        shutil.rmtree(folder, ignore_errors=True)
        reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else error
        raise SubluminalError(
            f"cannot write a backup to `{folder}`: {reason}",
            hint="nothing was changed, because a change needs a backup",
        ) from None
    return Backup(folder, manifest)


def list_backups(places: Places, real_path: str | None = None) -> list[Backup]:
    """Returns all backups, or those of one file, oldest first."""
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
