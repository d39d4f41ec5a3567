"""The guides about identity are true: their commands run as written, with tokens of a key of ours.

Programs that would ask GitHub, GitLab or a cluster are stand-ins that answer with our key set.
"""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.requirements import requirement
from tests.shim.household import SERVER
from tests.trust.issued import CLUSTER, GITHUB_CLAIMS, GITLAB_CLAIMS, POD_CLAIMS
from tests.trust.token_factory import JWKS, token

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
ACTIONS, POD = GUIDES / "identity-in-github-actions.md", GUIDES / "identity-in-a-pod.md"
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOUNTED = "/var/run/secrets/subluminal/token"
URL = "https://runner.example/token?api=1"

CURL = """
words = sys.argv[1:]
if "-o" in words:
    open(words[words.index("-o") + 1], "w").write(os.environ["OUR_JWKS"])
else:
    assert words[-1].endswith("?api=1&audience=subluminal") and "bearer for-the-job" in words[-2]
    print(json.dumps({"value": os.environ["OUR_TOKEN"]}))
"""
KUBECTL = """
path = sys.argv[-1]
print(os.environ["OUR_JWKS"] if path == "/openid/v1/jwks" else os.environ["OUR_DISCOVERY"])
"""
JQ = "print(json.load(sys.stdin)[sys.argv[-1].removeprefix('.')])"
AGENT = """
import subprocess
words = ["sub", "shim", "stdio", "--server", "ours", "--", *json.loads(os.environ["OUR_SERVER"])]
shim = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
call = {"name": os.environ["OUR_TOOL"], "arguments": {}}
text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
shim.stdin.write(text.encode() + b"\\n")
shim.stdin.flush()
answer = json.loads(shim.stdout.readline())
shim.stdin.close()
shim.wait()
json.dump({"env": dict(os.environ), "answer": answer}, open("agent.json", "w"))
"""
"""Calls one tool through a shim."""


def current(claims: dict[str, Any], **changes: Any) -> str:
    """A token that is valid now."""
    now = int(time.time())
    return token({**claims, "iat": now - 5, "nbf": now - 5, "exp": now + 600, **changes})


