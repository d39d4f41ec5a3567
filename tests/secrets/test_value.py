"""A secret value has no printable form."""

import copy
import pickle

import pytest

from subluminal.secrets.value import SecretValue

VALUE = SecretValue("github_token", "s3cr3t-value")


@pytest.mark.parametrize(
    "form", [repr, str, "{}".format, "{:>40}".format, "%s".__mod__, lambda v: f"{v!r} {[v]}"]
)
def test_every_way_of_printing_shows_the_name_only(form) -> None:  # type: ignore[no-untyped-def]
    assert "s3cr3t" not in form(VALUE)
    assert "github_token" in form(VALUE)


@pytest.mark.parametrize("copier", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_cannot_be_pickled_or_copied(copier) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError, match="cannot be pickled"):
        copier(VALUE)


def test_it_has_no_dict_and_reveals_on_request() -> None:
    assert not hasattr(VALUE, "__dict__")
    assert VALUE.reveal() == "s3cr3t-value"
