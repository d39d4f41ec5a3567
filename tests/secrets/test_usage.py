"""When a secret was added and when it last worked: metadata that never holds a value."""

import os

from subluminal.config.places import Places
from subluminal.contracts.events import Injection
from subluminal.contracts.vocabulary import SecretSource
from subluminal.secrets.usage import forget, load_usage, record_change, record_use, rename_known

FILE = SecretSource.FILE


def injection(ref: str, *, success: bool) -> Injection:
    return Injection(inject_as="A", secret_ref=ref, source=FILE, success=success, server_name="srv")


def test_success_and_failure_are_kept_per_server(here: Places) -> None:
    record_change(here, FILE, "a", "t0")
    record_use(here, [injection("a", success=True), injection("b", success=False)], "t1")
    record_use(here, [injection("a", success=False)], "t2")
    known = load_usage(here).of(FILE, "a")
    assert (known.added_at, known.servers["srv"].last_ok, known.servers["srv"].last_failed) == (
        "t0",
        "t1",
        "t2",
    )
    assert load_usage(here).of(FILE, "b").servers["srv"].last_ok is None


def test_renaming_keeps_the_dates_and_forgetting_drops_them(here: Places) -> None:
    record_change(here, FILE, "a", "t0")
    record_change(here, FILE, "a", "t1")
    rename_known(here, FILE, "a", "b")
    assert load_usage(here).of(FILE, "b").added_at == "t0"
    forget(here, FILE, "b")
    assert load_usage(here).secrets[FILE] == {}


def test_the_record_is_private_and_a_damaged_one_is_no_obstacle(here: Places) -> None:
    record_use(here, [], "t0")
    path = os.path.join(here.state, "secrets.json")
    assert not os.path.exists(path)
    record_change(here, FILE, "a", "t0")
    assert os.stat(path).st_mode & 0o777 == 0o600
    with open(path, "wb") as file:
        file.write(b"{broken")
    assert load_usage(here).secrets == {}
    record_change(here, FILE, "a", "t1")
    assert load_usage(here).of(FILE, "a").changed_at == "t1"
