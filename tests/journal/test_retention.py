"""Journals stay 24 h after ingest, and for as long as someone writes them."""

from pathlib import Path

from tests.journal.lines import Writer

from subluminal.journal.retention import KEEP_MS, remove_ingested


def test_only_an_old_ingested_unused_journal_goes(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path / "run"))
    writer.begin()
    path = Path(writer.journal.path)
    size = path.stat().st_size

    def remove(offset: int, age_ms: int) -> bool:
        return remove_ingested(str(path), offset=offset, ingested_ms=0, now_ms=age_ms)

    assert not remove(size, KEEP_MS), "its writer lives"
    writer.close()
    assert not remove(size, KEEP_MS - 1), "too young"
    assert not remove(size - 100, KEEP_MS), "not all of it was read"
    assert path.exists()
    with path.open("ab") as file:
        file.write(b'{"torn by a shim that is dead')
    assert remove(size, KEEP_MS)
    assert not path.parent.exists()
    assert remove(size, KEEP_MS), "gone already"


def test_a_directory_with_other_journals_stays(tmp_path: Path) -> None:
    first, second = Writer(str(tmp_path), "a"), Writer(str(tmp_path), "b")
    first.begin()
    first.close()
    size = Path(first.journal.path).stat().st_size
    assert remove_ingested(first.journal.path, offset=size, ingested_ms=0, now_ms=KEEP_MS)
    assert tmp_path.exists()
    second.close()
