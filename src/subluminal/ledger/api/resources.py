"""The queries as HTTP resources: each with its address, its parameters and the function to call."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from subluminal.clock import now
from subluminal.ledger.api.answers import answer, refuse
from subluminal.ledger.api.parameters import (
    ApprovalPageParameters,
    CallPageParameters,
    CallParameters,
    HintPageParameters,
    HistogramParameters,
    IntentPageParameters,
    NoParameters,
    PageParameters,
    RecoveryParameters,
    RunPageParameters,
    read_parameters,
)
from subluminal.ledger.api.readers import Readers
from subluminal.ledger.query import (
    approvals,
    calls,
    facets,
    hints,
    intents,
    policies,
    records,
    runs,
    tools,
)


class Resource(NamedTuple):
    """One address that answers to GET."""

    path: str
    summary: str
    parameters: type[Struct]
    answers: Any
    """type of the answer, for the OpenAPI document"""
    read: Callable[[Readers, Any, dict[str, str]], Awaitable[Any]]
    """makes the answer from the parameters and the names in the path; None is a 404"""


async def _calls(readers: Readers, given: CallPageParameters, _: dict[str, str]) -> Any:
    return await readers.run_fresh(calls.find_calls, given.filter(), given.paging())


async def _call(readers: Readers, _: NoParameters, path: dict[str, str]) -> Any:
    return await readers.run_fresh(calls.show_call, path["call_id"])


async def _runs(readers: Readers, given: RunPageParameters, _: dict[str, str]) -> Any:
    return await readers.run_fresh(runs.find_runs, given.filter(), given.paging())


async def _scores(readers: Readers, given: RunPageParameters, _: dict[str, str]) -> Any:
    return await readers.run_fresh(runs.find_scores, given.filter(), given.paging())


async def _run(readers: Readers, _: NoParameters, path: dict[str, str]) -> Any:
    return await readers.run_fresh(runs.show_run, path["run_id"])


async def _hints(readers: Readers, given: HintPageParameters, _: dict[str, str]) -> Any:
    wanted = (given.run, given.paging(), given.terms(), given.outcome)
    return await readers.run_fresh(hints.find_hints, *wanted)


async def _intents(readers: Readers, given: IntentPageParameters, _: dict[str, str]) -> Any:
    return await readers.run_fresh(intents.find_intents, given.filter(), given.paging())


async def _approvals(readers: Readers, given: ApprovalPageParameters, _: dict[str, str]) -> Any:
    wanted = (given.paging(), now().wall_ms, given.terms(), given.state)
    return await readers.run_fresh(approvals.find_approvals, *wanted)


async def _switches(readers: Readers, given: PageParameters, _: dict[str, str]) -> Any:
    return await readers.run_fresh(approvals.find_switches, given.paging())


async def _recovery(readers: Readers, given: RecoveryParameters, _: dict[str, str]) -> Any:
    return await readers.run_fresh(hints.count_recovery, given.by, *given.span())


async def _facets(readers: Readers, given: CallParameters, _: dict[str, str]) -> Any:
    return await readers.run_fresh(facets.count_facets, given.filter())


async def _histogram(readers: Readers, given: HistogramParameters, _: dict[str, str]) -> Any:
    return await readers.run_fresh(facets.count_histogram, given.filter(), given.bar_ms)


async def _tools(readers: Readers, _: NoParameters, __: dict[str, str]) -> Any:
    return await readers.run_fresh(tools.list_tools)


async def _policies(readers: Readers, _: NoParameters, __: dict[str, str]) -> Any:
    return await readers.run_fresh(policies.list_policies)


async def _policy(readers: Readers, _: NoParameters, path: dict[str, str]) -> Any:
    return await readers.run_fresh(policies.show_policy, path["policy_hash"])


RESOURCES = (
    Resource("/v1/calls", "calls, a page at a time", CallPageParameters, records.CallPage, _calls),
    Resource(
        "/v1/calls/{call_id}", "one call with its events", NoParameters, records.CallDetail, _call
    ),
    Resource("/v1/runs", "runs, a page at a time", RunPageParameters, records.RunPage, _runs),
    Resource(
        "/v1/scores",
        "runs with their counts by decision",
        RunPageParameters,
        records.ScorePage,
        _scores,
    ),
    Resource("/v1/runs/{run_id}", "one run", NoParameters, records.RunRecord, _run),
    Resource("/v1/hints", "hints, a page at a time", HintPageParameters, records.HintPage, _hints),
    Resource(
        "/v1/intents",
        "intents that packs decided, a page at a time",
        IntentPageParameters,
        records.IntentPage,
        _intents,
    ),
    Resource(
        "/v1/approvals",
        "approvals and their answers, a page at a time",
        ApprovalPageParameters,
        records.ApprovalPage,
        _approvals,
    ),
    Resource(
        "/v1/switches",
        "moves of the kill switch, a page at a time",
        PageParameters,
        records.SwitchPage,
        _switches,
    ),
    Resource(
        "/v1/recovery",
        "how often hints helped",
        RecoveryParameters,
        list[records.RecoveryRecord],
        _recovery,
    ),
    Resource(
        "/v1/facets",
        "counts by server, tool, decision, status and rule",
        CallParameters,
        records.Facets,
        _facets,
    ),
    Resource(
        "/v1/histogram", "counts over time", HistogramParameters, records.Histogram, _histogram
    ),
    Resource(
        "/v1/tools",
        "every tool that was listed or called",
        NoParameters,
        list[records.ToolRecord],
        _tools,
    ),
    Resource(
        "/v1/policies",
        "every policy that was in force",
        NoParameters,
        list[records.PolicyRecord],
        _policies,
    ),
    Resource(
        "/v1/policies/{policy_hash}",
        "one policy, with its rules",
        NoParameters,
        records.PolicyDetail,
        _policy,
    ),
)


def endpoint(resource: Resource, readers: Readers) -> Callable[[Request], Awaitable[Response]]:
    """The function that serves a resource."""

    async def serve(request: Request) -> Response:
        given = read_parameters(request.query_params.multi_items(), resource.parameters)
        found = await resource.read(readers, given, request.path_params)
        if found is None:
            name = next(iter(request.path_params.values()))
            return refuse(404, f"`{name[:80]}` is not in the ledger")
        return answer(found)

    return serve
