"""A server by the Python library websockets: python3 echo.py PORT.

It returns each message, but answers "ping" with "ponged" when its own ping was answered, and closes with the code and the
reason of "close CODE REASON". It pings every 10 ms besides, and writes the close frame of each client to standard output.
"""
import asyncio
import sys

import websockets


async def serve(ws, *_):
    try:
        async for message in ws:
            if message == "ping":
                await (await ws.ping())
                await ws.send("ponged")
            elif isinstance(message, str) and message.startswith("close "):
                _, code, reason = message.split(" ", 2)
                await ws.close(int(code), reason)
            else:
                await ws.send(message)
    except websockets.ConnectionClosed:
        pass
    print("closed", ws.close_code, ws.close_reason, flush=True)


async def main():
    async with websockets.serve(serve, "127.0.0.1", int(sys.argv[1]), ping_interval=0.01, ping_timeout=60, max_size=None):
        await asyncio.Future()


asyncio.run(main())
