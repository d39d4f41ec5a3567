"""A client on the MCP SDK 2.x: reads jobs from stdin, runs them at once, prints their results."""

import asyncio
import json
import os
import sys

from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import ElicitResult


async def answer(_context, _params):
    return ElicitResult(action="accept", content={"sure": True})


async def one(client, step):
    kind, *words = step
    if kind == "call":
        return await client.call_tool(*words)
    if kind == "read":
        return await client.read_resource(*words)
    if kind == "prompt":
        return await client.get_prompt(*words)
    lists = {
        "tools": client.list_tools,
        "resources": client.list_resources,
        "templates": client.list_resource_templates,
        "prompts": client.list_prompts,
    }
    return await lists[kind]()


async def main(job):
    words = job["command"]
    server = StdioServerParameters(
        command=words[0], args=words[1:], env={**os.environ, **job["env"]}, cwd=job["cwd"]
    )
    said = []
    async with Client(server, mode=job["mode"], elicitation_callback=answer) as client:
        said.append(["version", client.protocol_version])
        if job.get("listen"):
            async with client.listen(tools_list_changed=True):
                await run(client, job["steps"], said)
        else:
            await run(client, job["steps"], said)
    return said


async def run(client, steps, said):
    for step in steps:
        try:
            result = await one(client, step)
            said.append([step[0], result.model_dump(mode="json", by_alias=True)])
        except MCPError as error:
            said.append([step[0], {"code": error.error.code, "message": error.error.message}])


async def all_of(jobs):
    return await asyncio.gather(*(main(job) for job in jobs))


print(json.dumps(asyncio.run(all_of(json.load(sys.stdin)))))
