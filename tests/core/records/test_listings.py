"""Tool lists are recorded when they change, within bounds, in every run."""

import json
from pathlib import Path

import pytest
from tests.core.runs.test_open_runs import WHO, enter
from tests.hosts import previewer

from subluminal.config.places import Places, encode_name, places
from subluminal.config.settings import RedactSettings, Settings
from subluminal.contracts.templates import encode_json
from subluminal.core.host import Host
from subluminal.core.live_settings import LiveSettings
from subluminal.core.policies.watching import Policies
from subluminal.core.records.listings import MAX_LISTING_BYTES, MAX_PAGES, Definition, Listings
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction.redactor import redactor_for
from subluminal.core.runs.open_runs import Parts
from subluminal.journal import Journal, JournalUnavailable

A, B = Definition("a", b'{"name":"a"}'), Definition("b", b'{"name":"b"}')


@pytest.fixture
def where(tmp_path: Path) -> Places:
    return places({"SUB_HOME": str(tmp_path / "home")})


@pytest.fixture
def host(where: Places, tmp_path: Path) -> Host:
    policies = Policies(where, WHO, str(tmp_path), None)
    settings = LiveSettings(where.settings, Settings())
    return Host(Parts(where, WHO, policies, previewer()), settings, run_id="run")


def listed(where: Places, run_id: str) -> list[list[str]]:
    files = sorted((Path(where.journal) / encode_name(run_id)).iterdir())
    events = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    found = [event["listing"] for event in events if event["type"] == "tools_listed"]
    return [[tool["name"] for tool in listing["tools"]] for listing in found]


def test_every_run_hears_of_the_tools_once(where: Places, host: Host) -> None:
    host.list_tools("s", "", [A])
    enter(host, "one")
    host.list_tools("s", "", [A])
    host.list_tools("s", "2", [B])
    enter(host, "two")
    host.list_tools("s", "", [A, B])
    host.leave(None)
    host.close()
    assert listed(where, "one") == listed(where, "two") == [["a"], ["b"], ["a", "b"]]


def test_a_journal_that_cannot_be_written_is_ignored(
    where: Places, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(host, "one")

    def fail(*_: object) -> None:
        raise JournalUnavailable("journal", OSError(28, "full"))

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", fail)
        host.list_tools("s", "", [A])
    host.leave(None)
    host.close()
    assert listed(where, "one") == []


def test_the_event_has_a_bound() -> None:
    listings = Listings(previewer())
    many = [Definition(f"tool-{n}", b"{}") for n in range(10_000)]
    listing = listings.changed("s", "", many)
    assert listing is not None
    assert listing.truncated
    assert 1_000 < len(listing.tools) < 10_000
    large = Definition("c", b'{"name":"%b"}' % (b"x" * MAX_LISTING_BYTES))
    listing = listings.changed("s", "", [large, A])
    assert listing is not None
    assert listing.truncated
    assert [isinstance(tool.definition, str) for tool in listing.tools] == [False, True]


def test_what_escapes_take_counts() -> None:
    tools = [Definition(f"t{n}", b'{"a":"%b"}' % (b'\\"' * 10_000)) for n in range(20)]
    listing = Listings(previewer()).changed("s", "", tools)
    assert listing is not None
    assert listing.truncated
    assert MAX_LISTING_BYTES // 2 < len(encode_json(listing)) <= MAX_LISTING_BYTES


def test_too_large_to_look_at_is_not_the_same_as_empty() -> None:
    listings = Listings(previewer())
    told = [listings.changed("s", "", tools) for tools in (None, None, [], [], None)]
    assert [None if each is None else each.truncated for each in told] == [
        True,
        None,
        False,
        None,
        True,
    ]


def test_pages_are_remembered_within_a_bound() -> None:
    listings = Listings(previewer())
    for number in range(MAX_PAGES + 1):
        assert listings.changed("s", str(number), [A]) is not None
    assert listings.changed("s", "1", [A]) is None
    assert listings.changed("s", "0", [A]) is not None


def test_no_definition_is_shown_where_nothing_is_to_be_recorded() -> None:
    redactor = redactor_for(RedactSettings(), [])
    quiet = Previewer(redactor, record_mode="off", max_bytes=1, full_bytes=1)
    listing = Listings(quiet).changed("s", "", [A])
    assert listing is not None
    assert not listing.truncated
    assert not isinstance(listing.tools[0].definition, str)
