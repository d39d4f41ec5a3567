"""Section 3 of the Pack, read from what the client of a real shim was answered."""

import pytest
from tests.pack.story import RUN, STEPS, Story
from tests.requirements import requirement

REFUSED = {
    "blocked": (-32081, "BLOCK"),
    "throttled": (-32082, "THROTTLE"),
    "hinted": (-32083, "REJECT_WITH_HINT"),
    "tripped": (-32083, "REJECT_WITH_HINT"),
    "ended": (-32084, "TERMINATE_RUN"),
    "after": (-32084, "TERMINATE_RUN"),
}
each_refusal = pytest.mark.parametrize("step", REFUSED)


@each_refusal
@requirement("3.2.1:error-object", "3.2.1:codes")
def test_a_refused_call_gets_an_error_with_the_packs_code(story: Story, step: str) -> None:
    answer = story.answers[step]
    code, _ = REFUSED[step]
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == list(STEPS).index(step) + 1
    assert "result" not in answer
    assert answer["error"]["code"] == code
    assert isinstance(answer["error"]["message"], str)
    assert set(answer["error"]["data"]) == {"subluminal"}


@each_refusal
@requirement("3.2.2:error-data", "3.1:decision-fields", "7.4:no-decisions")
def test_the_error_says_what_was_decided_and_recorded(story: Story, step: str) -> None:
    told = story.answers[step]["error"]["data"]["subluminal"]
    _, action = REFUSED[step]
    event = story.call(step, "tool_call_decision")
    decision = event["decision"]
    assert told["v"] == "0.1.0"
    assert told["action"] == action == decision["action"]
    assert told["rule_id"] == decision["rule_id"]
    assert told["reason_code"] == decision["explain"]["reason_code"]
    assert told["summary"] == decision["explain"]["summary"]
    assert told["run_id"] == RUN
    assert told["call_id"] == event["call"]["call_id"]
    assert (told["server_name"], told["tool_name"]) == ("probe", STEPS[step].tool)
    assert told["args_hash"] == event["call"]["args_hash"]
    assert told["policy"] == decision["policy"]


@requirement("3.2.3:throttle")
def test_a_throttled_call_is_told_when_to_retry(story: Story) -> None:
    error = story.answers["throttled"]["error"]
    assert error["data"]["subluminal"]["backoff_ms"] == 1234
    assert "1234 ms" in error["data"]["subluminal"]["retry_advice"]
    assert "1234 ms" in error["message"], "most clients show the model nothing else"


@requirement("3.2.4:hint")
def test_a_rejected_call_is_told_what_to_do_instead(story: Story) -> None:
    error = story.answers["hinted"]["error"]
    hint = error["data"]["subluminal"]["hint"]
    assert hint["hint_text"] == "ask for ten rows"
    assert hint["suggested_args"] == {"limit": 10, "of": "t"}
    assert hint["hint_kind"] == "ARG_FIX"
    assert hint["retry_advice"]
    for text in ("too many rows", "Ask for ten rows", '{"limit":10,"of":"t"}'):
        assert text in error["message"]
    other = story.answers["tripped"]["error"]["data"]["subluminal"]["hint"]
    assert (other["hint_kind"], other["suggested_args"]) == ("SAFETY", None)


@requirement("3.2.2:error-data")
def test_fields_of_other_actions_are_not_sent(story: Story) -> None:
    told = story.answers["blocked"]["error"]["data"]["subluminal"]
    assert not {"backoff_ms", "hint", "terminate", "retry_advice"} & set(told)
