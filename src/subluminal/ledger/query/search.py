"""What people type into a search box, as an expression for SQLite's full-text index."""

from subluminal.ledger.query.filters import InvalidQuery

MAX_WORDS = 16


def match_expression(text: str) -> str:
    """All words must occur; "quoted words" as a phrase; a word ending in * as a beginning.

    Nothing that is typed can be syntax: every word is quoted.
    """
    parts = text.split('"')
    terms: list[str] = []
    for index, part in enumerate(parts):
        if index % 2:
            terms += [_quoted(part)] if part.strip() else []
        else:
            terms += [_word(word) for word in part.split()]
    if not terms:
        raise InvalidQuery("the text to search for is empty")
    if len(terms) > MAX_WORDS:
        raise InvalidQuery(f"more than {MAX_WORDS} words to search for")
    return " ".join(terms)


def _word(word: str) -> str:
    stem = word.rstrip("*")
    if not stem:
        raise InvalidQuery("`*` alone finds nothing", hint="put letters before it")
    return _quoted(stem) + ("*" if stem != word else "")


def _quoted(text: str) -> str:
    return '"' + text.replace("\0", " ") + '"'
