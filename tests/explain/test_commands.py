"""``offmap explain``, ``offmap score --explain`` and the reasons in a report."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from offmap.collaborative import ClosedFormDetector
from offmap.density import NearestNeighborDetector, VAEDetector
from tests.command_line import Run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 3)), columns=["age", "amount", "hour"])
    rows.to_csv(folder / "train.csv", index=False)
    rows[:50].assign(amount=rows["amount"][:50] + 30).to_csv(folder / "strange.csv", index=False)
    devices = [f"d{row % 4}" for row in range(400)]
    rows.assign(device=devices).to_csv(folder / "readings.csv", index=False)
    VAEDetector(epochs=3, random_state=0).fit(rows).save(folder / "vae.safetensors")
    NearestNeighborDetector(random_state=0).fit(rows).save(folder / "near.safetensors")
    ClosedFormDetector(random_state=0).fit(rows, devices).save(folder / "entity.safetensors")
    return folder


@pytest.fixture(autouse=True)
def _at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)


def test_a_row_in_words_in_json_and_as_a_picture(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "row.svg"
    told = run(
        "explain", "vae.safetensors", "strange.csv", "--row", 17, "--reference", "train.csv", "--picture", picture
    )
    assert told.code == 0
    assert told.out.startswith("Row 17 is novel")
    assert told.out.splitlines()[2].startswith("  amount: ")
    ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    found = json.loads(run("explain", "vae.safetensors", "strange.csv", "--reference", "train.csv", "--json").out)
    assert [each["row"] for each in found] == list(range(50))
    assert {each["reasons"][0]["part"] for each in found} == {"amount"}
    assert found[17]["counterfactual"]["names"] == ["amount"]


def test_a_model_that_keeps_its_rows_needs_no_reference(run: Run) -> None:
    assert "amount" in run("explain", "near.safetensors", "strange.csv", "--row", 0).out.splitlines()[2]
    refused = run("explain", "vae.safetensors", "strange.csv", "--row", 0)
    assert (refused.code, refused.out) == (2, "")
    assert "reference must be given" in refused.err


def test_bad_rows_and_pictures_are_refused(run: Run) -> None:
    assert "row must be from 0 to 49" in run("explain", "near.safetensors", "strange.csv", "--row", 50).err
    assert "one --row" in run("explain", "near.safetensors", "strange.csv", "--picture", "a.svg").err
    assert not Path("a.svg").exists()


def test_entities_are_compared_with_their_own_rows(run: Run) -> None:
    given = ("--entity", "device", "--reference", "readings.csv")
    told = run("explain", "entity.safetensors", "readings.csv", "--row", 2, *given)
    assert told.code == 0
    assert "Entity d2" in told.out


def test_scores_get_reasons_as_columns(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    command = ("score", "vae.safetensors", "strange.csv", "--explain", 2, "--reference", "train.csv", "--out", out)
    assert run(*command).code == 0
    scores = pd.read_csv(out)
    assert list(scores.columns[-2:]) == ["reason_1", "reason_2"]
    assert scores["reason_1"].str.startswith("amount: ").all()
    assert "reason_1" not in run("score", "vae.safetensors", "strange.csv").out


def test_the_report_says_why(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    given = ("--normal", "train.csv", "--novel", "strange.csv", "--report", page)
    assert run("evaluate", "vae.safetensors", *given).code == 0
    content = page.read_text(encoding="utf-8")
    assert re.search(r'<td class="why" colspan="\d+"><div>amount: ', content)
    assert content.count('class="why"') >= 12
