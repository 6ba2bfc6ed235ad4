"""Tables on the command line: roles that a model remembers, identities beside scores, thresholds, entities."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import offmap
from offmap.calibration import assess_together, suggest_rate
from offmap.commands import app
from offmap.data import ColumnsLeftOut
from tests.command_line import Run

pytestmark = pytest.mark.filterwarnings(f"ignore::{ColumnsLeftOut.__module__}.{ColumnsLeftOut.__name__}")


def command(*arguments: object) -> None:
    sys.argv = ["offmap", *map(str, arguments)]
    with pytest.raises(SystemExit) as stop:
        app.main()
    assert not stop.value.code


def payments(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "payment": [f"pay-{number:05d}" for number in rng.permutation(n)],
            "country": rng.choice(["FR", "DE", "IT"], n),
            "amount": rng.normal(50, 9, n).round(2),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 90, n)),
            "note": rng.choice(["gift", "rent"], n),
            "fraud": "no",
        }
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    frame = payments(600, 0)
    strange = frame.index < 41
    frame = frame.assign(country=frame["country"].mask(strange, "PE"), amount=frame["amount"].mask(strange, 500.0))
    frame = frame.assign(fraud=frame["fraud"].mask(strange, "yes"))
    frame.to_csv(folder / "all.csv", index=False)
    frame[frame["fraud"] == "no"].to_csv(folder / "train.csv", index=False)
    odd = payments(50, 1).drop(columns="fraud")
    odd.loc[7, "country"] = "PE"
    odd.to_csv(folder / "today.csv", index=False)
    odd.head(0).to_csv(folder / "none.csv", index=False)
    rng = np.random.default_rng(0)
    devices = rng.integers(6, size=600)
    readings = pd.DataFrame(
        {"device": [f"d{d}" for d in devices], "u": rng.normal(3 * devices), "v": rng.normal(size=600)}
    )
    readings.to_csv(folder / "readings.csv", index=False)
    readings.head(20).assign(device="new").to_csv(folder / "new.csv", index=False)
    argv, sys.argv = sys.argv, []
    fit = ("--out", folder / "model.safetensors", "--quiet")
    command("fit", "nearest-neighbor", folder / "train.csv", "--label", "fraud", "--drop", "note", *fit)
    few = ("--set", "epochs=2", "--out", folder / "ratio.safetensors", "--quiet")
    command("fit", "ratio", folder / "readings.csv", "--entity", "device", *few)
    sys.argv = argv
    return folder


@pytest.fixture(autouse=True)
def _at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)


def test_scoring_needs_no_roles_again_and_names_the_rows(run: Run) -> None:
    done = run("score", "model.safetensors", "today.csv")
    today = pd.read_csv("today.csv")
    assert (done.code, list(done.frame)) == (0, ["row", "payment", "novelty", "p_value", "novel"])
    assert done.frame["payment"].tolist() == today["payment"].tolist()
    assert done.frame["novelty"].idxmax() == 7
    assert done.frame["novelty"].tolist() == offmap.load("model.safetensors").novelty(today).tolist()


@pytest.fixture(scope="module")
def only(home: Path) -> Path:
    """A model of three columns by name, of which one is constant."""
    frame = pd.read_csv(home / "train.csv")
    frame[["amount", "country", "fraud"]].to_csv(home / "some.csv", index=False)
    argv, named = sys.argv, [word for name in ("amount", "country", "fraud") for word in ("--only", name)]
    command("fit", "nearest-neighbor", home / "some.csv", *named, "--out", home / "only.safetensors", "--quiet")
    sys.argv = argv
    return home / "only.safetensors"


@pytest.mark.parametrize("out", [(), ("--out", "scores.csv")])
def test_rows_that_lack_a_fitted_column_are_refused_by_its_name(run: Run, only: Path, out: tuple[str, ...]) -> None:
    pd.read_csv("today.csv")[["amount", "note"]].to_csv("lacking.csv", index=False)
    done = run("score", only, "lacking.csv", *out)
    assert done.code == 2
    assert "lacking.csv lacks 'country', which the model was fitted on; it has 'amount', 'note'" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("out", [(), ("--out", "scores.csv")])
def test_rows_may_lack_a_named_column_that_the_model_does_not_read(run: Run, only: Path, out: tuple[str, ...]) -> None:
    done = run("score", only, "today.csv", *out)
    assert done.code == 0, done.err


def test_columns_can_be_kept(run: Run) -> None:
    some = run("score", "model.safetensors", "today.csv", "--keep", "note").frame
    assert list(some) == ["row", "payment", "note", "novelty", "p_value", "novel"]
    every = run("score", "model.safetensors", "today.csv", "--keep", "all").frame
    assert set(pd.read_csv("today.csv")) < set(every)
    clash = run(
        "score", "model.safetensors", "-", "--keep", "all", given=Path("today.csv").read_text().replace("note", "novel")
    )
    assert {"input_novel", "novel"} < set(clash.frame)


def test_rows_scored_three_times_keep_the_scores_of_each_time(run: Run, tmp_path: Path) -> None:
    source = Path("today.csv")
    for name in ("first.csv", "second.csv", "third.csv"):
        assert run("score", "model.safetensors", source, "--keep", "all", "--out", tmp_path / name).code == 0
        source = tmp_path / name
    in_memory = run("score", "model.safetensors", "-", "--keep", "all", given=(tmp_path / "second.csv").read_text())
    for written in ((tmp_path / "third.csv").read_text(), in_memory.out):
        # Not by pandas, which renames a second column of the same name.
        columns = written.splitlines()[0].split(",")
        assert {"novelty", "input_novelty", "input_input_novelty"} < set(columns)
        assert len(columns) == len(set(columns))


def test_reasons_that_are_kept_stay_beside_new_ones(run: Run, tmp_path: Path) -> None:
    asked = ("--explain", "1", "--reference", "train.csv", "--keep", "all")
    assert run("score", "model.safetensors", "today.csv", *asked, "--out", tmp_path / "first.csv").code == 0
    done = run("score", "model.safetensors", tmp_path / "first.csv", *asked)
    assert (done.code, done.err) == (0, "")
    assert done.frame["input_reason_1"].tolist() == pd.read_csv(tmp_path / "first.csv")["reason_1"].tolist()
    assert done.frame.columns[-1] == "reason_1"
    assert run("score", "model.safetensors", tmp_path / "first.csv", *asked, "--out", tmp_path / "second.csv").code == 0
    third = run("score", "model.safetensors", tmp_path / "second.csv", *asked)
    # Not by pandas, which renames a second column of the same name.
    columns = third.out.splitlines()[0].split(",")
    assert {"reason_1", "input_reason_1", "input_input_reason_1"} < set(columns)
    assert len(columns) == len(set(columns))


def test_json_holds_what_parquet_keeps_beside_the_scores(run: Run, tmp_path: Path) -> None:
    days = pd.date_range("2026-03-01", periods=2)
    lists = [[1.0, np.inf], [2.0]]
    pd.read_csv("today.csv").head(2).assign(day=days, steps=pd.Series(lists)).to_parquet(tmp_path / "rows.parquet")
    asked = ("score", "model.safetensors", tmp_path / "rows.parquet", "--keep", "day", "--keep", "steps")
    lines = [json.loads(line) for line in run(*asked, "--jsonl").out.splitlines()]
    assert [line["day"] for line in lines] == ["2026-03-01 00:00:00", "2026-03-02 00:00:00"]
    assert [line["steps"] for line in lines] == [[1.0, None], [2.0]]
    assert json.loads(run(*asked, "--json").out) == lines


def test_numbers_that_are_kept_stay_numbers(run: Run, tmp_path: Path) -> None:
    written = ["-1.03", "+2", "-4e-05", "-.5", " -7", "-2+3", "-1.03\n", "-x"]
    pd.read_csv("today.csv").head(8).assign(note=written).to_csv(tmp_path / "new.csv", index=False)
    kept = ["-1.03", "+2", "-4e-05", "-.5", " -7", "'-2+3", "'-1.03\\n", "'-x"]
    asked = ("score", "model.safetensors", tmp_path / "new.csv", "--keep", "note")
    assert run(*asked, "--out", tmp_path / "scores.csv").code == 0
    assert pd.read_csv(tmp_path / "scores.csv", dtype=str)["note"].tolist() == kept
    printed = pd.read_csv(io.StringIO(run(*asked).out), dtype=str)
    assert printed["note"].tolist() == kept


def test_thresholds_are_chosen_while_scoring(run: Run) -> None:
    model, today = offmap.load("model.safetensors"), pd.read_csv("today.csv")
    at = run("score", "model.safetensors", "today.csv", "--alpha", "0.3").frame
    assert at["novel"].tolist() == model.at(alpha=0.3).assess(today).novel.tolist()
    budget = run("score", "model.safetensors", "today.csv", "--budget", "300/1000").frame
    pd.testing.assert_frame_equal(at, budget)
    top = run("score", "model.safetensors", "today.csv", "--top", "3").frame
    assert top["row"].tolist() == model.assess(today).top(3).tolist()
    both = run("score", "model.safetensors", "today.csv", "--alpha", "0.3", "--budget", "1/9")
    assert (both.code, "give either --alpha or --budget" in both.err) == (2, True)
    assert (
        "--budget must be alerts/rows, as 50/10000"
        in run("score", "model.safetensors", "today.csv", "--budget", "x/9").err
    )


def test_the_rows_suggest_a_rate(run: Run, tmp_path: Path) -> None:
    model, today = offmap.load("model.safetensors"), pd.read_csv("today.csv")
    far = today.copy()
    far[far.select_dtypes("float").columns] += 99
    mixed: pd.DataFrame = pd.concat([today, far])
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    suggested = model.suggest_alpha(mixed)
    done = run("score", "model.safetensors", tmp_path / "mixed.csv", "--alpha", "auto")
    assert suggested.novel_share > 0.3
    assert str(suggested) in done.err
    assert done.frame["novel"].tolist() == model.at(alpha=suggested.alpha).assess(mixed).novel.tolist()
    wrong = run("score", "model.safetensors", "today.csv", "--alpha", "some")
    assert (wrong.code, "--alpha must be a rate between 0 and 1, or 'auto'; got 'some'" in wrong.err) == (2, True)
    both = run("score", "model.safetensors", "today.csv", "--alpha", "auto", "--budget", "1/9")
    assert (both.code, "give either --alpha or --budget" in both.err) == (2, True)


def test_rows_are_judged_together_with_known_rows(run: Run, tmp_path: Path) -> None:
    model, known = offmap.load("model.safetensors"), payments(150, 2).drop(columns="fraud")
    group = payments(40, 3).drop(columns="fraud").assign(amount=85.0)
    mixed: pd.DataFrame = pd.concat([pd.read_csv("today.csv"), group])
    known.to_csv(tmp_path / "known.csv", index=False)
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    arguments = ("score", "model.safetensors", tmp_path / "mixed.csv", "--known", tmp_path / "known.csv")
    together = assess_together(model, mixed, known)
    assert run(*arguments).frame["novelty"].tolist() == together.novelty.tolist()
    auto = run(*arguments, "--alpha", "auto")
    assert str(suggest_rate(np.asarray(together.p_value))) in auto.err
    assert auto.frame["novel"].tolist() == assess_together(model, mixed, known, alpha="auto").novel.tolist()
    assert run(*arguments[:-1], "nowhere.csv").code == 2
    streamed = run(*arguments, "--out", tmp_path / "s.csv", "--resume")
    assert (streamed.code, "none of --top, --explain, --known" in streamed.err) == (2, True)
    entities = run("score", "ratio.safetensors", "readings.csv", "--known", "readings.csv")
    assert (entities.code, "a model of entities is recalibrated instead" in entities.err) == (2, True)


def test_the_rows_of_entities_suggest_a_rate_too(run: Run) -> None:
    done = run("score", "ratio.safetensors", "readings.csv", "--alpha", "auto")
    assert done.code == 0
    assert "novel" in done.err
    unknown = run("score", "ratio.safetensors", "new.csv", "--alpha", "auto")
    assert (unknown.code, "by rows of known entities only" in unknown.err) == (2, True)


def test_a_table_without_rows_has_no_scores(run: Run, tmp_path: Path) -> None:
    assert run("score", "model.safetensors", "none.csv") == (0, "row,payment,novelty,p_value,novel\n", "")
    assert run("score", "model.safetensors", "none.csv", "--json").out == "[]\n"
    assert run("score", "model.safetensors", "none.csv", "--out", tmp_path / "s.parquet").code == 0
    assert len(pd.read_parquet(tmp_path / "s.parquet")) == 0
    assert run("fit", "vae", "none.csv", "--out", tmp_path / "m").code == 2


def test_json_lines_go_in_and_out(run: Run, tmp_path: Path) -> None:
    lines = pd.read_csv("today.csv").to_json(orient="records", lines=True)
    scored = run("score", "model.safetensors", "-", "--jsonl", given=lines)
    records = [json.loads(line) for line in scored.out.splitlines()]
    expected = run("score", "model.safetensors", "today.csv").frame
    assert [record["novelty"] for record in records] == expected["novelty"].tolist()
    assert run("score", "model.safetensors", "-", "--out", tmp_path / "s.jsonl", "-q", given=lines).code == 0
    assert (tmp_path / "s.jsonl").read_text() == scored.out


def test_info_says_what_the_model_reads(run: Run) -> None:
    known = json.loads(run("info", "model.safetensors", "--json").out)
    assert known["roles"] == {"label": "fraud", "drop": ["note"], "id": ["payment"]}
    assert known["columns"]["country"].startswith("category: 3 values")
    assert known["columns"]["payment"].startswith("left out: it has 5")
    assert {"method", "threshold", "parameters", "versions"} < set(known)


def test_recalibration_sets_the_threshold(run: Run, tmp_path: Path) -> None:
    done = run("recalibrate", "model.safetensors", "train.csv", "--out", tmp_path / "new.safetensors", "--json")
    model = offmap.load("model.safetensors").recalibrate(pd.read_csv("train.csv"))
    assert json.loads(done.out)["threshold"] == model.threshold_ == offmap.load(tmp_path / "new.safetensors").threshold_
    assert offmap.load(tmp_path / "new.safetensors").roles_["label"] == "fraud"
    assert (
        "it is read as well" in run("recalibrate", "model.safetensors", "train.csv", "--out", "model.safetensors").err
    )


def classes_of_numbers_and_words(folder: Path) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kinds = np.resize(["1", "2", "other"], 300)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"]).assign(kind=kinds)
    frame["a"] += frame["kind"].map({"1": 0, "2": 5, "other": 10})
    frame.to_csv(folder / "kinds.csv", index=False)
    return frame


def test_recalibration_by_class_reads_the_labels(run: Run, tmp_path: Path) -> None:
    classes_of_numbers_and_words(tmp_path)
    by_class = ("--label", "kind", "--set", "by_class=actual", "--set", "calibration=0.4", "--set", "epochs=2")
    fitted = run("fit", "msp", tmp_path / "kinds.csv", *by_class, "--out", tmp_path / "m.safetensors")
    done = run("recalibrate", tmp_path / "m.safetensors", tmp_path / "kinds.csv", "--out", tmp_path / "n.safetensors")
    assert (fitted.code, done.code, done.err.splitlines()[-1].endswith("on 300 held-out rows")) == (0, 0, True)
    assert len(offmap.load(tmp_path / "n.safetensors").class_promise_.code_) == 300


def test_labels_that_look_like_numbers_are_the_words_that_were_taught(run: Run, tmp_path: Path) -> None:
    frame = classes_of_numbers_and_words(tmp_path)
    frame[frame["kind"] != "other"].to_csv(tmp_path / "some.csv", index=False)
    (tmp_path / "novel.csv").write_text("a,b,c\n50,50,50\n60,-50,9\n")
    given = ("--label", "kind", "--set", "calibration=0.4", "--set", "epochs=20", "--out", tmp_path / "m.safetensors")
    assert run("fit", "lof", tmp_path / "kinds.csv", *given).code == 0
    data = ("--normal", tmp_path / "some.csv", "--novel", tmp_path / "novel.csv", "--label", "kind")
    done = run("evaluate", tmp_path / "m.safetensors", *data, "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["known_accuracy"] > 0.9


def test_a_class_is_held_out_and_found(run: Run, tmp_path: Path) -> None:
    given = ("all.csv", "--label", "fraud", "--hold-out", "yes")
    done = run("fit", "nearest-neighbor", *given, "--out", tmp_path / "m.safetensors", "--json")
    assert json.loads(done.out)["test"]["auroc"] > 0.99
    refused = run("fit", "nearest-neighbor", *given[:-1], "maybe", "--out", tmp_path / "x")
    assert (refused.code, "must be one of no, yes; got 'maybe'" in refused.err) == (2, True)


def test_methods_are_compared(run: Run) -> None:
    given = ("compare", "nearest-neighbor", "vae", "all.csv", "--label", "fraud", "--hold-out", "yes", "--json")
    lines = json.loads(run(*given, "--set", "epochs=30", "--splits", "2").out)
    assert {line["method"] for line in lines} == {"nearest-neighbor", "vae"}
    assert lines[0]["verdict"] == "best"
    assert lines[1]["verdict"] == ("within noise of the best" if lines[1]["behind"] <= lines[1]["noise"] else "worse")
    assert "no method has the parameter of the setting 'epoch=3'" in run(*given, "--set", "epoch=3").err
    assert "needs novel rows" in run("compare", "vae", "train.csv", "--label", "fraud").err


@pytest.mark.parametrize("rule", ["flag", "skip", "add", "error"])
def test_unknown_entities_do_not_stop_the_others(run: Run, rule: str) -> None:
    both = Path("readings.csv").read_text() + Path("new.csv").read_text().partition("\n")[2]
    done = run("score", "ratio.safetensors", "-", "--new-entities", rule, given=both)
    if rule == "error":
        assert (done.code, "which was never fitted" in done.err) == (2, True)
        return
    frame, alone = done.frame, run("score", "ratio.safetensors", "readings.csv").frame
    assert len(frame) == (600 if rule == "skip" else 620)
    pd.testing.assert_frame_equal(frame[:600], alone)
    if rule == "flag":
        assert frame["novel"][600:].all()
        assert np.isinf(frame["novelty"][600:]).all()
        assert frame["p_value"][600:].isna().all()
    if rule == "add":
        assert np.isfinite(frame["novelty"][600:]).all()


@pytest.mark.parametrize("rule", ["flag", "skip"])
def test_unknown_entities_are_counted_on_standard_error(run: Run, tmp_path: Path, rule: str) -> None:
    both = pd.concat([pd.read_csv("readings.csv"), pd.read_csv("new.csv")])
    both.to_csv(tmp_path / "both.csv", index=False)
    out = ("--out", tmp_path / "scores.csv")
    for source, of_some in ((tmp_path / "both.csv", "20 rows of "), ("new.csv", "warning: all 20 rows are of ")):
        printed = run("score", "ratio.safetensors", source, "--new-entities", rule).err
        written = run("score", "ratio.safetensors", source, "--new-entities", rule, *out).err
        (tmp_path / "scores.csv").unlink()
        for said in (printed, written):
            assert of_some in said
            assert "that the model does not know" in said
    assert "of 1 entity that" in run("score", "ratio.safetensors", tmp_path / "both.csv").err
    assert "does not know" not in run("score", "ratio.safetensors", "readings.csv").err
    assert "does not know" not in run("score", "ratio.safetensors", "readings.csv", *out).err


def test_ids_that_lost_their_leading_zeros_are_noticed(run: Run, tmp_path: Path) -> None:
    readings = pd.read_csv("readings.csv")
    number = readings["device"].str.removeprefix("d").astype(int) + 1
    readings.assign(device=number.map("{:03d}".format)).to_csv(tmp_path / "padded.csv", index=False)
    readings.assign(device=number).to_csv(tmp_path / "plain.csv", index=False)
    fit = ("--entity", "device", "--set", "epochs=1", "--out", tmp_path / "model.safetensors", "--quiet")
    assert run("fit", "ratio", tmp_path / "padded.csv", *fit).code == 0
    done = run("score", tmp_path / "model.safetensors", tmp_path / "plain.csv")
    assert "warning: all 600 rows are of entities that the model does not know" in done.err
    assert "6 of these entities would be known with leading zeros, such as '001' for '1'" in done.err


def test_rows_of_unknown_entities_have_no_reasons_and_the_others_keep_theirs(run: Run) -> None:
    both = "".join(Path("readings.csv").read_text().splitlines(keepends=True)[:4])
    both += Path("new.csv").read_text().partition("\n")[2]
    asked = ("score", "ratio.safetensors", "-", "--explain", "1")
    frame = run(*asked, "--reference", "readings.csv", given=both).frame
    assert frame["reason_1"][:3].notna().any()
    assert frame["reason_1"][3:].isna().all()
    assert frame["novel"][3:].all()
    alone = run(*asked, "--reference", "readings.csv", given=Path("new.csv").read_text()).frame
    assert alone["reason_1"].isna().all()
    assert "--reference TRAIN.csv on the shell" in run(*asked, given=both).err


@pytest.mark.filterwarnings("always:entities have a tenth more rows")
def test_entities_are_added_updated_and_removed(run: Run, tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"{name}.safetensors" for name in ("first", "second", "third"))
    assert json.loads(run("add", "ratio.safetensors", "new.csv", "--out", first, "--json").out)["entities"] == 7
    assert "'offmap update' adds" in run("add", first, "new.csv", "--out", second).err.replace("`", "'")
    updated = run("update", first, "new.csv", "--out", second)
    assert updated.code == 0
    assert "call recalibrate" in updated.err
    counts = dict(zip(offmap.load(second).entity_ids_, offmap.load(second).entity_counts_, strict=True))
    assert counts["new"] == 40
    assert "is not known" in run("update", "ratio.safetensors", "new.csv", "--out", third).err
    assert run("remove", second, "new", "d3", "--out", third).code == 0
    assert set(offmap.load(third).entity_ids_) == {"d0", "d1", "d2", "d4", "d5"}
    before, after = (run("score", path, "readings.csv").frame for path in (second, third))
    kept = after["entity"] != "d3"
    assert before["novelty"][kept].tolist() == after["novelty"][kept].tolist()
    assert "knows none" in run("add", "model.safetensors", "new.csv", "--out", third).err


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "gone.safetensors", "today.csv"),
        ("score", "model.safetensors", "gone.csv"),
        ("fit", "vae", "gone.parquet", "--out", "m"),
        ("info", "gone"),
    ],
)
def test_a_missing_file_is_noticed_before_anything_heavy_is_imported(arguments: tuple[str, ...]) -> None:
    code = (
        "import sys, offmap.commands.app as app; sys.argv = ['offmap', *sys.argv[1:]]\n"
        "try: app.main()\n"
        "except SystemExit as stop:\n"
        "    print(stop.code, sorted({'numpy', 'pandas', 'sklearn', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == "2 []\n"
    assert "gone" in done.stderr


def test_images_are_named_by_their_files(run: Run, tmp_path: Path) -> None:
    from PIL import Image

    rng: Any = np.random.default_rng(0)
    for number in range(40):
        Image.fromarray(rng.integers(256, size=(4, 4), dtype=np.uint8)).save(tmp_path / f"{number:02d}.png")
    model = tmp_path / "images.safetensors"
    assert run("fit", "nearest-neighbor", tmp_path, "--set", "alpha=0.3", "--out", model).code == 0
    assert run("score", model, tmp_path).frame["file"].tolist() == [f"{number:02d}.png" for number in range(40)]
