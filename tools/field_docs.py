"""Reads the docstrings under fields and enum members, which Python itself does not keep."""

import ast
import importlib
import inspect
import re
import textwrap
from functools import cache
from itertools import pairwise
from types import ModuleType


@cache
def docs_of_module(module: str) -> dict[tuple[str, str], str]:
    """Returns the documentation of every (class, field) in a module's source."""
    source = inspect.getsource(importlib.import_module(module))
    return {
        (node.name, name): doc
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
        for name, doc in _documented(node.body)
    }


def doc_of(owner: type, field: str) -> str:
    """Returns a field's documentation on one line, from its class or a base class."""
    for base in owner.__mro__:
        doc = docs_of_module(base.__module__).get((base.__name__, field)) if _ours(base) else None
        if doc:
            return doc
    return ""


def constants_of(module: ModuleType) -> list[tuple[str, object, str]]:
    """Returns every documented constant of a module: name, value, documentation."""
    body = ast.parse(inspect.getsource(module)).body
    return [(name, getattr(module, name), doc) for name, doc in _documented(body)]


def one_line(doc: str) -> str:
    """Folds the lines of a paragraph into one."""
    return re.sub(r"\s*\n\s*", " ", doc.strip())


def paragraphs(doc: str) -> list[str]:
    """Splits documentation at its empty lines."""
    return [one_line(part) for part in re.split(r"\n\s*\n", textwrap.dedent(doc).strip())]


def _ours(base: type) -> bool:
    return base.__module__.startswith("subluminal.")


def _documented(body: list[ast.stmt]) -> list[tuple[str, str]]:
    found = []
    for node, below in pairwise(body):
        name = _assigned(node)
        if name and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found.append((name, str(below.value.value)))
    return found


def _assigned(node: ast.stmt) -> str:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""
