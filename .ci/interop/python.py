"""What a client of the Python SDKs sees of the server, over standard input and output."""

import asyncio
import os
from importlib.metadata import version

from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

SERVER = StdioServerParameters(
    command=os.environ["PROGRAM"], args=["--root", os.environ["ROOT"], "serve", "mcp"]
)


async def check(client) -> None:
    tools = (await client.list_tools()).tools
    assert any(tool.name == "read_file" for tool in tools), tools
    read = await client.call_tool("read_file", {"path": "Cargo.toml", "limit": 1})
    assert read.content[0].text.startswith("1: [workspace]"), read
    wrong = await client.call_tool("read_file", {"pth": 1})
    assert "did you mean `path`?" in wrong.content[0].text, wrong
    try:
        await client.call_tool("no_such_tool", {})
    except Exception as error:  # The class differs between the two.
        assert "there is no tool `no_such_tool`" in str(error), error
    else:
        raise AssertionError("an unknown tool is an error of the protocol")


async def main() -> None:
    async with stdio_client(SERVER) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            await check(session)
    print(f"interop: python {version('mcp')} session passed")
    if version("mcp").startswith("1."):
        return
    from mcp import Client

    for mode in ("legacy", "auto"):
        async with Client(stdio_client(SERVER), mode=mode) as client:
            await check(client)
        print(f"interop: python {version('mcp')} {mode} passed")


asyncio.run(main())
