"""Settings for every test."""

import os

# Before torch loads: its idle threads would spin, and starve the worker processes of the tests.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
