"""The line of a key in TOML text."""

import pytest

from subluminal.config.toml_lines import line_of

TEXT = """\
top = 1
[a]
b = 2
"quoted key" = 3
'literal' = 4
c.d = 5

[[list]]
x = 1
[list.inner]
y = 2

[[list]]
x = 3
[[list.deep]]
z = 4
[a.sub] # comment
w = 1
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 1),
        (("a",), 2),
        (("a", "b"), 3),
        (("a", "quoted key"), 4),
        (("a", "literal"), 5),
        (("a", "c", "d"), 6),
        (("list", 0), 8),
        (("list", 0, "x"), 9),
        (("list", 0, "inner", "y"), 11),
        (("list", 1), 13),
        (("list", 1, "x"), 14),
        (("list", 1, "deep", 0, "z"), 16),
        (("a", "sub", "w"), 18),
        (("a", "sub", "missing"), 17),
        (("missing",), 0),
        ((), 0),
    ],
)
def test_line_of(path: tuple[str | int, ...], line: int) -> None:
    assert line_of(TEXT, path) == line
