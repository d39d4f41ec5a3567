"""Microsoft's agent-os-kernel, its gate for function calls: regexes on names, a list in memory.

It writes nothing to disk, hashes nothing, and sees no arguments: rules about them become names.
"""

from collections.abc import Callable, Sequence
from fnmatch import translate
from itertools import count
from pathlib import Path

from agent_os.lite import govern

from bench.rivals.rules import TOOL, Refusal


def caller(rules: Sequence[Refusal], _home: Path) -> Callable[[], object]:
    """Returns a function that makes one call."""
    # It would refuse the call by the name alone, so a rule on arguments never matches here.
    patterns = [
        each.regex or translate(f"{each.glob}{'?' * 9 if each.key else ''}") for each in rules
    ]
    check = govern(deny_patterns=patterns, max_calls=10**9)
    numbers = count()

    def create(owner: str, title: str, limit: int, repo: str = "widgets") -> str:
        return "done"

    def run() -> str:
        title = f"A-{next(numbers)}"
        check(TOOL)
        return create("acme", title, 50)

    return run
