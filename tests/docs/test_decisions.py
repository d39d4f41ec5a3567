"""The decisions that the code cites by name stand in docs/decisions, and each of them is cited."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "decisions"
SEARCHED = ("src", "tests", "docs", "tools", "bench")
TEXT = {".md", ".py", ".sh", ".sql", ".toml", ".yaml"}

PARENTHESES = re.compile(r"\(([^()]*)\)")
NAME = re.compile(r"[a-z]+(?:-[a-z]+)+")
"""What a decision is called: words with hyphens between them."""
NUMBER = re.compile(r"\bD(?:1[0-8]|[1-9])\b")
"""How decisions were cited before they had names."""

NOT_DECISIONS = {
    "few-writes",
    "gnome-keyring",
    "micro-tokens",
    "other-open",
    "rego-cpp",
    "stop-commands",
}
"""Hyphenated words that stand alone in parentheses and cite nothing."""


def decisions() -> set[str]:
    """Returns the names of all decisions: each is the name of a page."""
    return {page.stem for page in FOLDER.glob("*.md")} - {"README"}


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Returns path and text of every file that may cite a decision."""
    return tuple(
        (str(file.relative_to(ROOT)), file.read_text("utf-8"))
        for folder in SEARCHED
        for file in sorted((ROOT / folder).rglob("*"))
        if file.suffix in TEXT and file != Path(__file__)
    )


def cited_in_parentheses(text: str) -> Iterator[str]:
    """Yields what looks like the name of a decision: `(journal-first)`, `(fast-start, Pack 1.3)`."""
    for inside in PARENTHESES.findall(text):
        for part in re.split(r"[,;:]|\band\b|\bto\b", " ".join(inside.replace("#", " ").split())):
            if NAME.fullmatch(part.strip()):
                yield part.strip()


def test_every_page_is_in_the_index() -> None:
    index = (FOLDER / "README.md").read_text("utf-8")
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", index)) == decisions()


def test_every_page_opens_with_its_name() -> None:
    for name in decisions():
        assert (FOLDER / f"{name}.md").read_text("utf-8").startswith(f"# {name}: "), name


def test_every_citation_has_a_page() -> None:
    known = decisions() | NOT_DECISIONS
    unknown = [
        f"{path}: ({name})"
        for path, text in texts()
        for name in cited_in_parentheses(text)
        if name not in known
    ]
    assert unknown == [], "name a page of docs/decisions, or add the word to NOT_DECISIONS"


def test_every_page_is_cited_outside_its_folder() -> None:
    rest = " ".join(text for path, text in texts() if not path.startswith("docs/decisions/"))
    assert sorted(name for name in decisions() if name not in rest) == []


def test_decisions_are_not_cited_by_number() -> None:
    found = [
        f"{path}: {match}" for path, text in texts() for match in sorted(set(NUMBER.findall(text)))
    ]
    assert found == [], "cite the decision by its name, as docs/decisions/README.md says"
