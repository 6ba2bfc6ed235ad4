"""The results that the README shows are the stored ones."""

import math
import re
from pathlib import Path

from offmap_bench.headlines import headlines
from offmap_bench.places import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_each_line_of_the_readme_is_that_of_the_stored_results() -> None:
    section = README.partition("## Results in short\n")[2].partition("\n## ")[0]
    shown = re.findall(r"^\| .*\|$", section, re.MULTILINE)[1:]
    assert shown == headlines()


def test_a_number_that_was_not_run_is_no_number(tmp_path: Path) -> None:
    numbers = re.findall(r"\d+\.\d|nan", " ".join(headlines(tmp_path)))
    assert "nan" in numbers
    assert all(number == "nan" or math.isclose(float(number), 85.2) for number in numbers)
