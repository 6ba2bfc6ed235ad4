"""Writes .ci/hashes.txt from pip's report (JSON on standard input): every package that CI installs, with its hash."""

import json
import sys
from pathlib import Path

HEADER = "# Packages that CI installs on Linux, x86-64, Python 3.11. `make hashes` writes this file.\n"


def main() -> None:
    """Reads the report and writes the file; packages of this repository have no archive and are left out."""
    found = [each for each in json.load(sys.stdin)["install"] if "archive_info" in each["download_info"]]
    lines = sorted((_line(each) for each in found), key=str.lower)
    Path(__file__).with_name("hashes.txt").write_text(HEADER + "".join(lines), encoding="utf-8")


def _line(package: dict) -> str:
    metadata, archive = package["metadata"], package["download_info"]["archive_info"]
    version = metadata["version"].partition("+")[0]  # a local build of torch counts as its release
    return f"{metadata['name']}=={version} --hash=sha256:{archive['hashes']['sha256']}\n"


if __name__ == "__main__":
    main()
