"""Who acts: the SUB_* variables, then the marks of clients (Pack section 5, shared-runs)."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from subluminal.contracts.identity import Workload
from subluminal.trust.identity.agent import identity_of


@pytest.mark.parametrize(
    ("environ", "client"),
    [
        ({"SUB_CLIENT": "headless"}, "headless"),
        ({"SUB_CLIENT": "cursor"}, "cursor"),
        ({"SUB_CLIENT": "zed"}, "custom"),
        ({"SUB_CLIENT": "codex", "CLAUDECODE": "1"}, "codex"),
        ({"CLAUDECODE": "1"}, "claude"),
        ({"CODEX_THREAD_ID": "t"}, "codex"),
        ({"GEMINI_CLI": "1"}, "gemini"),
        ({"OPENCODE": "1"}, "opencode"),
        ({"COPILOT_AGENT_SESSION_ID": "s"}, "copilot"),
        ({"CURSOR_AGENT": "1"}, "cursor"),
        ({}, "unknown"),
    ],
    ids=str,
)
def test_client(environ: dict[str, str], client: str, tmp_path: Path) -> None:
    assert identity_of(environ, str(tmp_path)).client == client


@pytest.mark.parametrize(
    ("environ", "env"),
    [
        ({"SUB_ENV": "prod"}, "prod"),
        ({"SUB_ENV": "staging"}, "unknown"),
        ({"GITHUB_ACTIONS": "true"}, "ci"),
        ({"CI": "true"}, "ci"),
        ({"CI": "false"}, "unknown"),
        ({"SUB_ENV": "dev", "GITHUB_ACTIONS": "true"}, "dev"),
        ({"XDG_CURRENT_DESKTOP": "GNOME"}, "dev"),
        ({"XDG_CURRENT_DESKTOP": "GNOME", "GITHUB_ACTIONS": "true"}, "ci"),
        ({"DISPLAY": ":99"}, "unknown"),
        ({}, "unknown"),
    ],
    ids=str,
)
def test_env(
    environ: dict[str, str], env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subluminal.trust.identity.agent.has_terminal", lambda: False)
    assert identity_of(environ, str(tmp_path)).env == env


@pytest.mark.parametrize(
    ("environ", "source"),
    [
        ({"SUB_ENV": "prod"}, "given"),
        ({"SUB_ENV": "staging"}, "given"),
        ({"GITHUB_ACTIONS": "true"}, "ci"),
        ({"XDG_CURRENT_DESKTOP": "GNOME"}, "desktop"),
        ({}, None),
    ],
    ids=str,
)
def test_how_env_is_known(
    environ: dict[str, str], source: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subluminal.trust.identity.agent.has_terminal", lambda: False)
    assert identity_of(environ, str(tmp_path)).env_source == source


def test_agent_and_principal(tmp_path: Path) -> None:
    given = identity_of({"SUB_AGENT_ID": "fixer", "SUB_PRINCIPAL": "svc", "USER": "u"}, "/")
    assert (given.agent_id, given.principal) == ("fixer", "svc")
    plain = identity_of({"USER": "u"}, str(tmp_path))
    assert (plain.agent_id, plain.principal) == ("unknown", "u")
    # Without USER, the password database names the user.
    assert identity_of({}, str(tmp_path)).principal == pwd.getpwuid(os.getuid()).pw_name


def test_a_service_account_is_the_principal_of_a_pod(tmp_path: Path) -> None:
    pod = {"POD_NAMESPACE": "shop", "POD_SERVICE_ACCOUNT": "fixer"}
    found = identity_of(pod, str(tmp_path))
    assert found.principal == "system:serviceaccount:shop:fixer"
    assert identity_of({**pod, "USER": "ada"}, str(tmp_path)).principal == "ada"
    ci = {**pod, "GITHUB_ACTIONS": "true", "GITHUB_ACTOR": "bob"}
    assert identity_of(ci, str(tmp_path)).principal == "bob"


@pytest.mark.parametrize("text", ["", "no json", "[]", "{}", '{"repo":1}'])
def test_a_workload_that_cannot_be_read_is_absent(text: str, tmp_path: Path) -> None:
    workload = identity_of({"SUB_WORKLOAD": text, "USER": "u"}, str(tmp_path)).workload
    assert workload.user == "u"


def test_a_given_workload_is_taken_whole(tmp_path: Path) -> None:
    environ = {"SUB_WORKLOAD": '{"repo":"acme/x"}', "USER": "u", "GITHUB_ACTIONS": "1"}
    identity = identity_of(environ, str(tmp_path))
    assert identity.workload == Workload(repo="acme/x")
    assert identity.env != "ci"


def test_the_client_s_process_may_be_another_one_than_the_parent(tmp_path: Path) -> None:
    """A hook shim is not a child of the client."""
    program = tmp_path / "opencode"
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as client:
        try:
            assert identity_of({}, str(tmp_path), client.pid).client == "opencode"
            assert identity_of({}, str(tmp_path)).client != "opencode"
        finally:
            client.kill()


def test_names_that_are_not_valid_utf8_can_be_recorded(tmp_path: Path) -> None:
    """Directories and variables may hold any bytes."""
    project = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    os.makedirs(os.path.join(project, b".git"))
    odd = os.fsdecode(b"a\xff")
    environ = {"SUB_AGENT_ID": odd, "SUB_PRINCIPAL": odd, "SUB_WORKLOAD": odd, "USER": "u"}
    found = identity_of(environ, os.fsdecode(project))
    assert (found.agent_id, found.principal) == (r"a\udcff", r"a\udcff")
    assert found.workload.repo_path == str(tmp_path / r"caf\udce9")
    assert found.workload.user == "u"
