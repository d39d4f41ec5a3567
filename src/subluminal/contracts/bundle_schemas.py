"""The JSON Schemas of a policy: Contract B as machines exchange it, and as people write it.

The types say which fields there are. This module adds what `policy.checking` demands beyond that,
as far as a schema can say it. A schema cannot tell whether a pattern is valid, an id is used twice,
a range is empty, a pack is installed or a policy is too expensive; `sub policy lint` does. A test
compares the two.
"""

from copy import deepcopy
from typing import Any

from subluminal.contracts import short_forms
from subluminal.contracts.bundle import BREAKER_NUMBERS
from subluminal.contracts.limits import (
    MAX_AMOUNT,
    MAX_PATTERN_CHARS,
    MAX_RULES,
    MAX_SEQUENCE_CALLS,
    MAX_TEXTS,
)
from subluminal.contracts.vocabulary import Taint

Schema = dict[str, Any]

# A string that Python does not strip to nothing.
_NAME: Schema = {
    "pattern": r"[^\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
}
_PATTERN: Schema = {"maxLength": MAX_PATTERN_CHARS}
_GLOB: Schema = {"minLength": 1, **_PATTERN}
_DIRECTORY: Schema = {
    "pattern": r"^(\.|(/([^/.][^/]*|\.[^/.][^/]*|\.\.[^/]+|\.)?)+)$",
    "maxLength": MAX_PATTERN_CHARS,
}
_MATCHED_NAMES = (
    *("environment", "agent_type", "agent_roles_any"),
    *("tool_provider", "data_labels_any"),
)
_BELOW = [Taint.SYSTEM.value, Taint.TRUSTED.value]
_LIMIT: Schema = {"minimum": 0, "maximum": MAX_AMOUNT}
_AMOUNT: Schema = {"minimum": 1, "maximum": MAX_AMOUNT}
_HOURS: Schema = {
    "type": "array",
    "prefixItems": [
        {"type": "integer", "minimum": 0, "maximum": 23},
        {"type": "integer", "minimum": 0, "maximum": 24},
    ],
    "minItems": 2,
    "maxItems": 2,
    "not": {"enum": [[hour, hour] for hour in range(24)]},
}


def add_demands(schema: Schema) -> None:
    """Adds what Contract B demands beyond its types to the schema of a complete bundle."""
    defs: dict[str, Schema] = schema["$defs"]
    for name in ("PinRule", "PinEffect", "Pin", "Action"):  # this version refuses pin rules
        del defs[name]
    fields = {name: each["properties"] for name, each in defs.items() if "properties" in each}
    _add_names(fields)
    _add_numbers(fields)
    rules = fields["Bundle"]["rules"]
    rules["maxItems"] = MAX_RULES
    rules["items"]["anyOf"] = [
        each for each in rules["items"]["anyOf"] if not each["$ref"].endswith("/PinRule")
    ]
    del rules["items"]["discriminator"]["mapping"]["pin"]
    fields["AllowRule"]["effect"]["properties"] = {
        "action": {"const": "ALLOW"},
        "suggest": {"maxProperties": 0},
    }
    fields["DenyRule"]["effect"]["properties"] = {"action": {"enum": ["BLOCK", "REJECT_WITH_HINT"]}}
    fields["Dedupe"]["key"]["enum"] = ["args_hash"]
    fields["Dedupe"]["on_duplicate"]["enum"] = ["BLOCK", "REJECT_WITH_HINT"]
    fields["AllowRule"]["match"]["properties"] = {
        "targets": {"properties": {"opaque": {"const": False}}}
    }
    for name, demands in _DEMANDS.items():
        defs[name]["allOf"] = demands


def _add_names(fields: dict[str, Schema]) -> None:
    for name in ("policy_id", "version"):
        fields["Bundle"][name].update(_NAME)
    fields["Bundle"]["policy_id"]["not"] = {"const": "none"}
    for properties in fields.values():
        if "rule_id" in properties:
            properties["rule_id"].update(_NAME)
    fields["NameMatch"]["glob"]["items"].update(_GLOB)
    fields["NameMatch"]["regex"]["items"].update(_PATTERN)
    for name in ("risk_class", *_MATCHED_NAMES):
        fields["Match"][name]["items"].update(_NAME)
    fields["AccessEffect"]["reason_code"].update(_NAME)
    fields["Tag"]["add_risk_class"].update({"minItems": 1})
    fields["Tag"]["add_risk_class"]["items"].update(_NAME)
    fields["ArgsMatch"]["key_in"]["additionalProperties"]["minItems"] = 1
    fields["TimeMatch"]["utc_hours"]["items"] = _HOURS
    fields["PathMatch"]["glob"]["items"].update(_GLOB)
    fields["PathMatch"]["regex"]["items"].update(_PATTERN)
    fields["TaintMatch"]["below"] = {**fields["TaintMatch"]["below"], "enum": _BELOW}
    for each in fields["PackQuestion"]["payload"]["anyOf"]:
        if each["type"] == "object":
            each["propertyNames"] = _NAME
            each["additionalProperties"] = {**each["additionalProperties"], **_NAME}
    for name in ("any_of", "none_of"):
        fields["TextMatch"][name]["maxItems"] = MAX_TEXTS
        fields["TextMatch"][name]["items"].update(_GLOB)
    fields["TextMatch"]["regex"].update(_GLOB)
    fields["Sequence"]["pattern"].update({"minItems": 2, "maxItems": MAX_SEQUENCE_CALLS})
    fields["Sequence"]["pattern"]["items"].update(_GLOB)
    for name in ("inside", "outside"):
        fields["PathMatch"][name]["items"].update(_DIRECTORY)


