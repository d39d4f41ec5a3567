"""The job page: text from outside can neither break a table nor become markup."""

import re

from tests.export import hostile
from tests.export.shims import Shim

from subluminal.cli.output import shown
from subluminal.export.artifact import markdown
from subluminal.export.markdown import MAX_CHARS, MAX_ROWS, code
from subluminal.export.ordering import ordered
from subluminal.export.summary import summarise

SPAN = re.compile(r"`[^`]*`")
BAR = re.compile(r"(?<!\\)\|")


def page(summary):
    return markdown(summary.as_dict(), shown).decode()


def test_every_row_has_the_cells_of_its_header():
    text = page(hostile.run())
    tables = re.findall(r"(?:^\|.*\n)+", text, re.M)
    assert len(tables) >= 4
    for table in tables:
        widths = {len(BAR.findall(line)) for line in table.splitlines()}
        assert len(widths) == 1, table


def test_text_from_outside_is_always_in_code_spans():
    outside = SPAN.sub("", page(hostile.run()))
    for word in ("script", "evil", "@admin", "bold", "\u202e", "\x1b"):
        assert word not in outside
    assert "\u202e" not in page(hostile.run())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", page(hostile.run()))


def test_code_spans():
    assert code("a|b\nc") == "`a\\|b c`"
    assert code("`x`") == "`'x'`"
    assert code("") == "–"
    assert code(" \n ") == "–"
    assert len(code("x" * 1000)) == MAX_CHARS + 3


def test_long_tables_say_what_they_leave_out():
    shim = Shim("a")
    for seq in range(1, MAX_ROWS + 3):
        shim.begin(seq, action="BLOCK", rule_id="no", reason_code="NO")
    assert "… and 2 more, in summary.json." in page(summarise(ordered([shim])))


def test_the_heading_says_how_it_went():
    assert page(hostile.run("t")).startswith("## Agent run: policy violated\n")
    strict, free = Shim("a"), Shim("b")
    strict.start_run(strict="refused")
    strict.end_run()
    free.start_run()
    free.end_run("CANCELLED")
    assert page(summarise(ordered([strict]))).startswith("## Agent run: policy held\n")
    assert page(summarise(ordered([free]))).startswith("## Agent run: CANCELLED\n")
