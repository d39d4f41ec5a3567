"""Who can write a configuration: owners, groups and directories that tests cannot make for real."""

import os
import stat

import pytest

from subluminal.importer.scan import exposure

ME, OTHER, TEAM = 4242, 4343, 5151
FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR


@pytest.mark.parametrize(
    ("home", "file", "told"),
    [
        ((ME, ME, 0o755), (ME, ME, 0o644), None),
        ((ME, ME, 0o775), (ME, ME, 0o664), None),
        ((ME, ME, 0o755), (ME, TEAM, 0o664), "users of a group can write the file"),
        ((ME, ME, 0o700), (ME, TEAM, 0o664), None),
        ((ME, TEAM, 0o770), (ME, ME, 0o600), "users of a group can write its directory"),
        ((ME, ME, 0o755), (OTHER, ME, 0o644), "the file `/h/f` belongs to another user"),
        ((OTHER, ME, 0o755), (ME, ME, 0o644), "its directory `/h` belongs to another user"),
        ((0, 0, 0o755), (0, 0, 0o644), None),
        ((0, 0, 0o1777), (ME, ME, 0o644), None),
        ((0, 0, 0o1777), (ME, ME, 0o666), "every user can write the file `/h/f` (mode 0666)"),
        ((ME, ME, 0o777), (ME, ME, 0o600), "every user can write its directory `/h` (mode 0777)"),
        ((ME, ME, 0o700), (ME, ME, 0o666), "though a directory above keeps them out"),
    ],
)
def test_who_can_write(
    monkeypatch: pytest.MonkeyPatch,
    home: tuple[int, int, int],
    file: tuple[int, int, int],
    told: str | None,
) -> None:
    steps = {"/": (0, 0, FOLDER | 0o755)}
    steps["/h"] = (home[0], home[1], FOLDER | home[2])
    steps["/h/f"] = (file[0], file[1], FILE | file[2])

    def looked_at(path: str) -> os.stat_result:
        uid, gid, mode = steps[path]
        return os.stat_result((mode, 0, 0, 1, uid, gid, 0, 0, 0, 0))

    monkeypatch.setattr(exposure.os, "stat", looked_at)
    monkeypatch.setattr(exposure.os, "geteuid", lambda: ME)
    monkeypatch.setattr(exposure.os.path, "realpath", lambda path: path)
    found = exposure.find_exposure("/h/f")
    if told is None:
        assert found is None
    else:
        assert found is not None
        assert told in found.message
        assert found.hint.endswith(("`", "."))
