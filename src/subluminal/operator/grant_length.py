"""How long a grant lasts: as a person wishes, and the rule allows."""

from subluminal.core.controls.grants import MAX_TTL_MS
from subluminal.errors import SubluminalError, UsageError
from subluminal.operator.durations import milliseconds_in, told


def grant_ms(wish: str | None, default_ms: int, rule_id: str, longest_ms: int | None) -> int:
    """The milliseconds that `--ttl` asks for; `longest_ms` is the rule's `expires_ms`."""
    longest_ms = MAX_TTL_MS if longest_ms is None else min(longest_ms, MAX_TTL_MS)
    if wish is None:
        return min(default_ms, longest_ms)
    wanted_ms = milliseconds_in(wish, "--ttl")
    if wanted_ms > MAX_TTL_MS:
        raise UsageError(f"`--ttl` is {told(MAX_TTL_MS)} at most")
    if wanted_ms > longest_ms:
        raise SubluminalError(
            f"rule `{rule_id}` lets a grant last {told(longest_ms)} at most",
            hint="leave `--ttl` out, or change `expires_ms` of the rule",
        )
    return wanted_ms
