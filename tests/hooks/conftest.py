"""A household with agents, of whose processes nothing is left after the test."""

import pytest
from tests.hooks.agent import Agent
from tests.shim.conftest import household as household
from tests.shim.conftest import person as person


@pytest.fixture
def start(household):
    """Starts an agent's client in the household."""
    agents = []

    def make(client="claude", **options):
        agents.append(Agent(household, client, **options))
        return agents[-1]

    yield make
    for agent in agents:
        agent.close()


@pytest.fixture
def agent(start):
    return start()
