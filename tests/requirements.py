"""The requirement manifest: what the seeds demand, and the tests that hold the product to it.

It has every MUST and SHOULD of the Interface Pack (seed 000), and what the engineering specification
(seed 001, ids that begin with `001-`) adds to it, and the names and invariants of the kernel (seed
003). Each entry either has a test of what the program
emits, marked with `@requirement("id")`, and a mutant in tests/mutants.toml that this test must kill;
or it names the part that will deliver it. `tests/test_requirements.py` checks this, `make mutate`
kills the mutants. When you deliver a deferred entry, mark your test, add its mutant and remove
`deferred` here, in the same change.
"""

from typing import NamedTuple

import pytest


class Requirement(NamedTuple):
    """One promise of the Interface Pack, or of our own."""

    section: str
    """where the promise is written: a section of the Pack, of seed 001, or a decision"""
    behaviour: str
    deferred: str | None = None
    """the part that will deliver it; None if it is delivered"""


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Marks a test with the entries that it proves. Takes string literals only."""
    for id_ in ids:
        if id_ not in REQUIREMENTS:
            raise KeyError(f"`{id_}` is not in tests/requirements.py")
    return pytest.mark.requirement(*ids)


REQUIREMENTS: dict[str, Requirement] = {
    # 0 Compatibility
    "0.2:unknown-fields": Requirement("0.2", "event consumers MUST ignore unknown fields"),
    "0.2:unknown-types": Requirement(
        "0.1", "consumers ignore event types of a later MINOR version"
    ),
    "0.2:unknown-rule-kinds": Requirement("0.2", "compilers MUST error on unknown rule types"),
    "0.2:defaults": Requirement("0.2", "defaults of missing optional fields MUST be defined"),
    "0.3:run-id-unique": Requirement("0.3", "run_id MUST be globally unique per run"),
    "0.3:run-id-sortable": Requirement("0.3", "run_id SHOULD be ULID/UUIDv7-style"),
    "0.3:call-id-unique": Requirement("0.3", "call_id MUST be unique within a run"),
    "0.3:call-id-global": Requirement("0.3", "call_id SHOULD be globally unique"),
    # 1 Contract A: events
    "1.1:one-line": Requirement("1.1", "producers MUST NOT emit multi-line JSON; UTF-8"),
    "1.2:event-types": Requirement("1.2", "five required and five optional event types"),
    "1.2:emitted": Requirement("1.2", "producers MUST emit the five required types"),
    "1.3:envelope": Requirement("1.3", "every event MUST include the envelope"),
    "1.3.1:context-fields": Requirement("1.3.1", "principal and workload have these fields"),
    "1.3.1:context-sent": Requirement("1.3.1", "events SHOULD include principal and workload"),
    "1.3.1:missing-workload": Requirement("1.3.1", "consumers MUST tolerate missing workload"),
    "1.4:run-start": Requirement("1.4", "run_start has run with started_at, mode, policy"),
    "1.5:tool-call-start": Requirement("1.5", "tool_call_start has call with its eight fields"),
    "1.5:seq": Requirement("1.5", "seq increases within a run and starts at 1"),
    "1.6:tool-call-decision": Requirement("1.6", "tool_call_decision has call and decision"),
    "1.6:throttle": Requirement("1.6", "THROTTLE requires decision.backoff_ms"),
    "1.6:reject-with-hint": Requirement("1.6", "REJECT_WITH_HINT requires decision.hint"),
    "1.6:terminate-run": Requirement("1.6", "TERMINATE_RUN requires decision.terminate"),
    "1.7:tool-call-end": Requirement("1.7", "tool_call_end has call, status, latency, preview"),
    "1.7:error-detail": Requirement("1.7", "error says class, message, code, retryable"),
    "1.8:run-end": Requirement("1.8", "run_end has run with ended_at, status, summary"),
    "1.9.1:args-hash-sha256": Requirement(
        "1.9.1", "args_hash MUST be SHA-256 of the canonical arguments, in lowercase hex"
    ),
    "1.9.1:canonical-rules": Requirement("1.9.1", "canonical JSON: order, whitespace, escapes"),
    "1.9.1:numbers": Requirement("1.9.1", "numbers MUST be in minimal decimal form"),
    "1.9.2:stream-hash": Requirement(
        "1.9.2", "producers SHOULD hash raw bytes where inspection is truncated"
    ),
    "1.10:limits": Requirement("1.10", "inspection and previews are bounded, with defaults"),
    "1.10:forward-all": Requirement("1.10", "producers MUST forward full traffic"),
    "1.10:truncated": Requirement("1.10", "preview.truncated MUST be true"),
    "1.10:no-preview": Requirement("1.10", "previews MUST be omitted or [TRUNCATED]"),
    "1.10:metadata": Requirement("1.10", "metadata MUST still be emitted"),
    # 2 Contract B: the policy bundle
    "2.1:bundle-fields": Requirement("2.1", "a bundle's required and recommended fields"),
    "2.1:decision-on-error": Requirement("2.1", "what happens if evaluation fails"),
    "2.2:selector-fields": Requirement("2.2", "the supported selectors"),
    "2.2:selector-semantics": Requirement("2.2", "omitted matches all; OR within, AND"),
    "2.3:rule-fields": Requirement("2.3", "a rule's required fields and seven kinds"),
    "2.3:order": Requirement("2.3", "rules are evaluated top to bottom"),
    "2.3:deny-overrides": Requirement("2.3", "deny SHOULD override allow, by order"),
    "2.3:accumulators": Requirement("2.3", "budgets, rates, breakers MUST always run"),
    "2.4:match-fields": Requirement("2.4", "the match object"),
    "2.4:match-semantics": Requirement("2.4", "match fields are ANDed"),
    "2.4:cheap": Requirement("2.4", "matchers MUST be cheap"),
    "2.5:effect-fields": Requirement("2.5", "the effect object of every kind"),
    "2.5:effects": Requirement("2.5", "every kind acts as its effect says"),
    "2.6:snapshot": Requirement("2.6", "a snapshot MUST include hash, matchers, defaults"),
    "2.6:reload": Requirement("2.6", "a snapshot MUST reload without a restart"),
    # 3 Contract C: decisions and errors
    "3.1:decision-fields": Requirement("3.1", "a decision MUST include its five fields"),
    "3.2.1:error-object": Requirement(
        "3.2.1", "a refused call MUST get a JSON-RPC error with code, message, data"
    ),
    "3.2.1:codes": Requirement("3.2.1", "the four reserved codes"),
    "3.2.2:error-data": Requirement("3.2.2", "error.data.subluminal has its eleven fields"),
    "3.2.3:throttle": Requirement("3.2.3", "THROTTLE requires subluminal.backoff_ms"),
    "3.2.4:hint": Requirement("3.2.4", "REJECT_WITH_HINT requires subluminal.hint"),
    "3.3:hint-issued": Requirement("3.3", "producers SHOULD emit hint_issued"),
    "3.3:hint-issued-fields": Requirement("3.3", "hint_issued has call.call_id and hint"),
    # 4 Secrets
    "4.1:binding-fields": Requirement("4.1", "a secret binding's fields; redact defaults to true"),
    "4.1:injected": Requirement("4.1", "each shim MUST support secret bindings at spawn"),
    "4.1:not-logged": Requirement("4.1", "the shim MUST NOT log secret values"),
    "4.1:not-previewed": Requirement("4.1", "secrets MUST NOT show in previews"),
    "4.1:metadata-only": Requirement("4.1", "secret_injection carries metadata only"),
    # 5 Identity
    "5:variables": Requirement("5", "the five SUB_* variables"),
    "5:set": Requirement("5", "`sub run` and headless runners SHOULD set them"),
    "5:read": Requirement("5", "shims MUST read them and stamp events"),
    # 6 Acceptance vectors
    "6.1:key-order": Requirement("6.1", "key order MUST NOT change args_hash"),
    "6.2:large-payload": Requirement("6.2", "a large payload MUST pass uncorrupted"),
    "6.3:signals": Requirement("6.3", "killing the client MUST end shim and server"),
    "6.4:no-leak": Requirement("6.4", "secrets MUST NOT appear in previews or errors"),
    "6.4:no-leak-ledger": Requirement("6.4", "secrets MUST NOT appear in the ledger"),
    # 7 Adapters
    "7.1:tool-call": Requirement("7.1", "adapters MUST hand over these fields of a call"),
    "7.4:identical-events": Requirement("7.4", "adapters MUST give identical events"),
    "7.4:shared-hash": Requirement("7.4", "adapters MUST use the shared hash"),
    "7.4:no-decisions": Requirement("7.4", "adapters MUST NOT decide or bypass"),
    "7.4:lifecycle": Requirement("7.4", "adapters MUST handle process lifecycle"),
    "7.4:closed-vocabulary": Requirement("7.4", "adapters MUST NOT invent types or schema"),
    # The engineering specification (seed 001)
    "001-1:first-call": Requirement(
        "001 1 and 13",
        "after an import, the client's calls are on record under its own servers' names",
    ),
    "001-3:names": Requirement(
        "001 3 and 7.2", "names of servers and tools are those of the client and the server"
    ),
    "001-5:call-row": Requirement("001 5", "the ledger has every field of a call"),
    "001-6:commands": Requirement(
        "001 6", "the commands of the first two milestones exist, each with an example"
    ),
    "001-7.1:transparent": Requirement(
        "001 7.1", "what is not a tool call passes unchanged in both directions"
    ),
    "001-7.1:bounded": Requirement("001 7.1 and 7.6", "large payloads are never buffered whole"),
    "001-7.3:whole-run": Requirement(
        "001 7.3", "budgets, rates and windows hold across the shims of a run"
    ),
    "001-7.3:no-lookups": Requirement(
        "001 7.3", "the hot path loads no database, network or file parser"
    ),
    "001-7.4:injected": Requirement(
        "001 7.4", "the server gets the secret, the agent and the record do not"
    ),
    "001-7.4:env-and-keychain": Requirement(
        "001 7.4", "secrets come from the environment, the keychain or a file"
    ),
    "001-7.5:signals": Requirement(
        "001 7.5", "a signal to the shim ends the server's process group"
    ),
    "001-7.5:end-of-input": Requirement(
        "001 7.5", "the end of the client's input ends server and shim"
    ),
    "001-7.5:no-orphans": Requirement("001 7.5", "a shim that dies leaves no process"),
    "001-7.7:agnostic": Requirement(
        "001 7.7", "the core knows no transport: every door gets the same answers"
    ),
    "001-8.1:identity": Requirement(
        "001 8.1", "every event says agent, run, principal, environment and workload"
    ),
    "001-8.2:ci": Requirement("001 8.2", "CI systems and pods give run and workload by themselves"),
    "001-9.1:modes": Requirement("001 9.1", "observe records, guardrails enforce, control hints"),
    "001-9.2:latency": Requirement("001 9.2", "a breaker may count slow calls"),
    "001-9.4:diff": Requirement(
        "001 9.4", "a policy diff says what changed, how much it matters, for people and programs"
    ),
    "001-10.2:at-once": Requirement(
        "001 10.2", "a call that waits for a person is answered at once"
    ),
    "001-10.3:promote": Requirement(
        "001 10.3", "a hint becomes a grant for the session or a reviewed change of the policy"
    ),
    "001-11.2:wal": Requirement("001 11.2", "SQLite in WAL mode, private to its user"),
    "001-11.3:schema": Requirement("001 11.3", "the tables, columns and indexes of the spec"),
    "001-11.1:append-only": Requirement(
        "001 11.1", "events are stored once, whoever writes them and however often"
    ),
    "001-11.4:roads": Requirement(
        "001 11.4", "events come by journal, unix socket and localhost HTTP"
    ),
    "001-11.4:drop-previews": Requirement(
        "001 11.4", "under pressure previews go first, decisions never"
    ),
    "001-13:import": Requirement(
        "001 13", "an import backs up, wraps every stdio server and keeps its name"
    ),
    "001-13:restore": Requirement("001 13", "a restore brings back the exact bytes"),
    "001-16E:run": Requirement(
        "001 16 track E", "`sub run` names the run and stamps the identity for every client"
    ),
    "001-16E:tail": Requirement("001 16 track E", "`sub tail` streams live events"),
    "001-16E:query": Requirement(
        "001 16 track E", "`sub query` filters by decision, status, tool and server"
    ),
    "001-16H:strict": Requirement("001 16 track H", "in strict mode a violation fails the job"),
    "001-16H:artifacts": Requirement("001 16 track H", "a run leaves its artifacts"),
    "001-16H:concurrent": Requirement(
        "001 16 track H", "many concurrent runs under guardrails keep their budgets and records"
    ),
    "001-16I:loops": Requirement("001 16 track I", "a loop of identical calls is stopped"),
    "001-16I:crash": Requirement("001 16 track I", "a crash loses no decided call"),
    "001-12:ui": Requirement(
        "001 12",
        "live stream, runs, timelines, call detail and filters in a browser",
        deferred="web UI",
    ),
    "001-4:sidecar": Requirement(
        "001 4 and 17",
        "a sidecar with signed policy snapshots and a central collector",
        deferred="fleet",
    ),
    "001-7.6:http-streams": Requirement(
        "001 7.6", "HTTP and SSE streams are never buffered whole", deferred="HTTP door"
    ),
    # The kernel (seed 003: adjudicate)
    "003:intent-hash": Requirement(
        "003 retries", "intentHash covers version, kind, payload, nonce, actor and taint"
    ),
    "003:hash-order": Requirement(
        "003 invariants", "the same envelope has the same hash whatever the order of its keys"
    ),
    "003:retries": Requirement(
        "003 retries", "the nonce is the idempotency key; createdAt does not change the hash"
    ),
    "003:legacy-rows": Requirement(
        "003 retries", "rows of version 1 become envelopes of version 2 (legacyV1ToV2)"
    ),
    "003:taint-monotone": Requirement("003 invariants", "mergeTaint never raises trust"),
    "003:field-taints": Requirement("003 top level", "fields may have a level (TaintedValue)"),
    "003:version-gate": Requirement(
        "003 invariants", "envelopes of an unknown version are refused, SECURITY"
    ),
    "003:vocabulary": Requirement(
        "003 invariants", "every basis code is in BASIS_CODES of its category"
    ),
    "003:untrusted-never-executes": Requirement(
        "003 invariants", "UNTRUSTED never executes when the policy demands more"
    ),
    "003:six-decisions": Requirement("003 top level", "Decision has six kinds"),
    "003:four-refusals": Requirement("003 top level", "Refusal has four kinds"),
    "003:rewrite-scope": Requirement(
        "003 REWRITE", "a REWRITE sanitises, normalises or caps; it is never another action"
    ),
    "003:pure": Requirement(
        "003 kernel", "adjudicate is deterministic, and whatever a guard does is a decision"
    ),
    "003:kill-switch": Requirement("003 kernel", "the kill switch engages before the version gate"),
    "003:deadline": Requirement("003 kernel", "adjudicateWithDeadline refuses when time is up"),
    "003:learn": Requirement(
        "003 kernel", "adjudicateAndLearn emits an event; a learning sink that fails is absorbed"
    ),
    "003:audit": Requirement(
        "003 kernel", "adjudicateAndAudit emits a record; an audit sink that fails propagates"
    ),
    "003:ledger": Requirement(
        "003 kernel", "an intent that was executed is refused: ledger_replay_suppressed"
    ),
    "003:audit-record": Requirement(
        "003 top level", "an audit record carries envelope, decision, plan and planFingerprint"
    ),
    "003:replay-from-audit": Requirement(
        "003 retries", "replayEnvelopeFromAudit keeps the nonce, so the hash is that on record"
    ),
    "003:metrics": Requirement(
        "003 kernel", "recorders for ledger, decisions, refusals and sink failures"
    ),
    "003:combinators": Requirement("003 kernel", "allOf, firstMatch and constant make guards"),
    "003:shadow": Requirement("003 kernel", "adjudicateWithShadow classifies divergences"),
    "003:rollout": Requirement("003 kernel", "lists in the environment say what is enforced"),
    "003:rate-limit": Requirement("003 kernel", "a guard and a store limit the rate of intents"),
    "003:planner": Requirement(
        "003 llm", "a plan that shows a MUTATING tool raises PlanConformanceError"
    ),
    "003:pack-conformance": Requirement("003 top level", "assertPackConformance checks the shape"),
    "003:drift": Requirement(
        "003 top level", "withBasisAudit reports refusal codes that a pack did not declare"
    ),
    "kernel:one-execution": Requirement(
        "kernel 2", "of all racers with one nonce, one executes; the others are told the holder"
    ),
    "kernel:unknown-after-death": Requirement(
        "kernel 2", "an execution whose process died is `unknown`, and findable"
    ),
    "kernel:durable-claim": Requirement(
        "kernel 2", "a claim is on the disk before the handler runs"
    ),
    "kernel:ledger-moved": Requirement(
        "kernel 2", "nothing is claimed in a file that was deleted or replaced"
    ),
    "kernel:ledger-out-of-reach": Requirement(
        "kernel 2", "while the execution ledger is out of reach, nothing executes"
    ),
    "kernel:retention": Requirement(
        "kernel 2", "executions that are done are kept for 14 days, all others until they are freed"
    ),
    "kernel:no-password": Requirement(
        "kernel 2", "no message contains the password of the execution ledger"
    ),
    "kernel:person-frees": Requirement(
        "kernel 2", "`sub intent release` is for a person, for `unknown` executions, and recorded"
    ),
    "003:names": Requirement("003", "every name of the seed and of the design page is there"),
    "003:envelope": Requirement(
        "003 top level", "an envelope has a version, a hash, a taint, and members of their types"
    ),
    "003:lattice": Requirement(
        "003 top level", "SYSTEM > TRUSTED > UNTRUSTED; canPropose compares with the minimum"
    ),
    "003:canonical-json": Requirement(
        "003 top level", "canonicalJson is sorted and normal; sha256Canonical is its hash"
    ),
    "003:user-facing": Requirement("003 top level", "a refusal has words for its user"),
    "003:kernel-codes": Requirement(
        "003 top level", "the kernel refuses with KERNEL_REFUSAL_CODES only"
    ),
    "003:plan-fingerprint": Requirement(
        "003 top level", "records and learning events are matched by the fingerprint of the plan"
    ),
    "003:guard-order": Requirement(
        "003 kernel", "kill, version, hash, state, taint, auth, business, default; first opinion"
    ),
    "003:hash-checked": Requirement(
        "003 kernel", "an envelope that does not have its hash is refused before any guard"
    ),
    "003:resource-limits": Requirement("003 kernel", "a recorder for resource limits"),
    "003:kill-context": Requirement("003 kernel", "setKillSwitch and isKilled, per tenant"),
    "003:variables": Requirement("003 kernel", "the names of the variables can be chosen"),
    "003:four-stages": Requirement("003 kernel", "an intent is brought in in four stages"),
    "003:confirmation": Requirement(
        "003 kernel", "a confirmed REQUEST_CONFIRMATION executes, if it is of this intent"
    ),
    "003:replay-classes": Requirement(
        "003 kernel", "a replay is classified by kind, reasons and refusal code"
    ),
    "003:renderer": Requirement("003 llm", "the renderer writes a plan down and decides nothing"),
    "003:read-only": Requirement("003 llm", "filterReadOnly hides what is not READ"),
    "003:rewrite-categories": Requirement(
        "003 REWRITE", "sanitising, normalising and capping are allowed"
    ),
    "003:install-pack": Requirement(
        "003 top level",
        "installPack checks, watches and installs console sinks where none are set",
    ),
    # Packs (issue 18)
    "kernel:installed-packs": Requirement(
        "issue 18", "a pack is found by its entry point; two of one name are refused, both named"
    ),
    "kernel:bad-packs": Requirement(
        "issue 18", "a pack that does not import, or is none, is refused with a sentence"
    ),
    "kernel:never-a-repository": Requirement(
        "issue 18", "packs are installed: no code of a repository stands in for one"
    ),
    "kernel:fingerprint": Requirement(
        "issue 18", "a fingerprint changes with a pack and its code, and with nothing else"
    ),
    "kernel:changed-pack": Requirement(
        "issue 18", "a pack that changes under a running process is refused"
    ),
    # The in-process door (issue 18, kernel.md 2 and 3)
    "kernel:six-decisions": Requirement("kernel 3", "six decisions in the terms of Contract C"),
    "kernel:records": Requirement("kernel 2", "decision.kernel, and the pack as decision.policy"),
    "kernel:journal-first": Requirement(
        "kernel 2", "decision and audit record are journalled before the handler runs"
    ),
    "kernel:once": Requirement("kernel 2", "an intent with one nonce runs once"),
    "kernel:not-executed": Requirement("kernel 2", "NotExecuted releases the claim"),
    "kernel:unknown": Requirement("kernel 2", "after another exception the outcome is unknown"),
    "kernel:strictest": Requirement(
        "kernel 2", "pack and policy layers are all asked; the strictest wins, the pack on a tie"
    ),
    "kernel:stops": Requirement("kernel 2", "stops hold, and what they refuse is not claimed"),
    "kernel:env-switch": Requirement("kernel 2", "SUB_KILL_SWITCH stops every door"),
    "kernel:confirmation": Requirement("kernel 3", "the grant is the Confirmation"),
    "kernel:untrusted-never-executes": Requirement(
        "003 invariants", "no grant lifts the taint gate"
    ),
    "kernel:caps": Requirement("kernel 3", "a principal caps the level of its intents"),
    "kernel:bad-input": Requirement(
        "issue 18", "a payload without a canonical form is refused and on record"
    ),
    "kernel:executions-out-of-reach": Requirement(
        "kernel 2", "executions out of reach: nothing executes"
    ),
    "kernel:example": Requirement(
        "issue 18", "an agent of 40 lines with open_kernel, as its guide"
    ),
    "kernel:replayed": Requirement(
        "kernel 2", "a replay of policies keeps what the pack of the door said"
    ),
    "kernel:rollout": Requirement(
        "kernel 2", "with legacy the rollout decides per intent; both answers are recorded"
    ),
    # Taint of a run (issue 18)
    "taint:shared": Requirement(
        "kernel 3", "the level is exact over all shims of a run and their restarts"
    ),
    "taint:never-rises": Requirement(
        "kernel 3", "a level never rises by itself, also if a process is killed at any point"
    ),
    "taint:start": Requirement(
        "kernel 3",
        "a run starts at the lowest of defaults.taint, SUB_TAINT, --taint and the run that starts it",
    ),
    "taint:made-anew": Requirement(
        "kernel 3", "a run with journals whose state is made anew is UNTRUSTED"
    ),
    "taint:forwarded": Requirement(
        "kernel 3",
        "a call that is forwarded lowers the run, in observe mode too; a refused call does not",
    ),
    "taint:before-it-leaves": Requirement(
        "kernel 3",
        "the run is lowered before the call leaves, whoever holds its lock, and that is on record",
    ),
    "taint:no-state": Requirement(
        "kernel 3",
        "what may lower a run without a state is refused, unless the policies only observe",
    ),
    "taint:damaged": Requirement(
        "kernel 3", "a level that was damaged is UNTRUSTED, and that is on record"
    ),
    "taint:first-rule": Requirement(
        "kernel 3", "the first taint rule that matches counts, and SYSTEM exempts"
    ),
    "taint:layers": Requirement(
        "kernel 3", "over layers the lowest level holds, also within one call"
    ),
    "taint:resources": Requirement(
        "kernel 3", "resources/read and prompts/get lower where a rule names servers only"
    ),
    "taint:match": Requirement("kernel 3", "match.taint is about the level before the call"),
    "taint:summary": Requirement(
        "kernel 3", "a refusal says since which call the run has its level"
    ),
    "taint:below-untrusted": Requirement("kernel 3", "`below: UNTRUSTED` is an error"),
    "taint:lint": Requirement("kernel 3", "lint warns of `below` that nothing lowers"),
    "taint:diff": Requirement("kernel 3", "less lowering is a critical difference"),
    "taint:cases": Requirement(
        "kernel 3", "cases start with `taint` and compare `want.taint` after the call"
    ),
    "taint:events": Requirement(
        "kernel 3",
        "run_start, decisions and taint_changed tell the level, where a policy speaks of it",
    ),
    "taint:person": Requirement("kernel 3", "raising a level is a person's; anyone may lower it"),
    "taint:replay": Requirement("kernel 3", "the replay of a recorded run gives no differences"),
    "taint:program": Requirement("kernel 3", "a program lowers its run, on record as `sdk`"),
    "taint:this-very-call": Requirement(
        "kernel 3",
        "a person who is asked answers for the very call, and the level stays",
    ),
    # Packs (issue 18)
    "kernel:pix": Requirement(
        "kernel 4", "refunds are positive integers, capped at what is left of the charge"
    ),
    "kernel:shell-ordinary": Requirement(
        "issue 18", "what coding agents type all day runs, with a sensible allowlist"
    ),
    "kernel:shell-hostile": Requirement(
        "issue 18", "what attackers make of it does not run, whatever is listed"
    ),
    "kernel:shell-risks": Requirement(
        "kernel 4", "ruin is refused, risks are confirmed, credential files go to a person"
    ),
    "kernel:shell-files": Requirement(
        "kernel 4", "files are written and deleted below the roots, protected ones are not"
    ),
    "kernel:intents-recorded": Requirement(
        "kernel.md 2", "what a pack decided is a row of the ledger, proven, mended and dropped"
    ),
    "kernel:query-intents": Requirement(
        "kernel.md 4", "`sub query intents` joins the ledger with the status of executions"
    ),
    "kernel:found-half-way": Requirement(
        "kernel.md 2", "an execution that died half way is found, whatever reached the ledger"
    ),
    "kernel:screens": Requirement(
        "kernel.md 4", "`sub tail` and `sub show` tell intents, taint and kernel decisions"
    ),
    "kernel:records-masked": Requirement(
        "kernel.md 2", "audit records have no secret, and keep to the record mode"
    ),
    # Packs (issue 18)
    "kernel:pack-commands": Requirement(
        "kernel 4", "`sub pack list`, `show` and `check`: shape and eight checks, 1 if one fails"
    ),
    "kernel:pack-scenarios": Requirement(
        "kernel 4", "`sub pack test`: 1 for a mismatch, 2 and a sentence for a bad file"
    ),
    "kernel:pack-replay": Requirement(
        "kernel 4", "`sub pack replay`: 1 if a decision changed; others' parts are as recorded"
    ),
    "kernel:audit-files": Requirement(
        "kernel 4", "`sub ledger verify --audit-records`: 1 if a record is false"
    ),
    # Kernel rules (issue 18)
    "kernel-rule:compile": Requirement(
        "issue 18", "a kernel rule whose pack or intent is missing does not compile"
    ),
    "kernel-rule:fingerprint": Requirement("issue 18", "the snapshot names the pack's fingerprint"),
    "kernel-rule:place": Requirement(
        "issue 18", "a pack decides in its place among the rules; EXECUTE is no opinion"
    ),
    "kernel-rule:errors": Requirement(
        "issue 18", "a pack that cannot be asked is an error, by decision_on_error"
    ),
    "kernel-rule:grants": Requirement(
        "issue 18", "a grant is the confirmation of a pack's question, and of nothing else"
    ),
    "kernel-rule:taint": Requirement(
        "issue 18",
        "UNTRUSTED never executes at a door: the taint gate holds whatever a person says",
    ),
    "kernel-rule:ahead": Requirement(
        "issue 18", "guards do not run under the run's lock: packs are asked before"
    ),
    "kernel-rule:rewrite": Requirement(
        "issue 18", "a REWRITE is offered as suggested_args that would pass, and never applied"
    ),
    "kernel-rule:diff": Requirement("issue 18", "a pack that changes, or goes, is a critical diff"),
    "kernel-rule:changed-pack": Requirement(
        "issue 18", "a pack that is not the snapshot's decides nothing"
    ),
    "kernel-rule:unused": Requirement(
        "issue 18", "without a kernel rule nothing of kernel or packs is loaded"
    ),
    "kernel-rule:engine": Requirement(
        "issue 18", "pack and policy layers are all asked, the strictest wins, the pack on a tie"
    ),
    "kernel:pack-template": Requirement(
        "issue 18", "a template and a guide for writing, testing, installing a pack, run as written"
    ),
    # Trust: outcomes (issue 19)
    "trust:outcomes": Requirement(
        "trust 2", "eleven outcomes follow from action, reason code and grant"
    ),
    "trust:outcome-column": Requirement(
        "trust 2", "every call on record has its outcome, in a ledger of any version"
    ),
    "trust:outcome-filter": Requirement(
        "trust 2", "the filter `outcome` finds the same calls in the ledger and in the live stream"
    ),
    "trust:ticket": Requirement(
        "issue 19", "`require: ticket`: pattern and check command accept the ticket, or no grant"
    ),
    "trust:step-up": Requirement(
        "issue 19", "`require: step_up` is answered with a typed passphrase, never from a script"
    ),
    "trust:human": Requirement(
        "issue 19", "`require: human`: by no grant of `promote`, no script and no client's prompt"
    ),
    "trust:guides": Requirement(
        "issue 19", "the guides for GitHub Actions, GitLab and pods run as written"
    ),
    "trust:grant-fits": Requirement(
        "issue 19", "a grant passes a rule only if it gives what the rule requires now"
    ),
    # Trust (issue 19): the registry, proofs and levels
    "trust:attested": Requirement(
        "trust T4", "tokens of GitHub, GitLab and Kubernetes prove an agent, offline"
    ),
    "trust:forgeries": Requirement(
        "issue 19", "every forged token is refused, its problem named, and never repeated"
    ),
    "trust:home-tokens": Requirement(
        "trust T2", "a token of the home's key is good for one agent, one home, and one run if so"
    ),
    "trust:no-extra": Requirement(
        "trust T4", "without the extra `trust` an attestation is refused with a hint"
    ),
    "trust:base": Requirement(
        "trust T2", "unregistered is untrusted; without a proof at most `unattested`"
    ),
    "trust:sums": Requirement("trust T3", "upstream's TrustEvaluator, each adjustment explained"),
    "trust:unproven": Requirement(
        "trust T1", "a name alone gives neither type nor roles: they are claims"
    ),
    "trust:delegation": Requirement(
        "trust T2", "delegated trust is at most the parent's, roles are intersected"
    ),
    "trust:sealed-registry": Requirement(
        "trust T5", "registry files edited, copied, put back, from another home: never more trust"
    ),
    "trust:revoked": Requirement("trust T5", "a revoked id never returns, whatever its files say"),
    "trust:noticed": Requirement("trust T5", "a change of the registry reaches running processes"),
    "trust:people": Requirement(
        "trust T5", "register, attest and revoke are for people, and behind the passphrase"
    ),
    "trust:commands": Requirement(
        "trust 1", "`sub agents` has the flags, rows and exit codes of the design's table"
    ),
    "trust:agent-changed": Requirement(
        "trust T5", "each change of the registry is journalled as agent_changed"
    ),
    "trust:run-environment": Requirement("trust 2", "SUB_ENV and `--env` take any name"),
    "trust:run-attested": Requirement(
        "trust T2", "in a run a token proves its agent, and a bare name does not"
    ),
    "trust:run-launched": Requirement(
        "trust T2", "`sub run --agent-id` is sealed: a cleared environment loses nothing"
    ),
    "trust:run-delegated": Requirement(
        "trust T2", "a nested `sub run` is a delegation, whatever the agent says of itself"
    ),
    "trust:run-tokens": Requirement(
        "trust T4", "a token reaches no server's environment and no file"
    ),
    "trust:run-rotated": Requirement("issue 19", "a token file that was rotated is read again"),
    "trust:run-expiry": Requirement("trust T3", "a proof ends while a shim runs"),
    "trust:run-unasked": Requirement(
        "trust T3", "an agent is resolved only if a rule in force asks, and when it first does"
    ),
    "trust:run-revoked": Requirement(
        "trust T5", "calls of a revoked agent are refused at every door, policy or none"
    ),
    # Trust: Agent-SPM's bundles (trust-and-sdk 2, Dialect)
    "trust:dialect-refuses": Requirement(
        "issue 19", "what Agent-SPM's loader refuses, and conditions that never hold, are errors"
    ),
    "trust:dialect-names": Requirement(
        "issue 19", "names of tools match as there: `*`, a prefix, equality, lists of exact names"
    ),
    "trust:dialect-outcomes": Requirement(
        "issue 19", "the six outcomes have their actions; the default is a last rule DEFAULT_…"
    ),
    "trust:dialect-javascript": Requirement(
        "issue 19", "regular expressions keep JavaScript's meaning; skipped patterns are enforced"
    ),
    "trust:dialect-hash": Requirement(
        "issue 19", "`compile --as bundle` prints a bundle with the same policy_hash"
    ),
    "trust:dialect-commands": Requirement(
        "issue 19", "every policy command takes a bundle of Agent-SPM"
    ),
    "trust:dialect-layers": Requirement(
        "issue 19", "a layer may be a bundle of Agent-SPM: a shim enforces it"
    ),
    "trust:dialect-expired": Requirement(
        "issue 19", "commands refuse a bundle of Agent-SPM that has expired"
    ),
    "trust:dialect-signature": Requirement(
        "issue 19", "the signature covers every member; the weak form needs a switch of its own"
    ),
    "trust:dialect-signed-layers": Requirement(
        "issue 19", "with a key in the settings, an unsigned policy does not come into force"
    ),
    "trust:dialect-agrees": Requirement(
        "issue 19", "our engine decides as Agent-SPM's evaluator, but for the listed differences"
    ),
    # Trust (issue 19): `sub scan`
    "trust:scan-entries": Requirement(
        "issue 19", "each rule about entries finds its hits, with file and line, and no near miss"
    ),
    "trust:scan-definitions": Requirement(
        "issue 19", "each rule about definitions finds its hits, in schemas too, and no near miss"
    ),
    "trust:scan-manifests": Requirement(
        "issue 19", "upstream's nine rules, levels, weights and thresholds for manifests"
    ),
    "trust:scan-official": Requirement(
        "issue 19", "no text finding in the definitions of the official servers"
    ),
    "trust:scan-poisoned": Requirement("issue 19", "every published poisoning shape is found"),
    "trust:scan-starts-nothing": Requirement(
        "issue 19", "without --start a scan starts no process and opens no socket"
    ),
    "trust:scan-start": Requirement(
        "issue 19", "--start asks, lists tools under a warden, calls nothing, passes no secret"
    ),
    "trust:scan-no-secret": Requirement("issue 19", "no report shows the value of a secret"),
    "trust:scan-reports": Requirement(
        "issue 19", "rows, exit codes, JSON and valid SARIF; unreadable files are named"
    ),
    # Our own, where tests/contracts proves more than the Pack asks
    "house:templates": Requirement("issue 2", "byte templates give the structs' JSON"),
    "house:schemas": Requirement("issue 2", "published schemas accept ours, refuse broken ones"),
    "house:misfits": Requirement(
        "rule-evaluation", "every misfit of a bundle is reported, with a suggestion"
    ),
    "house:counters": Requirement(
        "shared-runs", "a cell holds a whole window; cells have four kinds"
    ),
    "house:additive": Requirement("0.1", "our additive fields are optional"),
    # Trust: who acts (issue 19)
    "trust:claims-tighten": Requirement(
        "trust T1", "no claim makes a decision milder; the facts' decision holds on a tie"
    ),
    "trust:claims-count-once": Requirement("trust T1", "a call with claims counts once"),
    "trust:settled-matchers": Requirement(
        "issue 19", "rules about other agents are as if they were not there"
    ),
    "trust:free-when-unused": Requirement(
        "issue 19", "a shim without rules about who acts loads nothing for them"
    ),
    "trust:environment-as-written": Requirement(
        "trust 2", "`environment` is compared as SUB_ENV says it, in any words"
    ),
    "trust:denials-cost-trust": Requirement(
        "trust T3", "more than three refusals in a row cost trust, until a call is forwarded"
    ),
    "trust:given-matchers": Requirement(
        "trust 2", "rules match the provider, the labels and the context of a call"
    ),
    "trust:given-on-record": Requirement(
        "issue 19", "what a program says of a call is on record, with secrets masked"
    ),
    "trust:replay-facts": Requirement(
        "issue 19", "replay decides by recorded facts; without them a call is undetermined"
    ),
    "trust:explain-agents": Requirement(
        "trust 2", "explain says why a rule about other agents was left out"
    ),
    "trust:case-facts": Requirement("trust 2", "cases give facts, labels, context and claims"),
    "trust:lint-claimable": Requirement(
        "issue 19", "lint warns about an allow that rests on labels or context alone"
    ),
    "trust:lint-unregistered": Requirement(
        "issue 19", "lint warns about identity rules and none for the unregistered"
    ),
    "trust:diff-who-gains": Requirement("issue 19", "diff says who gains by a change of a match"),
    "trust:data-classes": Requirement(
        "trust 2",
        "data_any: cards by Luhn, SSN, addresses and phone numbers are found in arguments",
    ),
    "trust:data-secrets": Requirement("issue 19", "SECRET is what the redactor masks"),
    "trust:data-unseen": Requirement(
        "trust 2", "data that nobody looked for counts against a call, and never for it"
    ),
    "trust:text-values": Requirement(
        "trust 2", "text: every string, number and bool value at any depth, never a key"
    ),
    "trust:text-user-input": Requirement("trust 2", "text searches user_input as well"),
    "trust:args-additions": Requirement(
        "trust 2", "args: key_not_equals, null in key_equals, gt and lt"
    ),
    "trust:constraints": Requirement("trust 2", "constraints are told, recorded and masked"),
    "trust:sliding-window": Requirement(
        "trust 2", "a sliding window counts the calls that passed, the edge included"
    ),
    "trust:budget-reset": Requirement("trust 2", "a budget with reset_ms starts anew"),
    "trust:agent-scopes": Requirement("trust 2", "scopes agent and agent_tool, within the run"),
    "trust:policy-expires": Requirement(
        "issue 19", "expires_at holds while a shim runs: BLOCK, POLICY_EXPIRED"
    ),
    "trust:sequence": Requirement(
        "trust 2", "the call that completes a pattern is refused, whatever lies between"
    ),
    "trust:sequence-within": Requirement("trust 2", "within_ms of a sequence is exact"),
    "trust:sequence-shared": Requirement(
        "issue 19", "a sequence is exact across the shims of a run, even if one is killed"
    ),
    "trust:lint-contents": Requirement(
        "issue 19", "lint finds texts and sequences that never hold, and policies that end soon"
    ),
    "sdk:approvals-off": Requirement(
        "trust-and-sdk 4", "approvals=None refuses with the hint, at once"
    ),
    "sdk:approvals-wait": Requirement(
        "trust-and-sdk 4", "a call waits for sub approve or sub deny; other calls go on"
    ),
    "sdk:approval-timeout": Requirement(
        "trust-and-sdk 4", "nobody answers in time: the retry is refused, APPROVAL_TIMEOUT"
    ),
    "sdk:retry-of": Requirement(
        "trust-and-sdk 4",
        "two calls on record, refusal and retry: each can be found from the other",
    ),
    "sdk:wait-ends": Requirement(
        "issue 20", "a kill, the end of the run, of the guard or of the interpreter ends a wait"
    ),
    "sdk:grant-once": Requirement(
        "issue 20", "a grant is used once, also when eight tasks ask at once"
    ),
    "sdk:callback": Requirement(
        "trust-and-sdk 4", "a function as approvals is asked as well; the first answer holds"
    ),
    "sdk:callback-limits": Requirement(
        "trust-and-sdk 4", "callbacks answer neither the managed layer nor a step-up"
    ),
    "sdk:callback-ticket": Requirement(
        "issue 20", "a callback's text is the ticket, checked as sub approve checks it"
    ),
    "sdk:callback-fails": Requirement(
        "issue 20", "a callback that fails denies; on_error is told; the record is masked"
    ),
    "sdk:on-throttle": Requirement(
        "trust-and-sdk 4", 'with on_throttle="wait" a throttled call waits and retries, bounded'
    ),
    "sdk:errors-told": Requirement(
        "trust-and-sdk 4", "on_error is told of callbacks, plugins and bugs, and changes nothing"
    ),
    "sdk:plugins": Requirement(
        "policy-layers",
        "a plugin's decision is one more layer: the strictest holds, under its name",
    ),
    "sdk:plugin-fails": Requirement(
        "issue 20", "a plugin that fails denies with PLUGIN_ERROR unless fail_open"
    ),
    "trust:replay-contents": Requirement(
        "issue 19", "replay: what the record hides of texts and data is undetermined"
    ),
    "sdk:integration-hint": Requirement(
        "issue 20", "in each framework a refused model reads the hint, follows it and succeeds"
    ),
    "sdk:integration-ids": Requirement("issue 20", "frameworks' own call ids are client_call_id"),
    "sdk:integration-end": Requirement(
        "issue 20", "RunTerminated leaves the loop; where nothing can, the model is told"
    ),
    "sdk:integration-failures": Requirement(
        "issue 20", "a tool's failure that a framework turns into a result is recorded as ERROR"
    ),
    "sdk:integration-handover": Requirement(
        "issue 20", "a shim behind a guarded MCP client decides and counts nothing twice"
    ),
    "sdk:integration-handoffs": Requirement(
        "issue 20", "handoffs and the agents behind them are guarded; a refused one is told"
    ),
    "sdk:integration-provider": Requirement(
        "trust-and-sdk 2", "tool_provider names the framework whose tool is called"
    ),
    "sdk:integration-pauses": Requirement(
        "issue 20", "a tool that stops to ask a person is CANCELLED, and is decided again"
    ),
    "sdk:integration-waits": Requirement(
        "issue 20", "a call of a framework waits for answers and rate limits; others go on"
    ),
    "sdk:integration-missing": Requirement(
        "issue 20", "a framework that is not installed gives one clear error"
    ),
    "sdk:integration-lazy": Requirement("issue 20", "integrations import no framework until used"),
    "sdk:integration-unguardable": Requirement(
        "issue 20", "a tool that cannot be guarded is an error, not a gap"
    ),
    "sdk:refusals": Requirement(
        "trust-and-sdk 4", "a refused function does not run; the exception has the shim's sentence"
    ),
    "sdk:refusals-returned": Requirement(
        "trust-and-sdk 4", 'with refusals="return" the text is returned, the end of a run is raised'
    ),
    "sdk:made-once": Requirement(
        "issue 20", "a guarded call is made once: no block runs undecided"
    ),
    "sdk:policy-error": Requirement("trust-and-sdk 4", "PolicyError at construction"),
    "sdk:ends": Requirement(
        "issue 20", "exceptions are ERROR with masked text; cancelled is CANCELLED"
    ),
    "sdk:streams": Requirement(
        "issue 20", "a stream ends when it is exhausted, closed, fails or is collected"
    ),
    "sdk:interrupted": Requirement(
        "issue 20", "code that interrupts a thread inside of a guard breaks no lock and no chain"
    ),
    "sdk:binding": Requirement(
        "issue 20", "arguments are bound by signature with its defaults, `self` left out"
    ),
    "sdk:json-form": Requirement("issue 20", "values of usual types have a JSON form"),
    "sdk:no-json-form": Requirement(
        "trust-and-sdk 4", "a value without a JSON form: as too large to inspect, no hash repeats"
    ),
    "sdk:bounded-results": Requirement("issue 20", "results are previewed, redacted, bounded"),
    "sdk:scoped-run": Requirement(
        "trust-and-sdk 4", "guard.run is scoped by contextvar; an exception ends it FAILED"
    ),
    "sdk:run-ends-last": Requirement(
        "issue 20", "a run that is left while calls are under way ends with the last of them"
    ),
    "sdk:delegate": Requirement(
        "trust T2", "guard.delegate: depth + 1, at most the parent's trust and roles, same run"
    ),
    "sdk:environ": Requirement(
        "trust-and-sdk 4", "children of guard.environ() share run, agent, home and policy"
    ),
    "sdk:claims-tighten": Requirement(
        "trust T1", "no label or context of a guarded call takes back what holds without them"
    ),
    "sdk:targets": Requirement("issue 20", "targets= says what a call touches"),
    "sdk:handover": Requirement(
        "trust-and-sdk 4", "a shim behind a guarded MCP call takes the claim: one call, one record"
    ),
    "sdk:exact": Requirement(
        "issue 20", "threads, tasks, forks, processes and shims share one budget exactly"
    ),
    "sdk:forks": Requirement("trust-and-sdk 4", "a forked child is a new shim of the same run"),
    "sdk:exit": Requirement("issue 20", "an interpreter that ends without close ends its run"),
    "sdk:kill": Requirement(
        "issue 20", "kill -9 at random points: nothing executed without a journalled decision"
    ),
    "sdk:on-error": Requirement(
        "issue 20", "a full disk, a read-only home, a broken policy follow decision_on_error"
    ),
    "sdk:fast-start": Requirement(
        "issue 20", "Guard loads no asyncio, YAML, HTTP, logging or crypto"
    ),
    "sdk:guide": Requirement("issue 20", "ten minutes to a guarded agent: the guide runs"),
    "sdk:typed": Requirement("issue 20", "the decorator keeps types; mypy --strict over the API"),
    # subluminal.spm
    "sdk:spm-surface": Requirement("issue 20", "the seed's API: names, parameters and defaults"),
    "sdk:spm-signature": Requirement("trust-and-sdk 4", "policy_hmac_key: every rule is signed"),
    "sdk:spm-reload": Requirement("trust-and-sdk 4", "a policy is reloaded; a broken one is not"),
    "sdk:spm-claims": Requirement("trust-and-sdk 4", "a caller's own trust and roles never loosen"),
    "sdk:spm-answers": Requirement("trust-and-sdk 4", "callbacks answer; both calls are recorded"),
    "sdk:spm-timeout": Requirement("trust-and-sdk 4", "a callback that is late or fails says no"),
    "sdk:spm-no-mutex": Requirement("issue 20", "an open approval blocks nobody"),
    "sdk:spm-one-grant-each": Requirement("issue 20", "equal calls at once: a grant for each"),
    "sdk:spm-record": Requirement("trust-and-sdk 4", "of user_input only the hash is recorded"),
    "sdk:spm-protect": Requirement("trust-and-sdk 4", "protect runs what is allowed, else raises"),
    "sdk:spm-output": Requirement("trust-and-sdk 4", "output_validator flags or withholds"),
    "sdk:spm-strictest": Requirement(
        "trust-and-sdk 4", "of plugins and policy the strictest holds"
    ),
    "sdk:spm-plugin-error": Requirement("issue 20", "a plugin that fails denies, unless fail_open"),
    "sdk:spm-same-call": Requirement("trust-and-sdk 4", "no plugin changes a call's tool or args"),
    "sdk:spm-session-limit": Requirement("issue 20", "rejected calls use up no session limit"),
    "sdk:spm-not-counted": Requirement("issue 20", "what plugins refuse is not executed"),
    "sdk:spm-plugin-asks": Requirement(
        "trust-and-sdk 4", "a plugin's REQUIRE_* runs the callbacks"
    ),
    "sdk:spm-rules": Requirement("trust-and-sdk 4", "plugins as rules, with upstream's codes"),
    "sdk:spm-egress": Requirement("trust-and-sdk 4", "egress_enforcer: what stays, and for whom"),
    "sdk:spm-commands": Requirement("trust-and-sdk 4", "command_governor: every command counts"),
    "sdk:spm-guardian": Requirement("trust-and-sdk 4", "guardian refuses, and stops the agent"),
    "sdk:spm-session-run": Requirement("trust-and-sdk 4", "a session is limited in the whole run"),
    "sdk:spm-both-ask": Requirement("trust-and-sdk 4", "plugins and policy may both require"),
    "sdk:spm-asked-once": Requirement("trust-and-sdk 4", "a hook is called once for a check"),
    "sdk:spm-wait-ends": Requirement("trust-and-sdk 4", "sub approve and a kill end the wait"),
    "sdk:spm-may-answer": Requirement(
        "trust-and-sdk 4", "no callback answers the managed layer or in place of a passphrase"
    ),
    "sdk:spm-ticket": Requirement("trust-and-sdk 4", "on_ticket_required's text is the ticket"),
    "sdk:spm-cancelled": Requirement("issue 20", "a cancelled check leaves no call open"),
    "sdk:spm-init": Requirement("trust-and-sdk 4", "no check before the plugins are initialized"),
    "sdk:spm-many-agents": Requirement("trust-and-sdk 4", "no guard is closed under a call"),
    "sdk:spm-typed": Requirement("issue 20", "the types of spm hold under mypy --strict"),
    "sdk:spm-tools-too": Requirement(
        "trust-and-sdk 4", "identity_enforcer checks agents and tools"
    ),
    "sdk:spm-kill-switch": Requirement("trust-and-sdk 4", "kill_switch stops agents at every door"),
    "sdk:spm-trust": Requirement("trust-and-sdk 4", "TrustEvaluator, AgentRegistry, ToolRegistry"),
}
