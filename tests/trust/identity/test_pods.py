"""What Kubernetes tells a pod: the downward API's files and variables, the service account."""

import base64
import json
import os
from pathlib import Path

import pytest
from tests.requirements import requirement

from subluminal.trust.identity.pods import Pod, PodFiles, find_pod, parse_labels


def token(claims: object) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'RS256'})}.{part(claims)}.c2lnbmF0dXJl"


BOUND = {
    "aud": ["https://kubernetes.default.svc"],
    "iss": "https://kubernetes.default.svc",
    "kubernetes.io": {
        "namespace": "prod",
        "node": {"name": "n", "uid": "0"},
        "pod": {"name": "agent-7c9", "uid": "1"},
        "serviceaccount": {"name": "runner", "uid": "2"},
    },
    "sub": "system:serviceaccount:prod:runner",
}
NESTED = b'{"z":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
DEEP = f"a.{base64.urlsafe_b64encode(NESTED).decode()}.c"
LEGACY = {
    "iss": "kubernetes/serviceaccount",
    "kubernetes.io/serviceaccount/namespace": "prod",
    "kubernetes.io/serviceaccount/service-account.name": "runner",
    "sub": "system:serviceaccount:prod:runner",
}


class Mounts:
    """The volumes of a service account and of the downward API."""

    def __init__(self, path: Path) -> None:
        self.account, self.info = path / "account", path / "info"
        self.account.mkdir()
        self.info.mkdir()

    def find(self, **environ: str) -> Pod:
        return find_pod(environ, PodFiles(str(self.account), str(self.info)))


@pytest.fixture
def mounts(tmp_path: Path) -> Mounts:
    return Mounts(tmp_path)


def test_outside_kubernetes(mounts: Mounts) -> None:
    assert mounts.find() == Pod(None, None, None, None)


@requirement("001-8.2:ci")
def test_the_files_of_the_downward_api(mounts: Mounts) -> None:
    (mounts.info / "namespace").write_text("prod")
    (mounts.info / "name").write_text("agent-1")
    (mounts.info / "serviceaccount").write_text("runner\n")
    (mounts.info / "labels").write_text('app="agent"\napp.kubernetes.io/part-of="tools"\ntier=""')
    assert mounts.find() == Pod(
        "prod",
        "runner",
        "agent-1",
        {"app": "agent", "app.kubernetes.io/part-of": "tools", "tier": ""},
    )


def test_variables_go_before_files(mounts: Mounts) -> None:
    for name in ("namespace", "name", "serviceaccount"):
        (mounts.info / name).write_text("file")
    assert mounts.find(POD_NAMESPACE="a", POD_NAME="b", POD_SERVICE_ACCOUNT="c")[:3] == (
        *("a", "c"),
        "b",
    )


def test_a_pod_without_a_downward_api_has_its_service_account(mounts: Mounts) -> None:
    (mounts.account / "namespace").write_text("prod")
    (mounts.account / "token").write_text(token(BOUND))
    assert mounts.find() == Pod("prod", "runner", "agent-7c9", None)


@pytest.mark.parametrize(
    ("claims", "pod"),
    [
        (LEGACY, Pod("prod", "runner", None, None)),
        ({"sub": "somebody"}, Pod(None, None, None, None)),
        ({"sub": "system:serviceaccount:prod"}, Pod(None, None, None, None)),
        ({"kubernetes.io": {"pod": {"name": "p"}}}, Pod(None, None, "p", None)),
        ([], Pod(None, None, None, None)),
    ],
)
def test_what_a_token_shows_of_its_owner(mounts: Mounts, claims: object, pod: Pod) -> None:
    (mounts.account / "token").write_text(token(claims))
    assert mounts.find() == pod


@pytest.mark.parametrize("text", ["", "no token", "a.b.c", "a.é.c", "....", "a.AAAA.c", DEEP])
def test_a_token_that_is_none(mounts: Mounts, text: str) -> None:
    (mounts.account / "token").write_text(text)
    assert mounts.find() == Pod(None, None, None, None)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ('a="1"\nb="x=y"', {"a": "1", "b": "x=y"}),
        (r'a="say \"hi\" \\ there"', {"a": r'say "hi" \ there'}),
        (r'a="one\ntwo\tthree\a\b\f\r\v"', {"a": "one\ntwo\tthree\a\b\f\r\v"}),
        (r'a="\xc3\xa9\u00e9\U0001f600"', {"a": "éé\U0001f600"}),
        ('a="é \u2028 it"', {"a": "é \u2028 it"}),
        (
            r'a="\q"' + "\n" + r'b="\x"' + "\n" + r'c="\U99999999"',
            {"a": r"\q", "b": r"\x", "c": r"\U99999999"},
        ),
        ("a=bare\nno line\n\n", {"a": "bare"}),
        ('a="', {"a": '"'}),
    ],
    ids=range(8),
)
def test_labels_as_go_quotes_them(text: str, labels: dict[str, str]) -> None:
    assert parse_labels(text) == labels


def test_what_is_longer_than_kubernetes_allows_is_left_out(mounts: Mounts) -> None:
    for name in ("namespace", "serviceaccount", "name"):
        (mounts.info / name).write_text("x" * 254)
    (mounts.info / "labels").write_text(f'a="1"\nb="{"x" * 64}"\n{"k" * 318}="1"\nc="2"')
    assert mounts.find() == Pod(None, None, None, {"a": "1", "c": "2"})


def test_more_labels_than_an_event_can_carry(mounts: Mounts) -> None:
    """A label is either complete or left out."""
    (mounts.info / "labels").write_text("".join(f'key{n}="{n:040}"\n' for n in range(10_000)))
    labels = mounts.find().labels
    assert labels is not None
    assert len(str(labels)) < 20_000
    assert labels == {f"key{n}": f"{n:040}" for n in range(len(labels))}


def test_pipes_are_not_waited_for(mounts: Mounts) -> None:
    for directory, name in (
        (mounts.info, "labels"),
        (mounts.info, "name"),
        (mounts.account, "token"),
        (mounts.account, "namespace"),
    ):
        os.mkfifo(directory / name)
    assert mounts.find() == Pod(None, None, None, None)
