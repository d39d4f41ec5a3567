"""The time of `args_hash` for typical arguments, compared with the `rfc8785` package."""

import hashlib
from collections.abc import Iterator
from typing import Any

import rfc8785

from bench.harness import Result, interleaved
from subluminal.canonical import args_hash

BAR = 4.0

# About 700 bytes, as a client sends them to open a pull request.
ARGS: dict[str, Any] = {
    "owner": "acme",
    "repo": "widgets",
    "title": "Fix the flaky retry in the uploader",
    "body": "The uploader retries on 503 but forgets the idempotency key, so a slow proxy may "
    "store an object twice. This sends the key with every attempt, and adds a test that fails "
    "without it. The back-off is now bounded, because a client that waits for an hour is not "
    "waiting for us any more. Closes 1284.",
    "labels": ["bug", "uploader", "p2"],
    "assignees": ["kim", "ravi"],
    "milestone": 12,
    "draft": False,
    "base": "main",
    "head": "fix/uploader-retry",
    "maintainer_can_modify": True,
    "options": {
        "squash": True,
        "delete_branch": True,
        "reviewers": ["dana"],
        "checks": {"required": 3, "timeout_s": 900},
    },
}
WITH_FRACTION = {**ARGS, "temperature": 0.2}


def measure() -> Iterator[Result]:
    """Measures a typical object, and one with a fraction, which takes a slower path."""
    for name, args, bar in (("args_hash", ARGS, BAR), ("args_hash, fraction", WITH_FRACTION, 1.5)):
        ours, theirs = interleaved(
            [
                lambda args=args: args_hash(args),  # type: ignore[misc]
                lambda args=args: hashlib.sha256(rfc8785.dumps(args)).hexdigest(),  # type: ignore[misc]
            ],
            rounds=60,
            number=100,
        )
        detail = f"{ours * 1e6:.1f} us against {theirs * 1e6:.1f} us"
        yield Result(f"{name} faster than rfc8785", theirs / ours, bar, True, detail)