class Reader:
    """Somebody who follows a guide in an empty directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir()
        for name, body in (("curl", CURL), ("kubectl", KUBECTL), ("jq", JQ), ("claude", AGENT)):
            path = programs / name
            path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{body}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        self.env = dict(os.environ) | {
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OUR_JWKS": json.dumps(JWKS),
            "OUR_DISCOVERY": json.dumps({"issuer": CLUSTER}),
            "OUR_SERVER": json.dumps([sys.executable, "-I", "-S", SERVER, str(folder / "log")]),
        }

    def shell(self, script: str, **env: str) -> str:
        ran = subprocess.run(
            ["sh", "-eu", "-c", script],
            cwd=self.folder,
            env=self.env | env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, f"{script}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def sub(self, line: str) -> tuple[int, str]:
        words = shlex.split(line)
        assert words[0] == "sub"
        ran = subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60
        )
        return ran.returncode, ran.stdout + ran.stderr

    def follow(self, text: str) -> list[str]:
        """Writes the files and runs the commands of a text; returns what the commands printed."""
        printed = []
        for language, title, body in BLOCK.findall(text):
            if language == "yaml":
                (self.folder / title).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / title).write_text(body)
            elif language == "sh":
                printed.append(self.shell(body))
            elif language == "console":
                printed += [self.command(*each) for each in commands(body)]
        return printed

    def command(self, line: str, shown: str) -> str:
        code, out = self.sub(line.replace(MOUNTED, "token.jwt"))
        assert code == 0, out
        assert out.startswith(shown), out
        return out

    def agent(self) -> tuple[dict[str, str], str]:
        """The environment of the last agent, and whether its call passed or why not."""
        path = self.folder / "agent.json"
        found = json.loads(path.read_text())
        path.unlink()
        refusal = found["answer"].get("error")
        reason = "passed" if refusal is None else refusal["data"]["subluminal"]["reason_code"]
        return found["env"], reason


def commands(body: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the beginning of its output."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        yield line, shown


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def level(reader: Reader, *words: str) -> str:
    code, out = reader.sub(shlex.join(["sub", "agents", "show", "fixer", "--json", *words]))
    assert code == 0, out
    return str(json.loads(out)["trust"]["effective_trust"])


def verified(reader: Reader, text: str) -> tuple[int, str]:
    (reader.folder / "token.jwt").write_text(text)
    return reader.sub("sub agents verify fixer --token-file token.jwt")


@requirement("trust:guides")
def test_the_guide_for_github_actions(reader: Reader) -> None:
    github, _, gitlab = ACTIONS.read_text("utf-8").partition("\n## GitLab\n")
    good = current(GITHUB_CLAIMS)
    (reader.folder / "token.jwt").write_text(good)
    reader.follow(github)
    assert level(reader, "--token-file", "token.jwt") == "verified"
    assert level(reader) == "untrusted"
    for change in (
        {"repository": "mallory/shop"},
        {"sub": "repo:mallory/shop:pull_request"},
        {"aud": "sts.amazonaws.com"},
    ):
        assert verified(reader, current(GITHUB_CLAIMS, **change))[0] == 1

    workflow = yaml.safe_load((reader.folder / ".github/workflows/agent.yml").read_text())
    assert workflow["permissions"]["id-token"] == "write"
    job = workflow["jobs"]["fix"]
    steps = [each["run"] for each in job["steps"] if "run" in each]
    reader.env |= job["env"]
    asking = {"ACTIONS_ID_TOKEN_REQUEST_URL": URL, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "for-the-job"}
    for step in steps:
        reader.shell(step, OUR_TOOL="push", OUR_TOKEN=good, **asking)
    environ, reason = reader.agent()
    assert reason == "passed"
    assert not [name for name in environ if name.startswith(("ACTIONS_ID", "SUB_ATTESTATION"))]
    for step in steps:  # a fork's pull request: the same steps without a token
        reader.shell(step, OUR_TOOL="push")
    assert reader.agent()[1] == "NOT_PROVEN"

    reader.follow(gitlab)
    own = {**GITLAB_CLAIMS, "project_path": "acme/shop"}
    assert verified(reader, current(own))[0] == 0
    assert verified(reader, current({**own, "project_path": "mallory/shop"}))[0] == 1
    job = yaml.safe_load((reader.folder / ".gitlab-ci.yml").read_text())["fix"]
    assert job["variables"] == {"SUB_AGENT_ID": "fixer"}
    assert job["id_tokens"] == {"SUB_ATTESTATION": {"aud": "subluminal"}}
    for project, wanted in (("acme/shop", "passed"), ("mallory/shop", "NOT_PROVEN")):
        given = current({**own, "project_path": project})
        for line in job["script"]:
            reader.shell(line, OUR_TOOL="push", SUB_ATTESTATION=given)
        assert reader.agent()[1] == wanted


@requirement("trust:guides")
def test_the_guide_for_a_pod(reader: Reader) -> None:
    (reader.folder / "token.jwt").write_text(current(POD_CLAIMS))
    printed = reader.follow(POD.read_text("utf-8"))
    assert printed[0] == f"{CLUSTER}\n"
    assert level(reader, "--token-file", "token.jwt") == "verified"
    assert level(reader) == "untrusted"
    elsewhere = {**POD_CLAIMS["kubernetes.io"], "namespace": "default"}
    for change in (
        {"kubernetes.io": elsewhere},
        {"sub": "system:serviceaccount:default:fixer"},
        {"aud": ["https://kubernetes.default.svc"]},
    ):
        assert verified(reader, current(POD_CLAIMS, **change))[0] == 1
    pod = yaml.safe_load((reader.folder / "fixer.yaml").read_text())["spec"]
    (container,) = pod["containers"]
    name, variable = container["env"]
    (source,) = pod["volumes"][0]["projected"]["sources"]
    (mount,) = container["volumeMounts"]
    projected = source["serviceAccountToken"]
    assert variable == {"name": "SUB_ATTESTATION_FILE", "value": MOUNTED}
    assert f"{mount['mountPath']}/{projected['path']}" == MOUNTED
    assert projected["audience"] == "subluminal"
    head, _, _ = shlex.join(container["command"]).partition(" -- ")
    line = f"{head} -- claude".replace("/policy/policy.yaml", "policy.yaml")
    (reader.folder / "token.jwt").write_text(current(POD_CLAIMS))
    file = str(reader.folder / "token.jwt")
    for given, wanted in (({"SUB_ATTESTATION_FILE": file}, "passed"), ({}, "NOT_PROVEN")):
        reader.shell(line, OUR_TOOL="deploy", SUB_AGENT_ID=name["value"], **given)
        assert reader.agent()[1] == wanted
