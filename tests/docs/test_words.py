"""One word per idea, and plain English. The list is words.toml; this keeps it."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.docs.prose import SOURCE, Prose, page_prose, source_prose

LIST: dict[str, list[dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("words.toml").read_text("utf-8")
)
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SPLIT_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def is_in(path: str, places: list[str]) -> bool:
    """Whether a file is one of `places`, or lies in one of them."""
    return any(path == place or path.startswith(f"{place}/") for place in places)


@cache
def defined() -> tuple[tuple[str, int, ast.AST, str], ...]:
    """Returns path, line, node and name of every class and function, and of every module."""
    found: list[tuple[str, int, ast.AST, str]] = []
    for file in sorted(SOURCE.rglob("*.py")):
        path = str(file.relative_to(SOURCE))
        tree = ast.parse(file.read_text("utf-8"))
        found.append((path, 1, tree, file.stem))
        found += [
            (path, node.lineno, node, node.name)
            for node in ast.walk(tree)
            if isinstance(node, DEFINITIONS)
        ]
    return tuple(found)


def named(word: str) -> Iterator[str]:
    """Yields where a class, function or module has the word in its name."""
    for path, line, _, name in defined():
        if word in (part.lower() for part in SPLIT_NAME.findall(name)):
            yield f"{path}:{line}: {name}"


def said(pattern: str, prose: tuple[Prose, ...]) -> Iterator[str]:
    """Yields where the prose has a pattern, with some of the text around it."""
    wanted = re.compile(pattern, re.IGNORECASE)
    for path, line, text in prose:
        for hit in wanted.finditer(text):
            around = text[max(0, hit.start() - 40) : hit.end() + 40]
            yield f"{path}:{line}: …{around}…"


@pytest.mark.parametrize("entry", LIST["words"], ids=lambda entry: entry["word"])
def test_words_of_others_are_not_used(entry: dict[str, Any]) -> None:
    word, places = entry["word"], entry.get("in", [])
    found = [*named(word), *said(rf"\b{word}s?\b", source_prose())]
    assert [hit for hit in found if not is_in(hit.partition(":")[0], places)] == [], entry["say"]


@pytest.mark.parametrize("entry", LIST["classes"], ids=lambda entry: entry["name"])
def test_a_class_name_has_one_sense(entry: dict[str, Any]) -> None:
    found = defaultdict(list)
    for path, line, node, name in defined():
        if isinstance(node, ast.ClassDef):
            found[name].append(f"{path}:{line}")
    places = found[entry["name"]]
    assert len(places) <= 1, places
    if "in" in entry:
        elsewhere = [at for at in places if not is_in(at.partition(":")[0], entry["in"])]
        assert elsewhere == [], entry["because"]


@pytest.mark.parametrize("entry", LIST["phrases"], ids=lambda entry: entry["regex"])
def test_quaint_phrases_do_not_come_back_in_the_source(entry: dict[str, str]) -> None:
    assert list(said(entry["regex"], source_prose())) == [], entry["say"]


@pytest.mark.parametrize("entry", LIST["phrases"], ids=lambda entry: entry["regex"])
def test_quaint_phrases_do_not_come_back_in_the_pages(entry: dict[str, str]) -> None:
    assert list(said(entry["regex"], page_prose())) == [], entry["say"]


def test_every_exception_is_still_needed() -> None:
    """A file that no longer uses a word must leave the list; rooms may not exist yet."""
    for entry in LIST["words"]:
        found = [*named(entry["word"]), *said(rf"\b{entry['word']}s?\b", source_prose())]
        for place in entry.get("in", []):
            if (SOURCE / place).exists():
                used = any(is_in(hit.partition(":")[0], [place]) for hit in found)
                assert used, f"{entry['word']} is not used in {place} any more"
