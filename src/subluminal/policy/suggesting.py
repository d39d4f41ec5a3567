"""`suggest`: how a denied call's arguments would pass (additive; cli.md). Pure data to data."""

from typing import Any

from subluminal.policy.predicates import is_number, same_value


def suggested_args(
    suggest: dict[str, dict[str, Any]], args: dict[str, Any]
) -> dict[str, Any] | None:
    """Returns the mended arguments; None if the suggestions change nothing."""
    mended = dict(args)
    for key, operation in suggest.items():
        _mend(mended, key, operation)
    # Only the keys that a suggestion names are compared: the others may be nested as deep as the
    # agent likes, a policy's own values are not.
    return mended if any(_differs(mended, args, key) for key in suggest) else None


def _differs(mended: dict[str, Any], args: dict[str, Any], key: str) -> bool:
    if key not in mended or key not in args:
        return (key in mended) != (key in args)
    return mended[key] is not args[key] and not same_value(mended[key], args[key])


def _mend(args: dict[str, Any], key: str, operation: dict[str, Any]) -> None:
    if operation["remove"]:
        args.pop(key, None)
    elif "set" in operation:
        args[key] = operation["set"]
    elif operation["one_of"]:
        if not any(same_value(args.get(key), choice) for choice in operation["one_of"]):
            args[key] = operation["one_of"][0]
    elif is_number(args.get(key)):
        args[key] = _clamped(args[key], operation["clamp_min"], operation["clamp_max"])


def _clamped(value: Any, low: Any, high: Any) -> Any:
    if low is not None and value < low:
        return low
    if high is not None and value > high:
        return high
    return value
