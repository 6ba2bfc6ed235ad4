"""The README of the benchmarks is true: its table runs, and its commands name what exists."""

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

from offmap_bench import Table, everything
from offmap_bench.run import run
from offmap_bench.select import select

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_table_of_the_readme_runs(tmp_path: Path) -> None:
    blocks = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if ">>>" not in block]
    assert len(blocks) == 1
    module: dict[str, Any] = {"__name__": "paper_table_1"}
    exec(compile(blocks[0], "README.md", "exec"), module)
    (table,) = module["TABLES"]
    assert isinstance(table, Table)
    (cell,) = run(table, results=tmp_path, columns=["without 9"], seeds=[0])
    auroc = cell.runs[0].metrics["auroc"]
    assert auroc is not None
    assert 0 < auroc <= 1


def test_the_commands_of_the_readme_name_tables_rows_and_columns_that_exist() -> None:
    known = {item.name: item for item in everything()}
    commands = re.findall(r"^(?:python -m offmap_bench|make bench) .*$", README, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        words = shlex.split(command.replace("TABLE=", ""), comments=True)
        words = words[words.index("offmap_bench" if "offmap_bench" in words else "bench") + 1 :]
        options = dict(pairwise(words))
        names = [word for word in words if not word.startswith("--") and word not in _values(options)]
        chosen = [known[name] for name in select(names, known)]
        for option, labels in (("--row", "rows"), ("--column", "columns")):
            if option in options:
                assert all(options[option] in getattr(table, labels) for table in chosen)


def _values(options: dict[str, str]) -> set[str]:
    return {value for option, value in options.items() if option in ("--row", "--column", "--profile")}
