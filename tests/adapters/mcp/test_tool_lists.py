"""Requests for a list of tools are remembered within bounds; their answers wait for an idle loop."""

import pytest

from subluminal.adapters.mcp.messages import ListRequest
from subluminal.adapters.mcp.replies import Reply
from subluminal.adapters.mcp.tool_lists import MAX_ASKED, MAX_WAITING, ToolLists


class Heard:
    """Stands in for the host."""

    def __init__(self):
        self.pages = []

    def list_tools(self, server_name, cursor, tools):
        self.pages.append((server_name, cursor, tools))


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def lists(heard):
    return ToolLists("probe", heard)


def answer(id_, result=b'{"tools":[]}', **more):
    return Reply(id_, 1, result, **more)


def test_an_answer_waits_until_the_loop_is_idle(lists, heard):
    lists.ask(ListRequest(1, "p"))
    lists.replied(answer(2))
    lists.replied(answer(1))
    assert (lists.asked, heard.pages) == ({}, [])
    lists.record()
    lists.record()
    assert heard.pages == [("probe", "p", [])]


def test_unanswered_requests_are_forgotten(lists, heard):
    for number in range(MAX_ASKED + 1):
        lists.ask(ListRequest(number, ""))
    assert len(lists.asked) == MAX_ASKED
    lists.replied(answer(0))
    lists.cancel(1)
    lists.replied(answer(1))
    lists.replied(answer(2, b"", is_error=True))
    lists.record()
    assert heard.pages == []
    assert len(lists.asked) == MAX_ASKED - 2


def test_a_loop_that_is_never_idle_keeps_few_answers(lists, heard):
    for number in range(MAX_WAITING + 3):
        lists.ask(ListRequest(number, str(number)))
        lists.replied(answer(number))
    assert [cursor for _, cursor, _ in heard.pages] == ["0", "1", "2"]


def test_elements_that_are_not_tools_are_left_out(lists, heard):
    lists.ask(ListRequest(1, ""))
    lists.replied(answer(1, b'{"tools":[1,{"name":2},{"b":1,"name":"a"},{}]}'))
    lists.ask(ListRequest(2, ""))
    lists.replied(answer(2, None))
    lists.record()
    assert [tools for *_, tools in heard.pages] == [[("a", b'{"b":1,"name":"a"}')], None]
