"""The tree that the parser makes of a line, with a check that no text of the line is left out."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from subluminal.core.targets.found import Found

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

# A backslash before the end of a line joins the two lines; between words there must be a blank too.
_GAP = re.compile(rb"[ \t\n]*|(?:\\\n)*[ \t\n](?:[ \t\n]|\\\n)*")
EXPANSIONS = frozenset(
    (
        "simple_expansion",
        "expansion",
        "command_substitution",
        "process_substitution",
        "arithmetic_expansion",
    )
)
WORDS = EXPANSIONS | frozenset(
    (
        *("word", "number", "string", "raw_string", "ansi_c_string", "translated_string"),
        *("concatenation", "brace_expression", "extglob_pattern", "regex", "test_operator"),
        *("special_variable_name",),
    )
)
"""Kinds of nodes that are a word, or a part of one."""


@cache
def _language() -> object:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


def new_parser() -> "Parser":
    """Returns a parser. Threads must not share one, and a new one costs next to nothing."""
    import tree_sitter

    return tree_sitter.Parser(_language())  # type: ignore[arg-type]


class Tree:
    """The nodes of one line."""

    def __init__(self, data: bytes, found: Found) -> None:
        self.data = data
        self.found = found

    def text(self, node: "Node") -> str:
        """Returns the text of a node."""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")

    def children(self, node: "Node") -> "list[Node]":
        """Returns the children of a node. Text between two of them makes the call opaque."""
        children = node.children
        at = node.start_byte
        for child in children:
            start = child.start_byte
            if start != at and _GAP.fullmatch(self.data, at, start) is None:
                self.not_parsed()
            at = child.end_byte
            if not child.is_named and at - start != len(child.type):
                self.not_parsed()  # an operator that swallowed other text
        if at != node.end_byte and _GAP.fullmatch(self.data, at, node.end_byte) is None:
            self.not_parsed()
        return children

    def not_parsed(self) -> None:
        """Notes that the parser did not understand the line."""
        self.found.opaque("the line cannot be parsed")

    def unknown(self, node: "Node") -> None:
        """Notes a node of a kind that is not read."""
        if node.is_error:
            self.not_parsed()
        else:
            self.found.opaque(f"a {node.type.replace('_', ' ')} is not read")


def expansions_in(node: "Node", *, below: bool = False) -> "Iterator[Node]":
    """Yields the outermost expansions in a node; `below` leaves out the node itself."""
    if node.type in EXPANSIONS and not below:
        yield node
        return
    for child in node.children:
        yield from expansions_in(child)
