"""Every edit, deletion, insertion and reorder is found, and the first bad event is named.

See provable-ledger.
"""

import os
from pathlib import Path

import pytest
from tests.journal.lines import Writer, start_line, templates, verify_lines

from subluminal.journal.chain import chained_form

CALLS = 4


@pytest.fixture
def chain(writer: Writer) -> tuple[list[bytes], bytes]:
    for number in range(CALLS):
        writer.begin(call_id=f"c{number}", text='{"amount":100}')
        writer.finish(call_id=f"c{number}")
    data = Path(writer.journal.path).read_bytes()
    assert os.path.getsize(writer.journal.path) == len(data)
    return data.split(b"\n")[:-1], writer.journal.prev


def test_an_untouched_chain_holds(chain: tuple[list[bytes], bytes]) -> None:
    lines, head = chain
    assert verify_lines(lines, "shim", head=head) is None


def test_it_holds_without_some_or_all_preview_texts(chain: tuple[list[bytes], bytes]) -> None:
    lines, head = chain
    assert verify_lines(lines[:5] + [chained_form(x) for x in lines[5:]], "shim", head=head) is None
    assert verify_lines([chained_form(x) for x in lines], "shim", head=head) is None


@pytest.mark.parametrize("index", range(3 * CALLS))
def test_every_edit_is_found(chain: tuple[list[bytes], bytes], index: int) -> None:
    lines, head = chain
    lines[index] = lines[index].replace(b'"call_id":"c', b'"call_id":"d')
    damage = verify_lines(lines, "shim", head=head)
    assert damage is not None
    assert f"event {index + 1} was changed" in damage.message


@pytest.mark.parametrize("index", range(3 * CALLS))
def test_every_deletion_is_found(chain: tuple[list[bytes], bytes], index: int) -> None:
    lines, head = chain
    del lines[index]
    damage = verify_lines(lines, "shim", head=head)
    assert damage is not None
    last = index == 3 * CALLS - 1
    assert damage.n == (index if last else index + 1)
    assert ("is missing" in damage.message) is not last


@pytest.mark.parametrize("index", range(3 * CALLS - 1))
def test_every_reorder_is_found(chain: tuple[list[bytes], bytes], index: int) -> None:
    lines, head = chain
    lines[index], lines[index + 1] = lines[index + 1], lines[index]
    damage = verify_lines(lines, "shim", head=head)
    assert damage is not None
    assert damage.n == index + 1


@pytest.mark.parametrize("index", range(1, 3 * CALLS + 1))
def test_every_insertion_is_found(chain: tuple[list[bytes], bytes], index: int) -> None:
    lines, head = chain
    prev = lines[index - 1].partition(b'"prev":"')[2][:64]
    lines.insert(index, start_line(templates(), index + 1, prev))
    damage = verify_lines(lines, "shim", head=head)
    assert damage is not None
    assert damage.n == index + 1


def test_a_changed_preview_text_is_found(chain: tuple[list[bytes], bytes]) -> None:
    lines, head = chain
    lines[3] = lines[3].replace(rb"\"amount\":100", rb"\"amount\":999")
    damage = verify_lines(lines, "shim", head=head)
    assert damage is not None
    assert damage.n == 4
    assert "preview" in damage.message


def test_an_event_of_another_shim_is_found(chain: tuple[list[bytes], bytes]) -> None:
    damage = verify_lines(chain[0], "other")
    assert damage is not None
    assert "belongs to another shim, `shim`" in damage.message


def test_a_line_that_is_not_an_event_is_found(chain: tuple[list[bytes], bytes]) -> None:
    damage = verify_lines([chain[0][0], b"\xff"], "shim")
    assert damage is not None
    assert damage.n == 2
    assert "not a chained event" in damage.message
