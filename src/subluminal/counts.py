"""A number with its noun, for sentences that people read. Pure."""


def counted(number: int, noun: str) -> str:
    """Returns `1 call` or `2 calls`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
