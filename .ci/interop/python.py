"""What a client of the Python SDKs and of fastmcp sees of the server, over pipes and HTTP.

Prints a line for each way of connecting; what is wrong is an exception.
"""

import asyncio
import os
from importlib.metadata import PackageNotFoundError, version

from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

PROGRAM, URL = os.environ["PROGRAM"], os.environ["URL"]
TOKEN = {"Authorization": f"Bearer {os.environ['TOOL_SDK_TOKEN']}"}
PIPES = StdioServerParameters(command=PROGRAM, args=["stdio"])


def over_http():
    return streamable_http_client(URL, http_client=create_mcp_http_client(headers=TOKEN))


def get(result, name):
    """A field, as the older or the newer of the SDKs calls it."""
    words = name.split("_")
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    return getattr(result, name) if hasattr(result, name) else getattr(result, camel)


async def check(where, list_tools, call, cancel):
    """Ten checks; `call` takes a name, arguments and a listener for progress."""
    passed = 0

    def expect(what, fact, shown):
        nonlocal passed
        assert fact, f"{where}: {what}: {shown}"
        passed += 1

    names = [tool.name for tool in await list_tools()]
    expect("list", "interop_add" in names and "interop_count" in names, names)
    text = await call("test_simple_text", {})
    expect("text", text.content[0].text.startswith("This is a simple text"), text)
    sum_ = await call("interop_add", {"a": 2, "b": 3})
    expect("object", get(sum_, "structured_content") == {"sum": 5}, sum_)
    count = await call("interop_count", {"to": 3})
    value = get(count, "structured_content")
    expect("list as a result", value in ([1, 2, 3], {"result": [1, 2, 3]}), count)
    media = await call("test_multiple_content_types", {})
    sound = await call("test_audio_content", {})
    kinds = [block.type for block in media.content + sound.content]
    expect("media", kinds == ["text", "image", "resource", "audio"], kinds)
    steps = []

    async def heard(done, total=None, message=None):
        steps.append((done, total))

    await call("test_tool_with_progress", {}, heard)
    expect("progress", steps == [(0, 100), (50, 100), (100, 100)], steps)
    failed = await call("test_error_handling", {})
    expect("failure", get(failed, "is_error") and "intentionally" in failed.content[0].text, failed)
    wrong = await call("interop_add", {"a": 2, "c": 3})
    expect("wrong arguments", get(wrong, "is_error") and "`c`" in wrong.content[0].text, wrong)
    try:
        unknown = await call("no_such_tool", {})
    except Exception as error:  # Its class differs from SDK to SDK.
        unknown = error
    expect("unknown tool", "there is no tool `no_such_tool`" in str(unknown), unknown)

    async def cancelled():
        return int((await call("interop_cancelled", {})).content[0].text)

    before = await cancelled()
    await cancel()
    for _ in range(50):
        if await cancelled() > before:
            break
        await asyncio.sleep(0.1)
    after = await cancelled()
    expect("cancelled call", after == before + 1, (before, after))
    print(f"interop: {where}: {passed} of 10", flush=True)


async def drop(call):
    """Gives a call up, which the newer SDKs tell the server."""
    waiting = asyncio.ensure_future(call("interop_wait", {}))
    await asyncio.sleep(0.5)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def session(where, transport):
    """The way of the first SDK, which has no words for giving a call up."""
    async with transport as streams:
        async with ClientSession(streams[0], streams[1]) as client:
            await client.initialize()

            async def tools():
                return (await client.list_tools()).tools

            async def call(name, arguments, progress=None):
                return await client.call_tool(name, arguments, progress_callback=progress)

            async def cancel():
                from mcp import types

                number = client._request_id
                waiting = asyncio.ensure_future(call("interop_wait", {}))
                await asyncio.sleep(0.5)
                params = types.CancelledNotificationParams(requestId=number)
                note = types.CancelledNotification(method="notifications/cancelled", params=params)
                await client.send_notification(types.ClientNotification(note))
                waiting.cancel()

            await check(where, tools, call, cancel)


async def client(where, transport, mode):
    from mcp import Client

    async with Client(transport, mode=mode) as client:

        async def tools():
            return (await client.list_tools()).tools

        async def call(name, arguments, progress=None):
            return await client.call_tool(name, arguments, progress_callback=progress)

        await check(where, tools, call, lambda: drop(call))


async def fast(where, transport, mode):
    from fastmcp import Client

    async with Client(transport, mode=mode) as client:

        async def call(name, arguments, progress=None):
            return await client.call_tool(
                name, arguments, progress_handler=progress, raise_on_error=False
            )

        await check(where, client.list_tools, call, lambda: drop(call))


async def main():
    try:
        release = version("fastmcp")
    except PackageNotFoundError:
        release = None
    for way in ("pipes", "http"):
        if release:
            from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

            for mode in ("legacy", "auto"):
                pipes = way == "pipes"
                transport = (
                    StdioTransport(PROGRAM, ["stdio"], keep_alive=False)
                    if pipes
                    else StreamableHttpTransport(URL, headers=TOKEN)
                )
                await fast(f"fastmcp {release} {mode}, {way}", transport, mode)
            continue
        sdk = version("mcp")

        def transport():
            return stdio_client(PIPES) if way == "pipes" else over_http()

        if sdk.startswith("1."):
            await session(f"python {sdk}, {way}", transport())
            continue
        for mode in ("legacy", "auto"):
            await client(f"python {sdk} {mode}, {way}", transport(), mode)


asyncio.run(main())
