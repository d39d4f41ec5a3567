"""Breaks the product on purpose, once for every requirement, and sees the mapped tests fail.

tests/mutants.toml names, for each entry of tests/requirements.py, a line of the product and what to
write in its place. Each mutant is made in a copy of the repository, and the tests that claim the
requirement run there. A mutant survives if they all pass: then no test holds the requirement.

    python -m tools.mutate                 all mutants, in two copies side by side
    python -m tools.mutate --sample 10     ten of them, chosen by the tree's own content
    python -m tools.mutate 1.5:seq         those of one requirement
"""

import argparse
import hashlib
import os
import queue
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
MUTANTS = ROOT / "tests" / "mutants.toml"
COPIES = ROOT / ".work" / "mutants"
PRODUCT = Path("src", "subluminal")
WITHIN_S = 600.0
"""Bound of one mutant's tests; a mutant may make a test wait until its own bound."""


_QUIET = ("-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line")


class Mutant(NamedTuple):
    """One line of the product, broken."""

    requirement: str
    file: str
    """path below src/subluminal"""
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.requirement}  {self.file}: {self.old.strip().splitlines()[0]}"


class Verdict(NamedTuple):
    """What the tests said of one mutant."""

    mutant: Mutant
    is_killed: bool
    problem: str = ""


def load_mutants() -> list[Mutant]:
    """Reads tests/mutants.toml."""
    with MUTANTS.open("rb") as file:
        return [Mutant(**entry) for entry in tomllib.load(file)["mutant"]]


def apply(mutant: Mutant, tree: Path) -> str:
    """Breaks one line of a tree. Returns the file's text as it was."""
    path = tree / PRODUCT / mutant.file
    text = path.read_text("utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: found {text.count(mutant.old)} times, not once")
    path.write_text(text.replace(mutant.old, mutant.new), "utf-8")
    return text


class Copy:
    """A copy of the repository with an interpreter that imports the product from there."""

    def __init__(self, place: Path) -> None:
        self.place = place
        shutil.rmtree(place, ignore_errors=True)
        named = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout.decode()
        for name in filter(None, named.split("\0")):
            if (ROOT / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, place / name)
        self._make_interpreter()

    def _make_interpreter(self) -> None:
        """Makes a venv that has every package of ours, but the product from the copy."""
        venv = self.place / ".venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
        (ours,) = Path(sys.prefix, "lib").glob("python*/site-packages")
        (theirs,) = (venv / "lib").glob("python*/site-packages")
        (theirs / "copy.pth").write_text(f"{self.place / 'src'}\n{ours}\n")
        # Packs are found among what is installed, so the copy is.
        (info,) = ours.glob("subluminal-*.dist-info")
        origin = f'{{"url": "{self.place.as_uri()}", "dir_info": {{"editable": true}}}}'
        shutil.copytree(info, theirs / info.name)
        (theirs / info.name / "direct_url.json").write_text(origin)
        self.python = venv / "bin" / "python"
        # Real servers and the like are installed once, for the repository and all its copies.
        (self.place / ".work").symlink_to(ROOT / ".work")
        (venv / "bin" / "uv").symlink_to(Path(sys.prefix, "bin", "uv"))
        for name in ("sub", "pytest"):
            script = Path(sys.prefix, "bin", name).read_text("utf-8")
            made = venv / "bin" / name
            made.write_text(f"#!{self.python}\n" + script.partition("\n")[2], "utf-8")
            made.chmod(0o755)

    def passes(self, requirement: str) -> tuple[bool, str]:
        """Runs the tests that claim a requirement. Returns whether they pass, and their end."""
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "SUB_"))}
        ran = subprocess.run(
            [self.python, "-m", "pytest", *_QUIET, "--requirement", requirement, "tests"],
            cwd=self.place,
            env={**environ, "VIRTUAL_ENV": str(self.place / ".venv")},
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        if ran.returncode not in (0, 1):
            raise RuntimeError(f"pytest: exit code {ran.returncode}: {ran.stdout[-2000:]}")
        return ran.returncode == 0, ran.stdout[-1500:]


def judge(copy: Copy, mutant: Mutant) -> Verdict:
    """Makes a mutant in a copy, runs its tests, and mends the copy."""
    path = copy.place / PRODUCT / mutant.file
    whole = apply(mutant, copy.place)
    try:
        passed, _ = copy.passes(mutant.requirement)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return Verdict(mutant, False, str(error))
    finally:
        path.write_text(whole, "utf-8")
    return Verdict(mutant, not passed)


def sample(mutants: list[Mutant], number: int) -> list[Mutant]:
    """Chooses mutants by the content of the tree: the same commit always tries the same ones."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    def rank(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{head}{mutant.name}".encode()).digest()

    return sorted(mutants, key=rank)[:number]


def main() -> int:
    """Runs mutants and tells which survived."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate")
    parser.add_argument("requirement", nargs="*", help="only the mutants of these")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of them")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="copies side by side")
    asked = parser.parse_args()
    mutants = [
        m for m in load_mutants() if not asked.requirement or m.requirement in asked.requirement
    ]
    if asked.sample is not None:
        mutants = sample(mutants, asked.sample)
    if not mutants:
        print("no such mutant", file=sys.stderr)
        return 2
    survivors = [verdict for verdict in _run(mutants, asked.jobs) if not verdict.is_killed]
    print(f"{len(mutants)} mutants, {len(mutants) - len(survivors)} killed by their mapped tests")
    for verdict in survivors:
        print(f"survived: {verdict.mutant.name}\n{verdict.problem}".rstrip())
    return 1 if survivors else 0


def _run(mutants: list[Mutant], jobs: int) -> list[Verdict]:
    copies: queue.Queue[Copy] = queue.Queue()
    for number in range(min(jobs, len(mutants))):
        copies.put(Copy(COPIES / str(number)))
    _require_green(copies.queue[0], sorted({mutant.requirement for mutant in mutants}))

    def one(mutant: Mutant) -> Verdict:
        copy = copies.get()
        try:
            verdict = judge(copy, mutant)
        finally:
            copies.put(copy)
        print("killed  " if verdict.is_killed else "SURVIVED", mutant.name, flush=True)
        return verdict

    with ThreadPoolExecutor(max_workers=jobs) as threads:
        return list(threads.map(one, mutants))


def _require_green(copy: Copy, requirements: list[str]) -> None:
    """Refuses to go on if the tests fail without a mutant: then a kill would say nothing."""
    passed, told = copy.passes(",".join(requirements))
    if not passed:
        raise SystemExit(f"the mapped tests fail without a mutant:\n{told}")


if __name__ == "__main__":
    sys.exit(main())
