"""Writes the generated files of the repository, or lists the stale ones.

`python -m tools.generated schema`, `… docs` and `… ci-files` write; a test calls `stale`. A
generator is a function that returns files by their path below the repository.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.ci_files import ci_files
from tools.reference import reference_pages
from tools.schema_files import schema_files

ROOT = Path(__file__).parents[1]

GENERATORS: dict[str, Callable[[], dict[str, str]]] = {
    "schema": schema_files,
    "docs": reference_pages,
    "ci-files": ci_files,
}
# Every file in these folders is generated: a file that no generator wrote is removed.
FOLDERS = {"schema": "schema", "docs": "docs/reference", "ci-files": "ci/gitlab"}


def write(name: str) -> int:
    """Writes stale files and removes leftover ones. Returns the number of changed files."""
    files = GENERATORS[name]()
    changed = [path for path in files if not _is_current(path, files[path])]
    for path in changed:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(files[path], "utf-8")
    left_over = list(_left_over(name, files))
    for path in left_over:
        (ROOT / path).unlink()
    return len(changed) + len(left_over)


def stale(name: str) -> list[str]:
    """Returns the files that `write` would change."""
    files = GENERATORS[name]()
    outdated = [path for path in files if not _is_current(path, files[path])]
    return sorted([*outdated, *_left_over(name, files)])


def _is_current(path: str, text: str) -> bool:
    file = ROOT / path
    return file.is_file() and file.read_text("utf-8") == text


def _left_over(name: str, files: dict[str, str]) -> Iterator[str]:
    for file in sorted((ROOT / FOLDERS[name]).rglob("*")):
        path = file.relative_to(ROOT).as_posix()
        if file.is_file() and path not in files:
            yield path


if __name__ == "__main__":
    for name in sys.argv[1:]:
        sys.stdout.write(f"{name}: {write(name)} files changed\n")
