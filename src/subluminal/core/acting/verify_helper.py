"""Verifies one token in a process of its own, so that a shim never loads cryptography.

`python -P -m subluminal.core.acting.verify_helper STATE_DIR AGENT_ID < token` writes an `Attested`
as JSON to stdout.
"""

import sys

import msgspec

from subluminal.clock import now
from subluminal.core.acting.attested import Attested, issuers_of
from subluminal.core.controls.agents import standing


def main() -> int:
    """Runs the helper; returns its exit code."""
    from subluminal.core.controls.attestations import check_attestation

    state_dir, agent_id = sys.argv[1:]
    token = sys.stdin.buffer.read().decode("utf-8", "replace")
    registration = standing(state_dir, agent_id).registration
    checked = check_attestation(state_dir, registration, token, now_ms=now().wall_ms, run_id=None)
    found = Attested(
        proof=checked.proof,
        has_expired=checked.has_expired,
        run_id=checked.run_id,
        issuers="" if registration is None else issuers_of(registration),
        hint=checked.hint,
    )
    sys.stdout.buffer.write(msgspec.json.encode(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
