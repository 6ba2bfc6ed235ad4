"""What is collected for tests and doctests."""

from importlib.util import find_spec

# The simulator is an extra, and this environment cannot be imported without it.
collect_ignore = [] if find_spec("mujoco") else ["src/offmap_bench/rllab_swimmer.py"]
