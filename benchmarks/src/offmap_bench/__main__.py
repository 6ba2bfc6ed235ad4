"""Runs the command line: ``python -m offmap_bench``."""

from offmap_bench.commands import main

if __name__ == "__main__":
    main()
