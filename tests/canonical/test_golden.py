"""Golden cases: JSON text, and what each profile makes of it.

The expected bytes were written by hand from Pack 1.9, RFC 8785 and canonical-profiles, not copied from
our output. Other producers and consumers can run the same files.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.requirements import requirement

from subluminal.canonical import AmbiguousJSON, Profile, args_hash, digest, encode, parse

FILES = sorted((Path(__file__).parents[1] / "cases" / "canonical").glob("*.json"))
CASES = [
    pytest.param(case, profile, id=f"{file.stem}-{case['note']}-{profile}")
    for file in FILES
    for case in json.loads(file.read_text("utf-8"))
    for profile in Profile
]


def text_of(case: dict[str, Any]) -> bytes:
    return bytes.fromhex(case["hex"]) if "hex" in case else case["text"].encode()


@requirement("1.9.1:canonical-rules")
@pytest.mark.parametrize(("case", "profile"), CASES)
def test_golden_case(case: dict[str, Any], profile: Profile) -> None:
    expected = case[profile.value]
    if "refused" in expected:
        with pytest.raises(AmbiguousJSON) as refused:
            encode(parse(text_of(case)).value, profile)
        assert expected["refused"] in str(refused.value)
        return
    document = parse(text_of(case))
    assert encode(document.value, profile, plain=document.plain).decode() == expected["canonical"]
    assert encode(document.value, profile).decode() == expected["canonical"]
    assert digest(document.value, profile, plain=document.plain) == expected["sha256"]


@requirement("1.9.1:args-hash-sha256")
def test_args_hash_is_the_sha256_of_the_canonical_bytes_in_lowercase_hex() -> None:
    args = {"b": 1.0, "a": "é"}
    assert args_hash(args) == hashlib.sha256('{"a":"é","b":1}'.encode()).hexdigest()


def test_golden_files_are_not_empty() -> None:
    assert {file.stem for file in FILES} == {"numbers", "objects", "strings"}
