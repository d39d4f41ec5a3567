"""One is no plural."""

from subluminal.counts import counted


def test_a_number_with_its_noun() -> None:
    assert [counted(number, "call") for number in range(3)] == ["0 calls", "1 call", "2 calls"]
