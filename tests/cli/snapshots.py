"""Whole screens as files: exit code, stdout, stderr. `SNAPSHOTS=write pytest …` writes them anew."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


def check(name, ran, **replaced):
    """Compares what a command did with its file; escape characters are written as `␛`."""
    text = f"exit code {ran.code}\n--- stdout\n{ran.out}--- stderr\n{ran.err}"
    for word, what in replaced.items():
        text = text.replace(str(what), f"<{word}>")
    text = text.replace("\x1b", "␛")
    file = FOLDER / f"{name}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")
