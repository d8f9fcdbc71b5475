"""python -m lrnn ...: the program that the wheel carries, with the same arguments."""

import os
import sys

program = os.path.join(os.path.dirname(__file__), "lib", "x86-64-v2", "lrnn")
if not os.path.exists(program):
    sys.exit(f"{program} is not there; this is a source tree and no wheel, so run ./lrnn")
os.execv(program, [program, *sys.argv[1:]])
