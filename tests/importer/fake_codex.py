"""A stand-in for `codex app-server`: lists the hooks of `hooks.json` as Codex 0.166 does.

Recorded from the real program: notifications come between the answers, a hook is trusted if
`config.toml` has its hash, and hooks that are switched off as a feature are not listed.
"""

import sys
from pathlib import Path

SCRIPT = """\
#!{python}
import hashlib, json, os, re, sys, tomllib

assert sys.argv[1:] == ["app-server"]
home = os.environ.get("CODEX_HOME") or os.path.join(os.environ["HOME"], ".codex")


def read(name):
    try:
        with open(os.path.join(home, name), "rb") as file:
            return file.read().decode()
    except FileNotFoundError:
        return ""


def hooks():
    config = tomllib.loads(read("config.toml"))
    if config.get("features", {{}}).get("hooks") is False:
        return
    state = config.get("hooks", {{}}).get("state", {{}})
    for event, groups in json.loads(read("hooks.json") or "{{}}").get("hooks", {{}}).items():
        snake = re.sub("(?<!^)(?=[A-Z])", "_", event).lower()
        for at, group in enumerate(groups):
            for within, hook in enumerate(group["hooks"]):
                path = os.path.join(home, "hooks.json")
                key = f"{{path}}:{{snake}}:{{at}}:{{within}}"
                known = state.get(key, {{}})
                digest = "sha256:" + hashlib.sha256((key + hook["command"]).encode()).hexdigest()
                trusted = known.get("trusted_hash")
                status = "trusted" if trusted == digest else "modified" if trusted else "untrusted"
                yield {{
                    "key": key, "command": hook["command"], "sourcePath": path,
                    "enabled": known.get("enabled", True), "currentHash": digest,
                    "trustStatus": status,
                }}


ready = False
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        answer = {{"id": message["id"], "result": {{"codexHome": home}}}}
    elif message["method"] == "initialized":
        ready = True
        answer = {{"method": "configWarning", "params": {{}}}}
    else:
        assert ready and message["method"] == "hooks/list"
        data = [{{"cwd": message["params"]["cwds"][0], "hooks": list(hooks())}}]
        answer = {{"id": message["id"], "result": {{"data": data}}}}
    print(json.dumps(answer), flush=True)
"""


def install(folder: Path, script: str = SCRIPT) -> Path:
    """Writes the stand-in into a directory of PATH."""
    path = folder / "codex"
    path.write_text(script.format(python=sys.executable))
    path.chmod(0o755)
    return path
