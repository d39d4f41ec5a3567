"""A client on the MCP SDK 1.x: reads jobs from stdin, runs them at once, prints their results."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import ListRootsResult, Root


async def roots(_context):
    return ListRootsResult(roots=[Root(uri="file:///srv", name="srv")])


async def one(session, step):
    kind, *words = step
    if kind == "call":
        return await session.call_tool(*words)
    if kind == "read":
        return await session.read_resource(*words)
    if kind == "prompt":
        return await session.get_prompt(*words)
    lists = {
        "tools": session.list_tools,
        "resources": session.list_resources,
        "templates": session.list_resource_templates,
        "prompts": session.list_prompts,
    }
    return await lists[kind]()


async def main(job):
    words = job["command"]
    server = StdioServerParameters(
        command=words[0], args=words[1:], env={**os.environ, **job["env"]}, cwd=job["cwd"]
    )
    said = []
    async with (
        stdio_client(server) as (read, write),
        ClientSession(read, write, list_roots_callback=roots) as session,
    ):
        hello = await session.initialize()
        said.append(["hello", hello.model_dump(mode="json", by_alias=True)])
        for step in job["steps"]:
            try:
                result = await one(session, step)
                said.append([step[0], result.model_dump(mode="json", by_alias=True)])
            except McpError as error:
                said.append([step[0], {"code": error.error.code, "message": error.error.message}])
    return said


async def all_of(jobs):
    return await asyncio.gather(*(main(job) for job in jobs))


print(json.dumps(asyncio.run(all_of(json.load(sys.stdin)))))