def _add_numbers(fields: dict[str, Schema]) -> None:
    bounds = [
        ("Budget", _LIMIT, ("limit_calls", "limit_cost_units")),
        ("Budget", _AMOUNT, ("cost_units_per_call",)),
        ("RateLimit", _AMOUNT, ("capacity", "refill_tokens", "refill_period_ms")),
        ("RateLimit", _AMOUNT, ("cost_tokens_per_call", "backoff_ms")),
        ("RateLimit", _AMOUNT, ("max_calls", "window_ms")),
        ("Budget", _AMOUNT, ("reset_ms",)),
        ("Sequence", _AMOUNT, ("within_ms",)),
        ("Breaker", _AMOUNT, BREAKER_NUMBERS),
        ("Dedupe", _AMOUNT, ("window_ms",)),
        ("AccessEffect", _AMOUNT, ("expires_ms",)),
        ("Match", _LIMIT, ("delegation_depth_min",)),
    ]
    for struct, bound, names in bounds:
        for name in names:
            fields[struct][name].update(bound)


def _given(*names: str) -> Schema:
    """Demands fields that are not null: a null is the same as a missing field."""
    return {"required": list(names), "properties": {name: {"not": _NULL} for name in names}}


_NULL: Schema = {"type": "null"}
_BUCKET = ("capacity", "refill_tokens", "refill_period_ms")


def _any_of(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _needs(name: str, *others: Schema) -> Schema:
    """Demands that a field is given only together with others."""
    return {"if": _given(name), "then": _any_of(*others)}


_DEMANDS: dict[str, list[Schema]] = {
    "TargetsMatch": [
        _any_of(
            *(_given(name) for name in ("program", "argv", "path", "host")),
            {"required": ["access"], "properties": {"access": {"minItems": 1}}},
            {"required": ["opaque"], "properties": {"opaque": {"const": True}}},
        )
    ],
    "NumericRange": [_any_of(*map(_given, ("min", "max", "gt", "lt")))],
    "TextMatch": [
        _any_of(
            {"required": ["any_of"], "properties": {"any_of": {"minItems": 1}}},
            {"required": ["none_of"], "properties": {"none_of": {"minItems": 1}}},
            _given("regex"),
        )
    ],
    "Budget": [_any_of(_given("limit_calls"), _given("limit_cost_units"))],
    "RateLimit": [
        {
            "if": {"required": ["on_limit"], "properties": {"on_limit": {"const": "THROTTLE"}}},
            "then": _given("backoff_ms"),
        },
        {
            "if": _any_of(_given("max_calls"), _given("window_ms")),
            "then": {
                **_given("max_calls", "window_ms"),
                "allOf": [
                    *({"not": _given(name)} for name in _BUCKET),
                    {"properties": {"cost_tokens_per_call": {"const": 1}}},
                ],
            },
            "else": _given(*_BUCKET),
        },
    ],
    "Breaker": [
        _any_of(_given("error_threshold"), _given("repeat_threshold"), _given("latency_count")),
        _needs("error_threshold", _given("window_ms")),
        _needs("repeat_threshold", _given("repeat_window_ms")),
        _needs("repeat_window_ms", _given("repeat_threshold")),
        _needs("latency_threshold_ms", _given("latency_count", "window_ms")),
        _needs("latency_count", _given("latency_threshold_ms", "window_ms")),
        _needs("window_ms", _given("error_threshold"), _given("latency_count")),
    ],
    "AccessEffect": [
        _needs("approver_role", _given("require")),
        _needs("expires_ms", _given("require")),
    ],
    "Suggestion": [
        {
            "oneOf": [
                {"required": ["set"]},
                {"required": ["remove"], "properties": {"remove": {"const": True}}},
                _any_of(_given("clamp_min"), _given("clamp_max")),
                {"required": ["one_of"], "properties": {"one_of": {"minItems": 1}}},
            ]
        }
    ],
}


def relax(schema: Schema) -> None:
    """Turns the schema of a complete bundle into that of a policy as people write it."""
    defs: dict[str, Schema] = schema["$defs"]
    _relax(defs, defs["Bundle"], short_forms.BUNDLE)
    for rule in defs["Bundle"]["properties"]["rules"]["items"]["anyOf"]:
        definition = _definition(defs, rule)
        (kind,) = definition["properties"]["kind"]["enum"]
        _relax(defs, definition, short_forms.RULES[kind])


def _relax(defs: dict[str, Schema], definition: Schema, template: Schema) -> None:
    for name, default in template.items():
        field = definition["properties"][name]
        # An effect is shared by two kinds of rules, with different defaults.
        if "default" not in field and definition["title"] != "AccessEffect":
            field["default"] = deepcopy(default)
        if isinstance(default, dict) and default:
            inner = _definition(defs, field)
            _relax(defs, inner, default)
            if _demands_more(inner):
                del field["default"]
                continue
        definition["required"] = [each for each in definition["required"] if each != name]


def _demands_more(definition: Schema) -> bool:
    """Whether an empty mapping would not do."""
    return bool(definition["required"]) or definition["title"] in (
        *("Budget", "RateLimit", "Breaker"),
    )


def _definition(defs: dict[str, Schema], field: Schema) -> Schema:
    return defs[field["$ref"].rpartition("/")[2]]
