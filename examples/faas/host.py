#!/usr/bin/env python3
# examples/faas/host.py -- a warm interpreter: imports the function, then serves whichever connection
# it is handed.
#
#   dibs worker python:4 --ready-line ready --attribute socket=DIR/{index} -- host.py MODULE DIR/{index}
#
# For each use a line comes on standard input, and a connected client's socket comes over the UNIX
# socket that the slot's attribute names. The line that is written at the end ends the use.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import importlib
import os
import socket
import sys
from http.server import BaseHTTPRequestHandler

WAIT_S = 10  # for the connection of an assignment, and for a client that says nothing


class Request(BaseHTTPRequestHandler):
    """One request on a socket that somebody else accepted."""
    timeout = WAIT_S
    function = None

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            status, text = type(self).function(self.command, self.path, body)
        except Exception as error:  # the function's, not ours: the interpreter stays
            status, text = 500, f"{type(error).__name__}: {error}\n"
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *arguments: object) -> None:
        pass


def serve_one(listener: socket.socket) -> str:
    """Takes one handed-over connection and answers its request; what became of it."""
    try:
        front, _ = listener.accept()
    except TimeoutError:
        return "nobody came"
    with front:
        front.settimeout(WAIT_S)
        message, descriptors, _, _ = socket.recv_fds(front, 1, 1)
        if not message or not descriptors:
            return "no connection came"
        with socket.socket(fileno=descriptors[0]) as client:
            client.settimeout(WAIT_S)
            with contextlib.suppress(OSError):
                Request(client, ("", 0), None)
                client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            front.sendall(b".")  # served: whatever happens to this process now is not the client's
    return "served"


def main() -> None:
    module, path = sys.argv[1:]
    lines = os.fdopen(os.dup(1), "w", buffering=1)  # what the function prints goes elsewhere
    os.dup2(2, 1)
    Request.function = importlib.import_module(module).handle
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    listener.settimeout(WAIT_S)
    print("ready", file=lines)
    for _ in sys.stdin:
        print(serve_one(listener), file=lines)


if __name__ == "__main__":
    main()
