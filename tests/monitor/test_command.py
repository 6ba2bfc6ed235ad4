"""``offmap monitor``: lines of JSON, a state that goes on, a picture."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from offmap.commands.app import app
from offmap.density import ECODDetector


def test_a_stream_that_changes_raises_the_alarm_across_a_restart(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ECODDetector(calibration=0.5, random_state=0).fit(rng.normal(size=(600, 3))).save(tmp_path / "model.safetensors")
    np.save(tmp_path / "first.npy", rng.normal(size=(200, 3)))
    np.save(tmp_path / "second.npy", 2 * rng.normal(size=(300, 3)))
    found = []
    for stream in ("first.npy", "second.npy"):
        given = ["monitor", str(tmp_path / "model.safetensors"), str(tmp_path / stream), "--quiet"]
        given += ["--state", str(tmp_path / "state.safetensors"), "--report", str(tmp_path / "drift.html")]
        ended = CliRunner().invoke(app, given)
        assert ended.exit_code == 0, ended.output
        found += [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line["rows"] for line in found] == [100, 200, 300, 400, 500]
    assert [line["alarm"] for line in found][:2] == [False, False]
    assert found[-1]["alarm"]
    assert 150 < found[-1]["since"] < 300
    page = (tmp_path / "drift.html").read_text()
    assert "<svg" in page
    assert f"alarm, row {found[-1]['alarm_row']}" in page


def test_the_wrong_file_for_the_state_is_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ECODDetector(calibration=0.5, random_state=0).fit(rng.normal(size=(100, 3))).save(tmp_path / "model.safetensors")
    np.save(tmp_path / "rows.npy", rng.normal(size=(20, 3)))
    given = ["monitor", str(tmp_path / "model.safetensors"), str(tmp_path / "rows.npy"), "--state"]
    ended = CliRunner().invoke(app, [*given, str(tmp_path / "state.json")])
    assert isinstance(ended.exception, ValueError)
    assert "must end in .safetensors" in str(ended.exception)


@pytest.mark.parametrize("calibration", [0.5, "cv"])
def test_a_state_goes_on_with_its_own_model_and_level(tmp_path: Path, calibration: Any) -> None:
    rng = np.random.default_rng(0)
    for seed, name in enumerate(("model.safetensors", "other.safetensors")):
        ECODDetector(calibration=calibration, random_state=seed).fit(rng.normal(size=(100, 3))).save(tmp_path / name)
    np.save(tmp_path / "rows.npy", rng.normal(size=(20, 3)))

    def run(model: str, *options: str) -> str:
        given = ["monitor", str(tmp_path / model), str(tmp_path / "rows.npy"), "--quiet", *options]
        ended = CliRunner().invoke(app, [*given, "--state", str(tmp_path / "state.safetensors")])
        return str(ended.exception) if ended.exception else ended.stdout

    assert json.loads(run("model.safetensors", "--level", "50"))["level"] == 50
    assert json.loads(run("model.safetensors"))["rows"] == 40
    assert json.loads(run("model.safetensors", "--level", "50"))["rows"] == 60
    assert "--level must be that of" in run("model.safetensors", "--level", "100")
    assert "was started with another model or other calibration rows" in run("other.safetensors")
