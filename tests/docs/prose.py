"""Takes the prose out of source files: docstrings, comments and messages, with their lines."""

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "subluminal"


class Prose(NamedTuple):
    """A piece of text that a person reads, with its whitespace normalised."""

    path: str
    line: int
    text: str


@cache
def source_prose() -> tuple[Prose, ...]:
    """Returns the prose of every Python file under src/subluminal; paths begin there."""
    return tuple(
        piece
        for file in sorted(SOURCE.rglob("*.py"))
        for piece in _prose_of(file.relative_to(SOURCE))
    )


@cache
def page_prose() -> tuple[Prose, ...]:
    """Returns every paragraph of the pages that people write; paths begin at the root."""
    written = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
    return tuple(
        Prose(path, line, " ".join(paragraph.split()))
        for file in sorted(written)
        if not (path := str(file.relative_to(ROOT))).startswith("docs/reference/")
        for line, paragraph in _paragraphs(file.read_text("utf-8"))
    )


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    line = 1
    for paragraph in text.split("\n\n"):
        yield line, paragraph
        line += paragraph.count("\n") + 2


def _prose_of(file: Path) -> Iterator[Prose]:
    text = (SOURCE / file).read_text("utf-8")
    for line, words in (*_comments(text), *_strings(ast.parse(text))):
        yield Prose(str(file), line, " ".join(words.split()))


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yields comments; those on consecutive lines as one, because sentences run on."""
    began, words, last = 0, "", -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, said = token.start[0], token.string.lstrip("#: ")
        if line == last + 1:
            words += f" {said}"
        else:
            yield began, words
            began, words = line, said
        last = line
    yield began, words


def _strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields docstrings and messages: texts of several words. Placeholders become `{}`."""
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            said = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside
        ):
            said = node.value
        else:
            continue
        if " " in said.strip():
            yield node.lineno, said
