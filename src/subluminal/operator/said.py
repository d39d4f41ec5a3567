"""What a person says on the command line, and what is then kept and told: text, of bounded length.

Light to load: who pulls the switch does not want to wait.
"""

import argparse

_MAX_CHARS = 4_096
"""Longer than any name that a policy reads, and short enough to be told with each refusal."""


def said(text: str) -> str:
    """The type of an argument that goes into records and refusals, for argparse."""
    if len(text) > _MAX_CHARS:
        raise argparse.ArgumentTypeError(f"at most {_MAX_CHARS} characters are kept")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("that is not UTF-8") from None
    return text
