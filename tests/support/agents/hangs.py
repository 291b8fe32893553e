"""Reads its prompts and does nothing, deaf to SIGTERM, with a child that does the same.

One process for each turn hangs in the second turn alone. The numbers of both processes go
into the file that is the second argument.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import plain

if plain.is_its_turn() and ("--" not in sys.argv or "turn 2]]" in sys.argv[-1]):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "1000"])
    Path(sys.argv[2]).write_text(f"{os.getpid()} {child.pid}")
    print("waiting for a lock \x1b[31mheld by\x07 nobody", file=sys.stderr, flush=True)
    threading.Event().wait()
plain.behave()
