"""The command line: data on standard output, messages on standard error, one line for a user's mistake."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

import offmap
from offmap import catalog
from offmap.commands import app, terminal
from offmap.data import load, read
from offmap.sampling import FGAN
from offmap.workflow import configure, fit_model, promise_of
from tests.command_line import Run

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md")))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tables and models; the guide's examples use the same names."""
    folder = tmp_path_factory.mktemp("home")
    cells = load("breast-cancer")
    frame = pd.DataFrame(cells.X[:, :4], columns=list("abcd"))
    known = frame.assign(kind=np.array(["malignant", "benign"])[np.asarray(cells.y)])
    known[:469].to_csv(folder / "train.csv", index=False)
    known[469:].to_csv(folder / "normal.csv", index=False)
    (frame[:60] * 10).assign(kind="strange").to_csv(folder / "novel.csv", index=False)
    known.assign(note="some words").to_csv(folder / "notes.csv", index=False)
    readings = frame.assign(device=[f"d{row % 9}" for row in range(len(frame))])
    readings.to_csv(folder / "readings.csv", index=False)
    readings[readings["device"] == "d3"].to_csv(folder / "readings-d3.csv", index=False)
    mixed = known.head(60).astype({"a": object, "b": object})
    mixed.loc[3, "a"], mixed.loc[7, "b"] = "three", "inf"
    mixed.to_csv(folder / "mixed.csv", index=False)
    np.save(folder / "unlabelled.npy", cells.X[:, :4])
    (folder / "broken.npz").write_bytes(b"no archive")
    for method in ("vae", "msp"):
        model = fit_model(configure(method, ["epochs=5"]), read(folder / "train.csv", label="kind"))
        model.save(folder / f"{method}.safetensors")
    FGAN(dim=1, hidden=(4,), steps=1).fit([[0.0], [1.0]]).save(folder / "sampler.safetensors")
    save_file({"weight": np.zeros(3)}, folder / "foreign.safetensors")
    whole = (folder / "vae.safetensors").read_bytes()
    (folder / "cut.safetensors").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.fixture(autouse=True)
def _at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("OFFMAP_DATA", "no-such-folder")


def test_version_and_help(run: Run) -> None:
    assert re.fullmatch(r"offmap \d+\.\d+\.\d+\n", run("--version").out)
    shown = run("--help")
    assert shown.code == 0
    assert all(name in shown.out for name in ("methods", "datasets", "fit", "score", "evaluate", "demo"))
    assert run("-h").out == shown.out


