#!/usr/bin/env python3
"""The owner's side of the witness for `oap-memory probe --setup`: one command a line in, one answer a line out.

WITNESS_OWNER, or the first argument, is the path of the owner's socket.
"""

import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as owner:
    owner.connect(sys.argv[1] if len(sys.argv) > 1 else os.environ["WITNESS_OWNER"])
    with owner.makefile("rw", encoding="utf-8") as wire:
        for line in sys.stdin:
            wire.write(line.rstrip("\n") + "\n")
            wire.flush()
            print(wire.readline().rstrip("\n"), flush=True)
