# examples/faas/handler.py -- the function that is served. What is imported and computed here is paid
# for once, before a request comes.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import time

STARTED = time.time()
USES = 0


def handle(method: str, path: str, body: bytes) -> tuple[int, str]:
    """Status and text of an answer."""
    global USES
    USES += 1
    if path == "/crash":
        os._exit(3)
    if path == "/error":
        raise ValueError("as asked")
    return 200, json.dumps({"pid": os.getpid(), "uses": USES, "method": method, "path": path,
                            "body": body.decode(errors="replace")}) + "\n"
