"""Tests of everything. Modules are compiled once, even where the environment says otherwise.

Containers often set PYTHONDONTWRITEBYTECODE. Each of the workers of a parallel run, and each of the
hundreds of processes that tests start, would then compile all of PocketMQ anew.
"""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
