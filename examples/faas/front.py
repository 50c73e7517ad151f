#!/usr/bin/env python3
# examples/faas/front.py -- accepts HTTP connections and hands each, unread, to a warm interpreter.
#
#   front.py [PORT]
#
# A connection costs a claim and one message on a UNIX socket; its bytes never pass through here.
# When every interpreter is busy, the claim waits in the broker's backlog; when that is full, or five
# seconds have passed, the client is told 503.
# SPDX-License-Identifier: Apache-2.0
import asyncio
import contextlib
import socket
import sys

import dibs
import dibs.aio

POOL = "python"
PATIENCE_S = 5


def refusal(status: str, text: str) -> bytes:
    return (f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\nRetry-After: 1\r\n"
            f"Connection: close\r\n\r\n{text}").encode()


async def refuse(client: socket.socket, status: str, text: str) -> None:
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(client, refusal(status, text + "\n"))
        client.shutdown(socket.SHUT_WR)


async def hand_over(client: socket.socket, path: str) -> bool:
    """Gives the connection to the interpreter behind `path`. False: it died before it answered."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as host:
        host.setblocking(False)
        await loop.sock_connect(host, path)
        socket.send_fds(host, [b"!"], [client.fileno()])
        return await loop.sock_recv(host, 1) == b"."


async def serve(broker: dibs.aio.AsyncClient, client: socket.socket) -> None:
    with client:
        try:
            async with broker.claim(POOL, timeout=PATIENCE_S) as lease:
                if not await hand_over(client, lease.attributes["socket"]):
                    await refuse(client, "502 Bad Gateway", "the interpreter died")
        except dibs.Error as error:
            await refuse(client, "503 Service Unavailable", str(error))
        except OSError as error:
            await refuse(client, "502 Bad Gateway", str(error))


async def main(port: int) -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", port), backlog=256) as listener:
        listener.setblocking(False)
        async with await dibs.aio.connect(timeout=5) as broker:
            print(f"serving on port {listener.getsockname()[1]}", flush=True)
            tasks = set()
            while True:
                client, _ = await loop.sock_accept(listener)
                client.setblocking(False)
                task = loop.create_task(serve(broker, client))
                tasks.add(task)
                task.add_done_callback(tasks.discard)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8080))
