"""Pack 6.4: what a shim injects and a server echoes is in no byte of the ledger."""

import os
from pathlib import Path

from tests.core.records.redaction.canaries import leaks, make_canaries
from tests.ledger.home import Home
from tests.requirements import requirement
from tests.secrets.test_canary_e2e import Shim, binding

from subluminal.ledger.store.segments import after
from subluminal.ledger.upkeep.deferred import index_some, pack_some

WAYS = ["raw", "json", "nested", "base64", "url", "hex", "environment", "failing", "error"]


@requirement("6.4:no-leak-ledger")
def test_no_canary_is_in_any_byte_of_the_ledger(own_home: Path, tmp_path: Path) -> None:
    canaries = [c for c in make_canaries(40, seed=6) if "\n" not in c.reveal()][: len(WAYS)]
    own_home.mkdir(parents=True)
    own_home.joinpath("config.toml").write_text(
        "\n".join(binding(index, "env") for index in range(len(canaries)))
    )
    environ = {**os.environ, **{f"REF_{n}": c.reveal() for n, c in enumerate(canaries)}}
    shim = Shim(environ, tmp_path / "err")
    for index, way in enumerate(WAYS):
        arguments = {"variable": f"CANARY_{index}"}
        shim.ask("tools/call", {"name": way, "arguments": arguments})
        secret = {"note": canaries[index].reveal()}
        shim.ask("tools/call", {"name": "echo", "arguments": secret})
    shim.close()

    home = Home(str(own_home))
    assert home.ingest() > 3 * 2 * len(WAYS)
    assert home.rows("SELECT count(*) FROM tool_calls") == [(2 * len(WAYS),)]
    assert home.verify().findings == []
    connection = home.store.connection
    events = b"\n".join(line for segment in after(connection, 0) for line in segment.lines())
    while index_some(connection, 1 << 50):
        pass
    assert home.rows("SELECT count(*) FROM search('REDACTED')") != [(0,)]
    raw = b"".join(path.read_bytes() for path in own_home.glob("ledger.db*"))
    pack_some(connection)
    home.restart()
    packed = (own_home / "ledger.db").read_bytes()
    for canary in canaries:
        for data in (events, raw, packed):
            assert not leaks(data, canary), repr(canary)
    home.close()
