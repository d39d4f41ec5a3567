"""Runs scenarios in one process, in the interpreter that has the frameworks.

It reads a JSON line for each scenario, and answers with one. Importing a framework takes seconds;
so all tests of one framework share this process. `example` runs a program of examples/agents as
`python with_….py` would; anything else is a function of `scenarios_….py`.
"""

import contextlib
import importlib
import io
import json
import os
import runpy
import sys
import traceback
from typing import Any


def main() -> None:
    """Answers until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a child process prints is not an answer
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(answer(asked)), file=answers, flush=True)


def answer(asked: dict[str, Any]) -> dict[str, str]:
    """Runs one scenario; returns what it printed, and what left it."""
    os.environ.update(asked["environ"])
    printed, problem = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            if asked["scenario"] == "example":
                sys.argv = [asked["file"], *asked["words"]]
                runpy.run_path(asked["file"], run_name="__main__")
            else:
                module = importlib.import_module(asked["module"])
                getattr(module, asked["scenario"])(*asked["words"])
        except Exception:  # noqa: BLE001 - the test sees it
            problem = traceback.format_exc()
    return {"said": printed.getvalue().strip(), "problem": problem}


if __name__ == "__main__":
    main()
