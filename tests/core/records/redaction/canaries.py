"""Unique secrets, encoders for every form of them, and a search that finds any form.

The encoders here are the standard library's, not ours: what finds and what masks must not share
their mistakes.
"""

import base64
import binascii
import json
import random
import string
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import quote, quote_plus

from subluminal.secrets.value import SecretValue

ALPHABETS = (
    string.ascii_letters + string.digits,
    string.ascii_letters + string.digits + "-_.~",
    string.hexdigits,
    string.ascii_letters + string.digits + "+/=",
    string.printable.strip(),
    string.ascii_letters + "\"\\'/<>&% \t",
    string.ascii_letters + "äöüß€漢字😀",
)


def make_canaries(count: int, seed: int = 20261115) -> list[SecretValue]:
    """`count` different secrets, of all lengths and alphabets."""
    chance = random.Random(seed)
    made = []
    for index in range(count):
        alphabet = ALPHABETS[index % len(ALPHABETS)]
        length = chance.choice((8, 12, 20, 36, 40, 64, 120))
        text = "".join(chance.choice(alphabet) for _ in range(length))
        made.append(SecretValue(f"canary_{index}", text.strip() + f"x{index:03}"))
    made.append(
        SecretValue("canary_long", "".join(chance.choice(ALPHABETS[3]) for _ in range(3000)))
    )
    lines = ["".join(chance.choice(ALPHABETS[0]) for _ in range(64)) for _ in range(5)]
    made.append(SecretValue("canary_lines", "\n".join(lines)))
    return made


def _base64_at(shift: int, urlsafe: bool) -> Callable[[str], str]:
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    return lambda value: encode(b"user:::"[: 3 + shift] + value.encode() + b"@host").decode()


ENCODERS: dict[str, Callable[[str], str]] = {
    "raw": lambda value: value,
    "json": json.dumps,
    "json_utf8": lambda value: json.dumps(value, ensure_ascii=False),
    "json_slashes": lambda value: json.dumps(value).replace("/", "\\/"),
    "json_html_safe": lambda value: (
        json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003E").replace("&", "\\u0026")
    ),
    "json_twice": lambda value: json.dumps(json.dumps({"deep": value})),
    "json_three_times": lambda value: json.dumps(json.dumps(json.dumps([value]))),
    "url": lambda value: quote(value, safe=""),
    "url_path": lambda value: quote(value, safe="/"),
    "url_lower": lambda value: "".join(
        c.lower() if len(c) == 3 else c for c in (quote(char, safe="") for char in value)
    ),
    "url_form": quote_plus,
    "url_twice": lambda value: quote(quote(value, safe=""), safe=""),
    "hex": lambda value: value.encode().hex(),
    "hex_upper": lambda value: value.encode().hex().upper(),
    "hex_colons": lambda value: value.encode().hex(":"),
    "hex_escapes": lambda value: "".join(f"\\x{byte:02x}" for byte in value.encode()),
    "python_repr": repr,
    "base64_mime": lambda value: base64.encodebytes(b"a" * 50 + value.encode() * 2).decode(),
    "base64_mime_json": lambda value: json.dumps(
        base64.encodebytes(b"a" * 31 + value.encode()).decode()
    ),
    "base64_of_json": lambda value: base64.b64encode(json.dumps({"k": value}).encode()).decode(),
    "base64_in_url": lambda value: quote(base64.b64encode(value.encode()).decode(), safe=""),
    **{f"base64_{shift}": _base64_at(shift, False) for shift in range(3)},
    **{f"base64_url_{shift}": _base64_at(shift, True) for shift in range(3)},
}


@lru_cache(maxsize=4)
def _unwrapped(data: bytes) -> bytes:
    flat = data.replace(b"\n", b"").replace(b"\\n", b"")
    return flat.translate(bytes.maketrans(b"-_", b"+/"))


def leaks(data: bytes, secret: SecretValue) -> list[str]:
    """Returns the encodings in which a secret, or most of it, is in `data`."""
    value = secret.reveal()
    # For a long one, any piece of 40 characters would be a leak.
    pieces = (
        [value]
        if len(value) <= 200
        else [value[at : at + 40] for at in range(0, len(value) - 40, 400)]
    )
    found = []
    for piece in pieces:
        raw = piece.encode()
        views = {
            "raw": raw,
            "json": json.dumps(piece)[1:-1].encode(),
            "json_utf8": json.dumps(piece, ensure_ascii=False)[1:-1].encode(),
            "json_twice": json.dumps(json.dumps(piece)[1:-1])[1:-1].encode(),
            "url": quote(piece, safe="").encode(),
            "form": quote_plus(piece).encode(),
            "hex": binascii.hexlify(raw),
        }
        found += [name for name, needle in views.items() if needle in data]
        if binascii.hexlify(raw).upper() in data:
            found.append("hex_upper")
        unwrapped = _unwrapped(data)
        for shift in range(3):
            core = base64.b64encode(b"\0" * shift + raw)[-(-8 * shift // 6) :].rstrip(b"=")[:-1]
            if core in unwrapped:
                found.append(f"base64_{shift}")
    return found
