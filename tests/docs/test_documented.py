"""What the documentation shows is true: links lead somewhere, examples print what they show."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench" / "README.md"])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
DECISIONS = [
    str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs" / "decisions").glob("*.md"))
]
SOURCE = re.compile(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.py)?|[a-z_]+\.py)`")
"""A file or a folder in backticks, as seen from the root or from src/subluminal."""
EXAMPLE = re.compile(
    r"^\$ echo ('.*?') \| (?:\.venv/bin/)?(sub .*)\n((?:[^$`].*\n)+)", re.MULTILINE
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "docs/concepts/canonical-json.md"])
def test_examples_print_what_they_show(sub: Any, page: str) -> None:
    examples = EXAMPLE.findall((ROOT / page).read_text("utf-8"))
    assert examples
    for text, command, expected in examples:
        (stdin,) = shlex.split(text)
        ran = sub(*shlex.split(command)[1:], stdin=stdin.encode())
        assert ran.out.rstrip("\n") == expected.rstrip("\n")


def test_every_adr_is_in_the_list() -> None:
    folder = ROOT / "docs" / "adr"
    listed = LINK.findall((folder / "README.md").read_text("utf-8"))
    assert sorted(link for link in listed if "/" not in link) == sorted(
        file.name for file in folder.glob("*.md") if file.name != "README.md"
    )


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", *DECISIONS])
def test_source_files_that_are_named_exist(page: str) -> None:
    """Pages that tell where something lives must not outlive a move."""
    named = SOURCE.findall((ROOT / page).read_text("utf-8"))
    places = (ROOT, ROOT / "src" / "subluminal")
    assert [name for name in named if not any((at / name).exists() for at in places)] == []
