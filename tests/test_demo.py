"""The demo: what it promises is what it measures, and its table fits a terminal."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from offmap import demo
from offmap.commands import app
from offmap.demo import Demo


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, told: list[str]) -> Demo:
    return demo.run(tmp_path_factory.mktemp("demo") / "made" / "here", seed=0, tell=told.append)


def test_unknown_digits_are_noticed_at_the_promised_rate_of_false_alarms(found: Demo) -> None:
    for section in found.sections:
        assert section.metrics["auroc"] > 0.85
        assert section.metrics["recall"] > 0.4
        promised, measured = section.metrics["promised_rate"], section.metrics["false_alarm_rate"]
        # Both the rows that set the threshold and those that test it are a sample.
        calibration, test = len(np.asarray(section.calibration_novelty)), len(section.normal_novelty)
        spread = math.sqrt(promised * (1 - promised) * (1 / calibration + 1 / test))
        assert abs(measured - promised) < 2.5 * spread, section.name


def test_known_digits_are_named(found: Demo) -> None:
    accuracy = {section.name: section.metrics.get("known_accuracy") for section in found.sections}
    assert accuracy.pop("VAE") is None
    assert accuracy
    assert all(value is not None and value > 0.95 for value in accuracy.values())


def test_the_report_is_written_and_the_user_told(found: Demo, told: list[str]) -> None:
    page = found.report.read_text(encoding="utf-8")
    assert found.report.name == "report.html"
    assert all(f"<h2>{section.name}</h2>" in page for section in found.sections)
    assert [message.split()[1] for message in told] == [section.name for section in found.sections]


def test_the_command_prints_a_narrow_table_or_json(
    found: Demo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def shown(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["offmap", "demo", "--out", str(tmp_path), "--quiet", *arguments])
        with pytest.raises(SystemExit) as stop:
            app.main()
        out, err = capsys.readouterr()
        assert (stop.value.code, err) == (0, "")
        return out

    monkeypatch.setattr(demo, "run", lambda folder, seed, tell: found)
    monkeypatch.setenv("COLUMNS", "80")
    lines = shown().splitlines()
    assert max(map(len, lines)) <= 80
    # Title, rule, one line of headings, rule, one line per method, rule: nothing had to be folded.
    assert len(lines) == 5 + len(found.sections)
    methods = json.loads(shown("--json"))["methods"]
    assert [line["false_alarm_rate"] for line in methods] == [
        section.metrics["false_alarm_rate"] for section in found.sections
    ]


def test_a_turn_of_the_loop_learns_the_three_digits_and_keeps_the_others(found: Demo) -> None:
    assert set(found.turn.named) == {7, 8, 9}
    assert set(found.turn.joined) <= set(range(7))
    assert found.turn.learnt_after > 0.75
    assert found.turn.known_after > found.turn.known_before - 0.03
    assert found.turn.promise.startswith("about 5.0% [")
