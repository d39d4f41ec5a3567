"""Acts that only a person may do (local-is-not-trusted)."""

import pytest

from subluminal.config.places import places
from subluminal.core.controls.passphrase import set_passphrase
from subluminal.errors import SubluminalError
from subluminal.operator.person import check_person


def not_asked():
    raise AssertionError("nobody should be asked")


@pytest.fixture
def where(own_home):
    return places({"SUB_HOME": str(own_home)})


def test_without_a_passphrase_nobody_is_asked(where):
    check_person("sub approve", where, {}, not_asked)


def test_an_agent_is_refused_before_it_is_asked(where):
    with pytest.raises(SubluminalError, match="`sub approve` is for a person"):
        check_person("sub approve", where, {"CLAUDECODE": "1"}, not_asked)


def test_the_passphrase_must_match(where, own_home):
    (own_home / "state").mkdir(parents=True)
    set_passphrase(where.state, "correct horse")
    check_person("sub approve", where, {}, lambda: "correct horse")
    with pytest.raises(SubluminalError, match="wrong passphrase"):
        check_person("sub approve", where, {}, lambda: "guess")