def test_help_loads_none_of_the_heavy_libraries() -> None:
    code = (
        "import sys, offmap.commands.app as app; sys.argv = ['offmap', '--help']\n"
        "try: app.main()\n"
        "except SystemExit: print(sorted({'numpy', 'pandas', 'sklearn', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_methods_are_listed_and_described(run: Run) -> None:
    listed = run("methods", "--json").data
    assert [line["method"] for line in listed] == [method.name for method in catalog.methods()]
    parameters = {line["parameter"]: line for line in run("methods", "vae", "--json").data}
    assert parameters["alpha"]["default"] == "0.05"
    assert all(line["meaning"] for line in parameters.values())
    assert "Latent dimensions." in run("methods", "vae").out


def test_data_sets_are_listed_and_described(run: Run) -> None:
    listed = {line["name"]: line for line in run("datasets", "--json").data}
    assert listed["digits"]["rows"] == {"all": 1797}
    assert listed["digits"]["found"]
    assert not listed["svhn"]["found"]
    assert run("datasets", "digits", "--json").data == listed["digits"]
    assert "bundled with scikit-learn" in run("datasets", "digits").out
    assert "did you mean 'digits'?" in run("datasets", "digit").err


def test_a_fitted_model_is_saved_and_summed_up(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "model.safetensors"
    done = run("fit", "msp", "train.csv", "--label", "kind", "--set", "epochs=3", "--out", out, "--json")
    model = offmap.load(out)
    assert model.epochs == 3
    assert done.data["threshold"] == model.threshold_
    assert done.data["classes"] == 2
    assert done.data["calibration_rows"] == len(model.calibration_novelty_)
    assert done.data["last_epoch"] == {term: values[-1] for term, values in model.history_.items()}
    assert done.err == f"wrote {out}; {promise_of(model)}\n"


def test_the_seed_decides(run: Run, tmp_path: Path) -> None:
    def threshold(seed: int) -> float:
        arguments = ("--set", "epochs=1", "--seed", seed, "--out", tmp_path / "model", "--json", "--quiet")
        return float(run("fit", "vae", "unlabelled.npy", *arguments).data["threshold"])

    assert threshold(1) == threshold(1) != threshold(2)


def test_scores_are_those_of_the_library(run: Run) -> None:
    printed = pd.read_csv(io.StringIO(run("score", "msp.safetensors", "novel.csv", "--label", "kind").out))
    model, X = offmap.load("msp.safetensors"), read("novel.csv", label="kind").rows
    assert printed["novelty"].tolist() == model.novelty(X).tolist()
    assert printed["p_value"].tolist() == model.p_value(X).tolist()
    assert printed["label"].tolist() == model.predict(X).tolist()
    assert printed["closest"].tolist() == model.predict_closed(X).tolist()
    assert printed["novel"].tolist() == (model.novelty(X) > model.threshold_).tolist()


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet"])
def test_scores_go_to_a_file_or_as_json_to_standard_output(run: Run, tmp_path: Path, name: str) -> None:
    score = ("score", "vae.safetensors", "novel.csv", "--label", "kind")
    printed = pd.DataFrame(run(*score, "--json").data)
    done = run(*score, "--out", tmp_path / name)
    written = pd.read_csv(tmp_path / name) if name.endswith("csv") else pd.read_parquet(tmp_path / name)
    assert done == (0, "", f"wrote 60 rows to {tmp_path / name}, {written['novel'].sum()} of them novel\n")
    pd.testing.assert_frame_equal(written, printed, check_exact=True)
    summary = run(*score, "--out", tmp_path / name, "--json").data
    assert summary == {"out": str(tmp_path / name), "rows": 60, "novel": int(written["novel"].sum())}


def test_evaluation_measures_and_reports(run: Run, tmp_path: Path) -> None:
    pair = ("--normal", "normal.csv", "--novel", "novel.csv", "--label", "kind")
    done = run("evaluate", "msp.safetensors", *pair, "--report", tmp_path / "report.html", "--json")
    model, normal = offmap.load("msp.safetensors"), read("normal.csv", label="kind")
    assert done.data["known_accuracy"] == np.mean(model.predict_closed(normal.rows) == normal.y)
    assert done.data["false_alarm_rate"] == np.mean(model.novelty(normal.rows) > model.threshold_)
    assert done.err == f"wrote {tmp_path / 'report.html'}\n"
    assert "<h1>msp: normal.csv against novel.csv</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "auroc" in run("evaluate", "vae.safetensors", *pair).out


def test_an_entity_model_is_fitted_and_scored_by_entity(run: Run, tmp_path: Path) -> None:
    model = tmp_path / "ratio.safetensors"
    fitted = run("fit", "ratio", "readings.csv", "--entity", "device", "--set", "epochs=2", "--out", model, "--json")
    assert (fitted.code, fitted.data["entities"]) == (0, 9)
    scored = pd.read_csv(io.StringIO(run("score", model, "readings.csv", "--entity", "device").out))
    again = read("readings.csv", label="device")
    np.testing.assert_allclose(scored["novelty"], offmap.load(model).novelty(again.rows, again.y))
    assert scored["entity"].tolist() == np.asarray(again.y).tolist()


def test_columns_are_found_by_name(run: Run, tmp_path: Path) -> None:
    frame = pd.read_csv("normal.csv")
    frame.assign(more="x")[["more", *frame.columns[::-1]]].to_csv(tmp_path / "turned.csv", index=False)
    scored = run("score", "msp.safetensors", tmp_path / "turned.csv", "--label", "kind")
    assert scored == run("score", "msp.safetensors", "normal.csv", "--label", "kind")
    frame.drop(columns=["b", "d"]).to_csv(tmp_path / "less.csv", index=False)
    done = run("score", "msp.safetensors", tmp_path / "less.csv", "--label", "kind")
    assert done.code == 2
    assert "it lacks 'b', 'd', which the model was fitted on" in done.err


def test_json_has_null_for_what_is_not_finite(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "huge.npy", np.full((2, 4), 1e300))
    rows = run("score", "vae.safetensors", tmp_path / "huge.npy", "--json").data
    assert [row["novelty"] for row in rows] == [None, None]
    assert all(row["novel"] for row in rows)
    assert json.loads(terminal.to_json({"a": [np.float32("nan"), -np.inf, 1.5], "b": np.int64(3)})) == {
        "a": [None, None, 1.5],
        "b": 3,
    }


def test_quiet_leaves_nothing_on_standard_error(run: Run, tmp_path: Path) -> None:
    few = ("--set", "calibration=0.01", "--set", "epochs=1", "--out", tmp_path / "model.safetensors")
    assert run("fit", "vae", "unlabelled.npy", *few, "--quiet").err == ""
    assert run("score", "vae.safetensors", "unlabelled.npy", "--out", tmp_path / "s.csv", "-q").err == ""
    pair = ("--normal", "unlabelled.npy", "--novel", "unlabelled.npy", "--report", tmp_path / "r.html")
    assert run("evaluate", "vae.safetensors", *pair, "--quiet").err == ""


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(run: Run, tmp_path: Path) -> None:
    few = ("--set", "calibration=0.01", "--set", "epochs=1", "--out", tmp_path / "model.safetensors")
    warning, wrote = run("fit", "vae", "unlabelled.npy", *few).err.splitlines()
    assert warning == (
        "warning: 6 calibration rows cannot promise a false-alarm rate of 0.05; the rate is up to 0.14; "
        "give more rows, a larger alpha or a larger calibration share: 19 are needed"
    )
    assert wrote.startswith("wrote")


FIT = ("fit", "msp", "train.csv", "--label", "kind", "--out", "x.safetensors")
VAE = ("fit", "vae", "unlabelled.npy", "--out", "x.safetensors")
MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown method": (("fit", "vea", "train.csv", "--out", "x"), "there is no method 'vea'; did you mean 'vae'?"),
    "method to describe": (("methods", "mps"), "did you mean 'msp'?"),
    "unknown parameter": (
        (*FIT, "--set", "epoch=3"),
        "MSPClassifier has no parameter 'epoch'; it has alpha, batch_size",
    ),
    "not a setting": ((*FIT, "--set", "epochs"), "a setting is name=value; got 'epochs'"),
    "value out of range": ((*FIT, "--set", "epochs=0"), "epochs must be an integer at least 1; got '0'"),
    "value of another type": ((*FIT, "--set", "lr=fast"), "lr must be a number above 0; got 'fast'"),
    "seed as a setting": ((*FIT, "--set", "random_state=3"), "give it as --seed"),
    "device": ((*VAE, "--set", "device=abacus"), "device must be one that torch can use here; got 'abacus'"),
    "no such file": (("fit", "vae", "gone.csv", "--out", "x"), "'gone.csv' is neither a file or folder nor a data set"),
    "data set not here": (("fit", "vae", "svhn", "--out", "x"), "put the file into the folder that OFFMAP_DATA names"),
    "no such column": (
        ("fit", "msp", "train.csv", "--label", "sort", "--out", "x"),
        "it has 'a', 'b', 'c', 'd', 'kind'",
    ),
    "broken archive": (
        ("fit", "vae", "broken.npz", "--out", "x"),
        "broken.npz cannot be read as an .npz archive, as np.savez writes it",
    ),
    "no labels": (
        ("fit", "msp", "unlabelled.npy", "--out", "x"),
        "unlabelled.npy has no labels; a table needs --label",
    ),
    "no entities": (("fit", "ratio", "unlabelled.npy", "--out", "x"), "names none; a table needs --entity COLUMN"),
    "classes and entities": ((*FIT, "--entity", "a"), "label and entity must not both be given"),
    "words among numbers": (
        ("fit", "vae", "mixed.csv", "--label", "kind", "--out", "x"),
        "mixed.csv has 2 problems: column 'a' is a number, but row 3 holds 'three'",
    ),
    "texts for a model of numbers": (
        ("score", "vae.safetensors", "notes.csv", "--text", "note"),
        "notes.csv holds texts, but the model was fitted on numbers",
    ),
    "no such model": (("score", "gone.safetensors", "novel.csv"), "there is no file gone.safetensors"),
    "cut model": (("score", "cut.safetensors", "novel.csv"), "cut.safetensors is not a whole safetensors file"),
    "sampler for a model": (
        ("score", "sampler.safetensors", "novel.csv"),
        "sampler.safetensors must hold a detector or a classifier; it holds a FGAN",
    ),
    "foreign model": (("score", "foreign.safetensors", "novel.csv"), "not one that Offmap wrote"),
    "model that is a table": (("score", "train.csv", "novel.csv"), "train.csv is not a whole safetensors file"),
    "wrong width": (("score", "vae.safetensors", "wine"), "X has 13 features, but VAEDetector is expecting 4"),
    "wrong label": (
        ("evaluate", "msp.safetensors", "--normal", "novel.csv", "--novel", "novel.csv", "--label", "kind"),
        "the normal rows of novel.csv have the label 'strange', which was never taught",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_line_and_exit_code_2(run: Run, arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (app.EXIT_BAD_INPUT, "")
    assert done.err.startswith("offmap: ")
    assert done.err.count("\n") == 1
    assert message in done.err
    assert not Path("x").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "vae", "gone.csv", "--out", "no/model"), "the folder no does not exist"),
        (("fit", "vae", "gone.csv", "--out", "."), "it is a folder"),
        (("score", "gone", "gone.csv", "--out", "no/s.csv"), "the folder no does not exist"),
        (("score", "gone", "gone.csv", "--out", "s.xlsx"), "must end in .parquet or .csv or .jsonl; got s.xlsx"),
        (("evaluate", "gone", "--normal", "gone", "--novel", "gone", "--report", "r.pdf"), "must end in .html or .htm"),
        (("demo", "--out", "train.csv"), "train.csv"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(run: Run, arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.code == app.EXIT_BAD_INPUT
    assert message in done.err
    assert "gone" not in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "msp", "normal.csv", "--label", "kind", "--out", "normal.csv"),
        ("score", "msp.safetensors", "normal.csv", "--label", "kind", "--out", "./normal.csv"),
        ("fit", "vae", "normal.csv:train", "--out", "normal.csv"),
    ],
)
def test_what_is_read_is_not_written(run: Run, arguments: tuple[str, ...]) -> None:
    before = Path("normal.csv").read_bytes()
    done = run(*arguments)
    assert done.code == app.EXIT_BAD_INPUT
    assert "it is read as well; name another file" in done.err
    assert Path("normal.csv").read_bytes() == before


def test_novel_rows_need_no_labels(run: Run, tmp_path: Path) -> None:
    pd.read_csv("novel.csv").drop(columns="kind").to_csv(tmp_path / "novel.csv", index=False)
    given = ("evaluate", "msp.safetensors", "--normal", "normal.csv", "--label", "kind", "--json", "--novel")
    assert run(*given, tmp_path / "novel.csv").data == run(*given, "novel.csv").data
    done = run("evaluate", "msp.safetensors", "--normal", "normal.csv", "--novel", "novel.csv", "--label", "sort")
    assert "label must be a column of normal.csv, not 'sort'" in done.err


def test_a_method_without_entities_takes_none(run: Run, tmp_path: Path) -> None:
    done = run("fit", "vae", "readings.csv", "--entity", "device", "--out", tmp_path / "model")
    assert (done.code, done.err) == (
        app.EXIT_BAD_INPUT,
        "offmap: --entity must be left out: VAEDetector knows no entities\n",
    )


@pytest.mark.parametrize("arguments", [("fit",), ("fly",), ("methods", "--jsn"), ("demo", "--seed", "-1")])
def test_wrong_usage_is_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (app.EXIT_BAD_INPUT, "")
    assert "Usage: offmap" in done.err


def test_work_that_fails_is_exit_code_1(run: Run) -> None:
    done = run(*VAE, "--set", "lr=1e30", "--set", "epochs=3")
    assert (done.code, done.out) == (app.EXIT_FAILED, "")
    assert re.fullmatch(r"offmap: the term '\w+' became .* in epoch \d+; .*\n", done.err)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), app.EXIT_INTERRUPTED, "offmap: interrupted\n"),
        (OSError(28, "No space left on device"), app.EXIT_FAILED, "offmap: [Errno 28] No space left on device\n"),
        (MemoryError(), app.EXIT_FAILED, "offmap: MemoryError\n"),
        (ImportError("no module\nnamed x"), app.EXIT_BAD_INPUT, "offmap: no module named x\n"),
    ],
)
def test_each_kind_of_error_has_its_exit_code(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(catalog, "methods", fail)
    assert run("methods") == (code, "", line)


def test_debugging_and_bugs_show_the_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFMAP_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["offmap", "methods", "vea"])
    with pytest.raises(ValueError, match="did you mean"):
        app.main()
    monkeypatch.delenv("OFFMAP_DEBUG")
    monkeypatch.setattr(catalog, "method", lambda name: {}[name])
    with pytest.raises(KeyError):
        app.main()


@pytest.mark.parametrize("command", ["--version", "datasets"])
def test_a_reader_that_leaves_early_is_no_error(command: str) -> None:
    code = [sys.executable, "-c", "from offmap.commands.app import main; main()", command]
    with subprocess.Popen(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 0


@pytest.mark.parametrize("form", ["--quiet", "--json"])
def test_scores_stop_when_their_reader_leaves(run: Run, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert run("score", "vae.safetensors", "unlabelled.npy", form) == (0, "", "")


def commands_of(page: Path) -> list[str]:
    """The offmap commands in the shell examples of a page."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ offmap")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_shell_examples_of_the_documentation_work(
    run: Run, page: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in home.glob("*.csv"):
        (tmp_path / table.name).write_bytes(table.read_bytes())
    monkeypatch.chdir(tmp_path)
    for command in commands_of(page):
        done = run(*command.partition("|")[0].split()[1:])
        assert (command, done.code, done.err if done.code else "") == (command, 0, "")
