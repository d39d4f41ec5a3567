"""A hook that records what a client tells it, and answers as the test wants.

`hook_recorder.py FOLDER [EVENT]`: every event becomes a file of FOLDER. `answers.json` there has
the answers by event: `stdout`, `stderr`, `exit`, `sleep` in seconds, and `when`, a text that the
event must contain.
"""

import json
import os
import sys
import time
from pathlib import Path


def parents() -> list[str]:
    """The names of the processes above this one, nearest first."""
    names, pid = [], os.getppid()
    while pid > 1:
        stat = Path(f"/proc/{pid}/stat").read_text()
        names.append(stat[stat.index("(") + 1 : stat.rindex(")")])
        pid = int(stat[stat.rindex(")") + 2 :].split()[1])
    return names


folder, event = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
told = sys.stdin.read()
event = event or json.loads(told)["hook_event_name"]
record = {"event": event, "stdin": told, "env": dict(os.environ), "parents": parents()}
name = f"{time.time_ns()}-{os.getpid()}"
(folder / f"{name}.new").write_text(json.dumps(record))
(folder / f"{name}.new").rename(folder / f"{name}.event")

answer = json.loads((folder / "answers.json").read_text()).get(event, {})
if answer.get("when", "") in told:
    time.sleep(answer.get("sleep", 0))
    sys.stderr.write(answer.get("stderr", ""))
    sys.stdout.write(answer.get("stdout", ""))
    sys.exit(answer.get("exit", 0))
