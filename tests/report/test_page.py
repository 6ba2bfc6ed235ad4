"""The page: it stands alone, shows what users wrote and nothing more, and replaces the old one whole."""

import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from offmap.report import Report, Section, SummaryTable, compare, write_report
from offmap.report.page import render
from tests.report.parts import Page, examples, page, section

ATTACK = "<script>alert('&')</script>"


def test_file_needs_nothing_beside_it(digits: Section, tmp_path: Path) -> None:
    write_report(
        tmp_path / "report.html", Report(title="Digits", sections=[digits, digits], tables=[compare([digits])])
    )
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    seen = Page(html)
    links = [value or "" for name, value in seen.attributes if name in ("src", "href", "xlink:href")]
    own_ids = [value for name, value in seen.attributes if name == "id"]
    assert "://" not in html
    assert not {"script", "link", "iframe", "object"} & set(seen.tags)
    assert len(links) > 10
    assert all(link.startswith("data:image/png;base64,") or link[1:] in own_ids for link in links)
    assert len(own_ids) == len(set(own_ids))
    assert not re.search(r"url\((?!#)|@import", html)
    assert all(reference in own_ids for reference in re.findall(r"url\(#([^)]+)\)", html))


def test_same_report_has_the_same_bytes(digits: Section) -> None:
    report = Report(title="Digits", sections=[digits])
    assert render(report) == render(report)


def test_one_picture_per_image_shown(digits: Section) -> None:
    shown = sum(len(rows.rows) for rows in digits.examples)
    assert [len(rows.rows) for rows in digits.examples] == [5, 5, 5]
    assert page(digits).tags.count("img") == shown


def test_everything_a_user_writes_is_escaped() -> None:
    texts = examples(title=ATTACK, rows=[ATTACK, "b"], index=[ATTACK, 1], truth=[ATTACK, 1], predicted=[ATTACK, 2])
    features = examples(rows=np.ones((2, 1)), feature_names=[ATTACK])
    images = examples(rows=np.ones((2, 4, 4)), index=[f'"{ATTACK}', 1], truth=[ATTACK, 1])
    hostile = section(
        name=ATTACK,
        description=ATTACK,
        parameters={ATTACK: ATTACK, "object": [ATTACK]},
        metrics={ATTACK: 0.5},
        history={ATTACK: [1.0, 2.0], "$_{": [2.0, 1.0], "_hidden": [1.0, 1.0]},
        examples=[texts, features, images],
    )
    table = SummaryTable(title=ATTACK, columns=[ATTACK], rows={ATTACK: [0.5]}, note=ATTACK)
    report = Report(title=ATTACK, summary=ATTACK, sections=[hostile] * 2, tables=[table], facts={ATTACK: ATTACK})
    html = render(report)
    seen = Page(html)
    assert "<script" not in html
    assert "script" not in seen.tags
    assert seen.text.count(ATTACK) >= 30
    assert "$_{" in seen.text
    assert "_hidden" in seen.text


def test_comparison_marks_the_better_end() -> None:
    low, high = (
        section(name="low", metrics={"auroc": 0.6, "fpr95_novel": 0.7}),
        section(name="high", metrics={"auroc": 0.8}),
    )
    other = section(name="other", metrics={"auroc": 0.7, "fpr95_novel": 0.2, "seconds": 3.0})
    table = compare([low, high, other])
    html = render(Report(title="A run", sections=[low, high, other], tables=[table]))
    assert re.findall(r'<td class="best">([^<]*)</td>', html) == ["0.8000", "0.2000"]
    assert Page(html).row("high")[1:] == ["0.8000", "–", "–"]
    assert "Best by AUROC: <b>high</b>" in html


def test_failure_leaves_the_old_file(tmp_path: Path, plain: Section) -> None:
    path = tmp_path / "report.html"
    write_report(path, Report(title="first", sections=[plain]))
    before = path.read_bytes()

    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError("no words for it")

    with pytest.raises(RuntimeError, match="no words"):
        write_report(path, Report(title="second", sections=[plain], facts={"x": Unprintable()}))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    write_report(path, Report(title="third", sections=[plain]))
    assert b"third" in path.read_bytes()


RENDERS = """
import sys
import numpy as np
from offmap.report import Report, Section
from offmap.report.page import render
scores = np.arange(9.0)
render(Report(title="t", sections=[Section(name="m", normal_novelty=scores, novel_novelty=scores, threshold=7.0)]))
sys.exit("matplotlib.pyplot" in sys.modules)
"""


def test_global_state_of_matplotlib_is_untouched(plain: Section) -> None:
    before = dict(matplotlib.rcParams)
    render(Report(title="A run", sections=[plain]))
    assert dict(matplotlib.rcParams) == before
    alone = subprocess.run([sys.executable, "-c", RENDERS], check=False, env={"PYTHONPATH": os.pathsep.join(sys.path)})
    assert alone.returncode == 0
