"""What an upstream server finds in its environment, and what it does not."""

import subprocess
import sys

import pytest
from tests.requirements import requirement

from subluminal.config.places import Places
from subluminal.config.settings import ServerSettings, Settings
from subluminal.contracts.bindings import SecretBinding
from subluminal.contracts.events import Injection
from subluminal.contracts.vocabulary import SecretSource
from subluminal.secrets.client_credentials import CLIENT_CREDENTIALS
from subluminal.secrets.environment import (
    BindingsUnresolved,
    ChildEnvironment,
    child_environment,
)

ENV = SecretSource.ENV


def server(
    *bindings: tuple[str, str], pass_env: tuple[str, ...] = (), redact: bool = True
) -> ServerSettings:
    return ServerSettings(
        pass_env=list(pass_env),
        secret_bindings=[
            SecretBinding(inject_as=inject_as, secret_ref=ref, source=ENV, redact=redact)
            for ref, inject_as in bindings
        ],
    )


def child_env(
    environ: dict[str, str], name: str, settings: Settings, here: Places
) -> ChildEnvironment:
    return child_environment(environ, name, settings, here, ["server"], "/")


def test_the_environment_passes_with_the_secret_under_its_new_name_only(here: Places) -> None:
    settings = Settings(servers={"github": server(("GH_FOR_SUB", "GITHUB_TOKEN"))})
    child = child_env({"PATH": "/bin", "GH_FOR_SUB": "t0ken-1"}, "github", settings, here)
    assert child.env == {"PATH": "/bin", "GITHUB_TOKEN": "t0ken-1"}
    assert child.withheld == ["GH_FOR_SUB"]


def test_a_secret_may_keep_its_name(here: Places) -> None:
    settings = Settings(servers={"github": server(("GITHUB_TOKEN", "GITHUB_TOKEN"))})
    child = child_env({"GITHUB_TOKEN": "t0ken-1"}, "github", settings, here)
    assert child.env == {"GITHUB_TOKEN": "t0ken-1"}


def test_what_other_servers_bind_is_not_passed(here: Places) -> None:
    settings = Settings(
        servers={"github": server(("GH", "GITHUB_TOKEN")), "linear": server(("LIN", "LINEAR_KEY"))}
    )
    environ = {"GH": "gh-value", "LIN": "lin-value", "HOME": "/h"}
    assert child_env(environ, "github", settings, here).env == {
        "HOME": "/h",
        "GITHUB_TOKEN": "gh-value",
    }
    assert child_env(environ, "linear", settings, here).env == {
        "HOME": "/h",
        "LINEAR_KEY": "lin-value",
    }
    assert child_env(environ, "unheard_of", settings, here).env == {"HOME": "/h"}


def test_the_clients_credentials_are_not_passed_unless_named(here: Places) -> None:
    environ = {name: f"value-of-{name}" for name in CLIENT_CREDENTIALS} | {"HOME": "/h"}
    assert {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CLAUDE_CODE_MESSAGING_TOKEN"} <= set(environ)
    child = child_env(environ, "any", Settings(), here)
    assert child.env == {"HOME": "/h"}
    assert child.withheld == sorted(CLIENT_CREDENTIALS)
    named = Settings(
        servers={
            "ai": server(("ANTHROPIC_API_KEY", "KEY"), pass_env=("OPENAI_API_KEY", "XAI_API_KEY"))
        }
    )
    child = child_env(environ, "ai", named, here)
    assert child.env == {
        "HOME": "/h",
        "KEY": "value-of-ANTHROPIC_API_KEY",
        "OPENAI_API_KEY": "value-of-OPENAI_API_KEY",
        "XAI_API_KEY": "value-of-XAI_API_KEY",
    }


def test_the_redactor_learns_what_was_injected_and_what_was_withheld(here: Places) -> None:
    settings = Settings(servers={"a": server(("A_REF", "A")), "b": server(("B_REF", "B"))})
    environ = {
        "A_REF": "value-a",
        "B_REF": "value-b",
        "OPENAI_API_KEY": "value-c",
        "GROQ_API_KEY": "",
    }
    child = child_env(environ, "a", settings, here)
    assert {value.name: value.reveal() for value in child.values} == {
        "A_REF": "value-a",
        "B_REF": "value-b",
        "OPENAI_API_KEY": "value-c",
    }


def test_an_exempted_secret_stays_exempted(here: Places) -> None:
    settings = Settings(servers={"a": server(("A_REF", "A"), redact=False)})
    child = child_env({"A_REF": "value-a"}, "a", settings, here)
    assert [(value.name, value.redact) for value in child.values] == [("A_REF", False)]


@requirement("4.1:injected")
def test_the_events_tell_of_each_binding_and_hold_no_value(here: Places) -> None:
    settings = Settings(servers={"a": server(("A_REF", "A"))})
    child = child_env({"A_REF": "value-a"}, "a", settings, here)
    assert child.injections == [
        Injection(inject_as="A", secret_ref="A_REF", source=ENV, success=True, server_name="a")
    ]


def test_a_failure_says_which_bindings_failed(here: Places) -> None:
    settings = Settings(servers={"a": server(("A_REF", "A"), ("GONE", "B"))})
    with pytest.raises(BindingsUnresolved, match="`GONE`") as caught:
        child_env({"A_REF": "value-a"}, "a", settings, here)
    assert [(i.inject_as, i.success) for i in caught.value.injections] == [
        ("A", True),
        ("B", False),
    ]
    assert "value-a" not in str(caught.value)


def test_the_way_to_the_start_loads_nothing_heavy() -> None:
    """fast-start: keyring, cryptography and re2 cost a shim's start only where they are bound."""
    code = (
        "import sys; import subluminal.secrets.environment as e; "
        "heavy = {'keyring','cryptography','re2','asyncio','logging','argparse','yaml','json','threading'}; "
        "print(sorted(heavy & set(sys.modules) - set(before)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", "import sys, msgspec; before = list(sys.modules); " + code],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert ran.stdout == "[]\n"
