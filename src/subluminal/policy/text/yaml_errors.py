"""What libyaml says about text that is not YAML, in our words and with what to do about it."""

from yaml import YAMLError

from subluminal.errors import Problem

# (part of libyaml's message, what helps), the first that fits.
_HINTS = (
    ("alias", "a pattern that begins with `*` needs quotes"),
    ("anchor", "a value that begins with `&` needs quotes"),
    ("tag", "a value that begins with `!` needs quotes"),
    ("mapping values are not allowed", "a value that contains `: ` needs quotes"),
    ("unexpected end of stream", "a quote is not closed"),
    ("flow sequence", "a `]` or a comma is missing; a `*` or `[` inside needs quotes"),
    ("flow mapping", "a `}` or a comma is missing"),
    ("flow node", "a bracket is not closed"),
    ("escape", "use single quotes where `\\` stands for itself"),
    ("expected", "check the indentation of this line"),
)


def syntax_problem(error: YAMLError, text: str, file: str) -> Problem:
    """Says what a parser stumbled over, and where."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or "it cannot be read"
    context = getattr(error, "context", None) or ""
    if mark is None:
        return Problem(f"not YAML: {said}", file)
    line, column = mark.line + 1, mark.column + 1
    char = _char_at(text, mark.line, mark.column)
    if char == "\t":
        return Problem("not YAML: a tab cannot indent", file, line, column, "indent with spaces")
    if "cannot start any token" in said:
        hint: str | None = f"a value that begins with `{char}` needs quotes"
        return Problem(f"not YAML: unexpected `{char}`", file, line, column, hint)
    words = f"{context} {said}"
    hint = next((hint for part, hint in _HINTS if part in words), None)
    return Problem(f"not YAML: {said}", file, line, column, hint)


def _char_at(text: str, line: int, column: int) -> str:
    lines = text.splitlines()
    return lines[line][column : column + 1] if line < len(lines) else ""
