"""The same policy, written as people write: comments, blank lines, quotes, anchors, line ends."""

import json

from hypothesis import strategies as st

COMMENTS = ["# why", "#", "# - rule_id: looks like a rule", "# rules:", "#ünï 😀"]
PROSE = [
    "|\n{pad}long text\n{pad}# not a comment\n{pad}- not a rule",
    ">-\n{pad}folded\n{pad}# no",
    "|+\n{pad}kept\n",
]


def _scalar(draw, value):
    if isinstance(value, str) and value.isidentifier() and draw(st.booleans()):
        return value if value not in ("true", "null") else json.dumps(value)
    if isinstance(value, str) and "'" not in value and value.isprintable() and draw(st.booleans()):
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def _flow(draw, value):
    if isinstance(value, dict):
        inner = [f"{json.dumps(k)}: {_flow(draw, v)}" for k, v in value.items()]
        return "{" + ", ".join(inner) + (" " if draw(st.booleans()) else "") + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(draw, v) for v in value) + "]"
    return _scalar(draw, value)


def _noise(draw, lines, margin, *, deeper=False):
    """Comments and blank lines, which mean nothing."""
    for _ in range(draw(st.integers(0, 2))):
        blank = draw(st.booleans())
        pad = margin + ("    " if deeper and draw(st.booleans()) else "")
        lines.append("" if blank else pad + draw(st.sampled_from(COMMENTS)))


def _rule_lines(draw, rule, margin):
    gap = draw(st.sampled_from([" ", "   ", "\n"]))
    inner = margin + ("  " if gap == "\n" else " " + gap)
    head = f"{margin}-{'' if gap == chr(10) else gap}"
    anchor = draw(st.sampled_from(["", f"&r{rule['rule_id']} "]))
    if draw(st.booleans()):
        return [
            f"{head}{anchor}{_flow(draw, rule)}"
            if gap != "\n"
            else f"{head}\n{inner}{_flow(draw, rule)}"
        ]
    lines = []
    members = list(rule.items())
    prose = draw(st.sampled_from([None, *PROSE]))
    if prose is not None:
        members.insert(
            draw(st.integers(1, len(members))), ("description", prose.format(pad=inner + "  "))
        )
    for number, (name, value) in enumerate(members):
        text = value if name == "description" else _flow(draw, value)
        trailer = "" if name == "description" else draw(st.sampled_from(["", "  # c"]))
        lead = head + ("\n" + inner if gap == "\n" else "") if number == 0 else inner
        lines.append(f"{lead}{name}: {text}{trailer}")
    return lines


@st.composite
def yaml_texts(draw, bundle):
    """Bytes of a YAML file that says `bundle`."""
    lines = draw(st.sampled_from([[], ["---"], ["%YAML 1.2", "---"]]))[:]
    _noise(draw, lines, "")
    margin = draw(st.sampled_from(["", "  ", "    "]))
    heads = [(k, v) for k, v in bundle.items() if k != "rules"]
    split = draw(st.integers(0, len(heads)))
    for name, value in heads[:split]:
        lines.append(f"{name}: {_flow(draw, value)}")
    if draw(st.integers(0, 3)) == 0:
        lines += _flow_rules(draw, bundle["rules"])
    else:
        lines.append(draw(st.sampled_from(["rules:", "rules:   # all", '"rules":', "rules: &all"])))
        for rule in bundle["rules"]:
            _noise(draw, lines, margin, deeper=True)
            lines += _rule_lines(draw, rule, margin)
        if heads[split:]:
            _noise(draw, lines, "")
    for name, value in heads[split:]:
        lines.append(f"{name}: {_flow(draw, value)}")
    if lines[-1].strip():
        _noise(draw, lines, "")
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n"]))
    bom = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return bom + text.replace("\n", end).encode()


def _flow_rules(draw, rules):
    if draw(st.booleans()):
        return [f"rules: {_flow(draw, rules)}"]
    lines = ["rules: ["]
    for number, rule in enumerate(rules):
        comma = "," if number < len(rules) - 1 or draw(st.booleans()) else ""
        lines.append(f"  {_flow(draw, rule)}{comma}" + draw(st.sampled_from(["", " # c"])))
    return [*lines, "  ]"]


@st.composite
def json_texts(draw, bundle):
    """Bytes of a JSON file that says `bundle`."""
    text = json.dumps(
        bundle,
        indent=draw(st.sampled_from([None, 1, 2, 4, "\t"])),
        ensure_ascii=draw(st.booleans()),
    )
    return (
        draw(st.sampled_from(["", "\n", " "]))
        .join(["", text, ""])
        .replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
        .encode()
    )
