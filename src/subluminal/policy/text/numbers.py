"""Replaces numbers in the text of a policy, and leaves every other byte as it is.

The result is read again: it must be the same policy with these numbers, otherwise the change is
refused. Pure: bytes in, bytes out.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from subluminal.canonical import encode, parse
from subluminal.contracts.shape import Path
from subluminal.errors import SubluminalError
from subluminal.policy.text.inserting import canonical_value, reads_as_json, without_escapes
from subluminal.policy.text.places import path_text
from subluminal.policy.text.reading import BOM, read_document
from subluminal.policy.text.yaml_nodes import LOADER


class _Span(NamedTuple):
    start: int
    end: int


def replace_numbers(data: bytes, numbers: Mapping[Path, int]) -> bytes:
    """Returns a policy file with other numbers at these paths. Raises SubluminalError."""
    bom = BOM if data.startswith(BOM) else b""
    text = data[len(bom) :].decode("utf-8")
    readable = without_escapes(text) if reads_as_json(text) else text
    spans = {path: span for path, span in _scalars(readable) if path in numbers}
    made = text
    for path, span in sorted(spans.items(), key=lambda each: each[1].start, reverse=True):
        made = f"{made[: span.start]}{numbers[path]}{made[span.end :]}"
    result = bom + made.encode()
    if len(spans) == len(numbers) and canonical_value(result) == _wanted(data, numbers):
        return result
    told = ", ".join(f"`{path_text(path)}: {number}`" for path, number in numbers.items())
    raise SubluminalError(
        "these numbers are written in a way that cannot be edited safely",
        hint=f"change them by hand: {told}",
    )


def _wanted(data: bytes, numbers: Mapping[Path, int]) -> bytes:
    # Aliases share one value when they are read. Encoded and parsed, each has its own.
    value = parse(encode(read_document(data, "")[0].value)).value
    for (*path, last), number in numbers.items():
        inner = value
        for part in path:
            inner = inner[part]
        inner[last] = number
    return encode(value)


def _scalars(text: str) -> Iterator[tuple[Path, _Span]]:
    """Yields the path and the place of every scalar that is a value."""
    above: list[tuple[Path, bool]] = []
    """the open containers: the path of each, and whether it is a mapping"""
    steps: list[Any] = []
    """for each open container the next index, or the key that waits for its value"""
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionEndEvent):
            above.pop()
            steps.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        path: Path = ()
        if above:
            inside, is_mapping = above[-1]
            if is_mapping and steps[-1] is None:
                steps[-1] = getattr(event, "value", "")
                continue
            path = (*inside, steps[-1])
            steps[-1] = None if is_mapping else steps[-1] + 1
        if isinstance(event, yaml.ScalarEvent):
            yield path, _span(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            is_map = isinstance(event, yaml.MappingStartEvent)
            above.append((path, is_map))
            steps.append(None if is_map else 0)


def _span(event: Any) -> _Span:
    return _Span(event.start_mark.index, event.end_mark.index)
