"""Where the benchmarks keep what they measure, whatever the working directory."""

from pathlib import Path

# The folder ``benchmarks`` of the repository.
HOME = Path(__file__).parents[2]
