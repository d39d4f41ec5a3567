"""Secrets in a stream: split anywhere, endless, and never more than a bound in memory."""

from subluminal.core.records.redaction.redactor import Redactor
from subluminal.core.records.redaction.stream import MAX_HELD_BYTES, StreamRedactor
from subluminal.secrets.value import SecretValue

TOKEN = "t0ken-Value-123"


def make() -> StreamRedactor:
    return StreamRedactor(Redactor([SecretValue("s", TOKEN)]))


def test_a_secret_is_caught_at_every_split() -> None:
    data = b"a" * 50 + TOKEN.encode() + b"b" * 5000
    for at in range(45, 70):
        stream = make()
        out = stream.feed(data[:at]) + stream.feed(data[at:]) + stream.finish()
        assert out == b"a" * 50 + b"[REDACTED:s]" + b"b" * 5000
        assert stream.names == {"s"}


def test_bytes_that_are_no_text_pass_unchanged() -> None:
    data = bytes(range(256)) * 100
    stream = make()
    assert stream.feed(data) + stream.finish() == data


def test_a_private_key_over_many_chunks_is_one_mark() -> None:
    key = (
        b"-----BEGIN RSA "
        + b"PRIVATE KEY-----\n"
        + b"QUJD" * 16 * 120
        + b"\n-----END RSA PRIVATE KEY-----"
    )
    stream = make()
    out = b"".join(stream.feed(key[at : at + 100]) for at in range(0, len(key), 100))
    out += stream.feed(b"\nafter\n" * 2000) + stream.finish()
    assert out == b"[REDACTED:private_key]" + b"\nafter\n" * 2000


def test_a_key_without_end_cannot_fill_the_memory() -> None:
    stream = make()
    out = stream.feed(b"-----BEGIN RSA " + b"PRIVATE KEY-----\n")
    held = 0
    for _ in range(100):
        out += stream.feed(b"QUJDREVG" * 1024)
        held = max(held, len(stream._held))
    assert held <= MAX_HELD_BYTES + 8192
    assert out.startswith(b"[REDACTED:private_key]")


def test_a_dump_of_secrets_is_masked_whole() -> None:
    stream = make()
    out = stream.feed(TOKEN.encode() * 2000) + stream.finish()
    assert TOKEN.encode() not in out
    assert stream.names == {"too_many"}


def test_an_empty_stream_is_empty() -> None:
    assert make().finish() == b""
