# scripts/tour/warm.py -- a warm process: says that it is ready, then its number for each use.
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import sys

print("ready", flush=True)
for _ in sys.stdin:
    print(os.getpid(), flush=True)
if not sys.stdin.isatty():
    signal.pause()  # without lines: it is enough to be there
