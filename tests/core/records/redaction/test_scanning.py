"""Secrets in existing journals are found, and a rewrite removes them."""

import json
from pathlib import Path

import pytest
from tests.journal.lines import verify_lines

from subluminal.core.records.redaction.redactor import Redactor
from subluminal.core.records.redaction.scanning import rewrite, scan_journals
from subluminal.journal.chain import chained_form, link, seed
from subluminal.secrets.value import SecretValue

SECRET = "s3cr3t-V4lue-here"
REDACTOR = Redactor([SecretValue("known", SECRET)])
SHIM = "01shim"


def journal_of(*bodies: str) -> bytes:
    """A chained journal. A body is the line from `call` or `health` on."""
    prev, lines = seed(SHIM), []
    for n, body in enumerate(bodies, 1):
        kind = "tool_call_start" if '"call"' in body else "shim_health"
        head = (
            f'{{"type":"{kind}","source":{{"shim_id":"{SHIM}","n":{n},"prev":"{prev.decode()}"}},'
        )
        line = (head + body).encode()
        prev = link(prev, chained_form(line))
        lines.append(line)
    return b"\n".join(lines) + b"\n"


def call(preview: str) -> str:
    from hashlib import sha256

    digest = sha256(preview.encode()).hexdigest()
    return f'"call":{{"preview":{{"truncated":false,"hash":"{digest}","args_preview":{json.dumps(preview)}}}}}}}'


def health(detail: str) -> str:
    return f'"health":{{"state":"alive","detail":{json.dumps(detail)}}}}}'


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / f"{SHIM}.jsonl"
    path.write_bytes(journal_of(call('{"a":1}'), call(json.dumps({"k": SECRET})), health("fine")))
    return path


def test_a_preview_is_dropped_in_place_and_the_chain_holds(journal: Path, tmp_path: Path) -> None:
    before = journal.read_bytes()
    assert verify_lines(before.splitlines(), SHIM) is None
    findings = list(scan_journals(str(tmp_path), REDACTOR))
    assert [(f.where, f.names) for f in findings] == [("preview", ("known",))]
    assert before[findings[0].offset :].startswith(findings[0].line)
    assert rewrite(findings[0], REDACTOR, may_break_chain=False)
    after = journal.read_bytes()
    assert len(after) == len(before)
    assert SECRET.encode() not in after
    assert before.splitlines()[::2] == after.splitlines()[::2]
    assert verify_lines(after.splitlines(), SHIM) is None
    assert list(scan_journals(str(tmp_path), REDACTOR)) == []


def test_an_event_is_blotted_out_only_where_the_chain_may_break(
    journal: Path, tmp_path: Path
) -> None:
    journal.write_bytes(journal_of(health(f'said "{SECRET}"'), call("{}"), health("end")))
    (finding,) = scan_journals(str(tmp_path), REDACTOR)
    assert finding.where == "event"
    before = journal.read_bytes()
    assert not rewrite(finding, REDACTOR, may_break_chain=False)
    assert journal.read_bytes() == before
    assert rewrite(finding, REDACTOR, may_break_chain=True)
    lines = journal.read_bytes().splitlines()
    assert json.loads(lines[0])["health"]["detail"] == f'said "{"*" * len(SECRET)}"'
    assert verify_lines(lines, SHIM) is not None


def test_what_is_appended_meanwhile_stays(journal: Path, tmp_path: Path) -> None:
    with journal.open("ab") as writer:
        for finding in scan_journals(str(tmp_path), REDACTOR):
            writer.write(b'{"appended":true}\n')
            writer.flush()
            rewrite(finding, REDACTOR, may_break_chain=False)
    assert journal.read_bytes().endswith(b'{"appended":true}\n')


def test_a_preview_full_of_secrets_is_one_finding(journal: Path, tmp_path: Path) -> None:
    journal.write_bytes(journal_of(call(json.dumps([SECRET] * 600))))
    (finding,) = scan_journals(str(tmp_path), REDACTOR)
    assert (finding.where, finding.names) == ("preview", ("too_many",))
    assert rewrite(finding, REDACTOR, may_break_chain=False)
    assert SECRET.encode() not in journal.read_bytes()
