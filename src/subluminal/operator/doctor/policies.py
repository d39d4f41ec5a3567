"""The policies in force, and the proof that what they deny is denied: by a real shim."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from subluminal.config import env
from subluminal.config.places import Places
from subluminal.core.policies.files import policy_files, read_policy
from subluminal.errors import SubluminalError
from subluminal.operator.doctor.checks import Check
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.loading import parse_bundle

_DENY_ALL = """\
policy_id: doctor
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  - rule_id: nothing
    kind: deny
    enabled: true
    severity: critical
    match: {}
    effect: {action: BLOCK, reason_code: SELF_TEST, message: nothing passes}
"""
# Says that it was reached, in a file: a denied call must not get that far.
_UPSTREAM = "import sys;[open(sys.argv[1],'w') for l in sys.stdin if 'tools/call' in l]"
_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "self_test"}}
_BLOCKED = -32081
_TIMEOUT_S = 30.0


def check(places: Places) -> Iterator[Check]:
    """Every layer, compiled."""
    explicit = os.environ.get(env.SUB_POLICY.name)
    files = policy_files(places, os.getcwd(), explicit)
    found = [file for file in files if file.explicit or os.path.exists(file.path)]
    for file in found:
        name = f"policy ({file.layer})"
        try:
            bundle = parse_bundle(read_policy(file.path), file.path).bundle
            compile_bundle(bundle)
        except SubluminalError as problem:
            hint = f"`sub policy lint {file.path}`; until then a new run refuses every call"
            yield Check(name, False, str(problem), hint)
            continue
        except OSError as error:
            yield Check(name, False, f"`{file.path}`: {(error.strerror or '').lower()}")
            continue
        rules = f"{len(bundle.rules)} rules"
        detail = f"{bundle.policy_id} {bundle.version}, {bundle.mode}, {rules}: `{file.path}`"
        yield Check(name, True, detail)
    if not found:
        yield Check("policy", True, f"none: calls are recorded, not decided (`{places.policy}`)")


def check_deny(_places: Places) -> Iterator[Check]:
    """A shim of its own, in a home of its own, before a server that would tell."""
    with tempfile.TemporaryDirectory(prefix="subluminal-doctor-") as home:
        reached = os.path.join(home, "reached")
        with open(os.path.join(home, "policy.yaml"), "w", encoding="utf-8") as file:
            file.write(_DENY_ALL)
        answer = _ask(home, [sys.executable, "-I", "-S", "-c", _UPSTREAM, reached])
        denied = _is_denied(answer) and not os.path.exists(reached)
    detail = "a denied call was refused, and the server never saw it"
    if denied:
        yield Check("self-test", True, detail)
    else:
        yield Check(
            "self-test",
            False,
            "a denied call was not refused",
            "do not rely on this installation; `sub demo` shows what happens",
        )


def _ask(home: str, upstream: list[str]) -> bytes:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SUB_")}
    shim = [sys.executable, "-P", "-m", "subluminal", "shim", "stdio", "--server", "doctor"]
    try:
        ran = subprocess.run(
            [*shim, "--home", home, "--", *upstream],
            input=json.dumps(_CALL).encode() + b"\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, env.SUB_HOME.name: home},
            cwd=home,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return b""
    return ran.stdout


def _is_denied(answer: bytes) -> bool:
    try:
        error = json.loads(answer)["error"]
    except (ValueError, KeyError):
        return False
    return bool(error["code"] == _BLOCKED and error["data"]["subluminal"]["rule_id"] == "nothing")
