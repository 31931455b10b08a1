#!/usr/bin/env python3
"""The owner's side of tiny.py for `oap-memory probe --setup`: one command a line in, one answer a line out."""

import os
import sys
import urllib.request

for line in sys.stdin:
    with urllib.request.urlopen(os.environ["TINY_URL"] + "/setup", line.encode()) as answer:
        print(answer.read().decode(), flush=True)
