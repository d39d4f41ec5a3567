"""A report is written wherever there is room; a full disk must not cause a second bug."""

import builtins
import tempfile

from subluminal.config.bug_report import write_bug_report
from subluminal.config.places import places


def test_where_the_home_has_no_room_the_place_for_temporary_files_may(
    own_home, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    really_open, opened = builtins.open, []

    def open_in_vain(file, *args, **options):
        opened.append(file)
        if len(opened) == 1:
            raise OSError(28, "No space left on device")
        return really_open(file, *args, **options)

    monkeypatch.setattr(builtins, "open", open_in_vain)
    path = write_bug_report(ValueError("oops"), ["shim"], places({}, str(own_home)))
    assert path is not None
    assert path.startswith(str(tmp_path))


def test_where_nothing_can_be_written_there_is_no_report(own_home, monkeypatch):
    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(builtins, "open", full)
    assert write_bug_report(ValueError("oops"), ["shim"], places({}, str(own_home))) is None
