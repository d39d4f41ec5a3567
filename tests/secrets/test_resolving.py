"""All values, or one failure that names the binding. Never an empty variable."""

import pytest
from tests.requirements import requirement

from subluminal.config.places import Places
from subluminal.config.settings import SecretsSettings
from subluminal.contracts.bindings import SecretBinding
from subluminal.contracts.vocabulary import SecretSource
from subluminal.errors import SecretUnavailable
from subluminal.secrets.file_store import FileStore
from subluminal.secrets.resolving import Sources, attempt_all, failure_of
from subluminal.secrets.value import MAX_SECRET_BYTES, SecretValue

AT = "2026-11-15T12:00:00.000Z"


def bind(
    ref: str, source: SecretSource = SecretSource.ENV, inject_as: str = "TOKEN"
) -> SecretBinding:
    return SecretBinding(inject_as=inject_as, secret_ref=ref, source=source)


def sources(here: Places, **environ: str) -> Sources:
    return Sources(environ, here, SecretsSettings(keychain_wait_ms=15_000))


def resolve(
    server_name: str, bindings: list[SecretBinding], sources: Sources
) -> dict[str, SecretValue]:
    """Reads all values, as the start of a server does."""
    attempts = attempt_all(bindings, sources)
    failure = failure_of(server_name, attempts)
    if failure is not None:
        raise failure
    return {a.binding.inject_as: a.value for a in attempts if a.value is not None}


@requirement("001-7.4:env-and-keychain")
@pytest.mark.usefixtures("keychain_here")
def test_every_source_gives_its_value(here: Places) -> None:
    from subluminal.secrets import keychain

    keychain.write("k", "from-keychain", 15_000)
    FileStore(here, SecretsSettings()).write("f", "from-file", AT)
    values = resolve(
        "github",
        [
            bind("E", inject_as="A"),
            bind("f", SecretSource.FILE, "B"),
            bind("k", SecretSource.KEYCHAIN, "C"),
        ],
        sources(here, E="from-env"),
    )
    assert {name: value.reveal() for name, value in values.items()} == {
        "A": "from-env",
        "B": "from-file",
        "C": "from-keychain",
    }


@pytest.mark.parametrize(
    ("binding", "environ", "message"),
    [
        (
            bind("GONE"),
            {},
            "secret `GONE` (env) for `TOKEN` of server `github`: variable `GONE` is not set",
        ),
        (
            bind("E"),
            {"E": ""},
            "secret `E` (env) for `TOKEN` of server `github`: its value is empty",
        ),
        (
            bind("E"),
            {"E": "a\0b"},
            "secret `E` (env) for `TOKEN` of server `github`: its value contains a NUL byte, which a variable cannot hold",
        ),
        (
            bind("E"),
            {"E": "x" * (MAX_SECRET_BYTES + 1)},
            "secret `E` (env) for `TOKEN` of server `github`: its value is larger than 32768 bytes",
        ),
        (
            bind("E", inject_as="A=B"),
            {"E": "x"},
            "secret `E` (env) for `A=B` of server `github`: `A=B` cannot be the name of a variable",
        ),
        (
            bind("f", SecretSource.FILE),
            {},
            "secret `f` (file) for `TOKEN` of server `github`: it is not in the file store",
        ),
    ],
)
def test_a_missing_secret_is_one_failure_that_names_its_binding(
    here: Places, binding: SecretBinding, environ: dict[str, str], message: str
) -> None:
    with pytest.raises(SecretUnavailable) as caught:
        resolve("github", [binding], sources(here, **environ))
    assert str(caught.value) == message


def test_all_missing_secrets_are_in_one_failure(here: Places) -> None:
    bindings = [bind("ONE"), bind("OK", inject_as="B"), bind("TWO", inject_as="C")]
    with pytest.raises(SecretUnavailable) as caught:
        resolve("github", bindings, sources(here, OK="value"))
    assert "`ONE`" in str(caught.value)
    assert str(caught.value).endswith("; also `TWO`")


def test_a_variable_bound_twice_is_refused(here: Places) -> None:
    with pytest.raises(SecretUnavailable, match="`TOKEN` is bound twice"):
        resolve("github", [bind("A"), bind("B")], sources(here, A="1", B="2"))


@pytest.mark.usefixtures("no_keychain")
def test_no_keychain_is_a_failure_of_the_binding(here: Places) -> None:
    with pytest.raises(
        SecretUnavailable, match=r"\(keychain\) for `TOKEN`.*there is no keychain here"
    ):
        resolve("github", [bind("k", SecretSource.KEYCHAIN)], sources(here))


@pytest.mark.usefixtures("keychain_here")
def test_a_secret_that_is_not_in_the_keychain_says_how_to_add_it(here: Places) -> None:
    with pytest.raises(SecretUnavailable, match="it is not in the keychain") as caught:
        resolve("github", [bind("absent", SecretSource.KEYCHAIN)], sources(here))
    assert caught.value.hint == "add it with `sub secrets add absent --source keychain`"
