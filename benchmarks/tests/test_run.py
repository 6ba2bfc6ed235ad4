import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from offmap_bench import Table, provenance
from offmap_bench.plain import plain, public_name
from offmap_bench.run import Cell, FailedRuns, run


def constant(method: Any, column: str, seed: int) -> dict[str, float]:
    return {"auroc": 0.5}


def test_a_cell_says_how_it_was_made(make_table: Callable[..., Table], forests: Any, tmp_path: Path) -> None:
    cells = run(make_table(), results=tmp_path)
    kept = json.loads((tmp_path / "cpu" / "forests" / "small--shift-1.json").read_text(encoding="utf-8"))
    assert [kept[name] for name in ("table", "row", "column", "profile")] == ["forests", "small", "shift 1", "cpu"]
    assert kept["parameters"]["n_estimators"] == 2
    assert kept["parameters"]["class"].endswith("IsolationForest")
    assert set(kept["versions"]) == {"offmap", "torch", "numpy", "scikit-learn", "gymnasium", "mujoco", "python"}
    assert kept["versions"]["numpy"] == np.__version__
    assert kept["cores"] >= 1
    assert kept["processor"] == provenance.processor()
    assert "commit" in kept
    assert [entry["seed"] for entry in kept["runs"]] == [0, 1, 2]
    fresh = IsolationForest(n_estimators=2)
    assert kept["runs"][1]["metrics"] == forests(fresh, "shift 1", 1)
    assert all(entry["seconds"] > 0 for entry in kept["runs"])
    assert [(cell.column, cell.row) for cell in cells] == [
        ("shift 1", "small"),
        ("shift 1", "large"),
        ("shift 3", "small"),
        ("shift 3", "large"),
    ]


def test_a_killed_run_resumes_with_the_missing_seeds(
    make_table: Callable[..., Table], forests: Any, tmp_path: Path
) -> None:
    forests.stop = {4: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        run(make_table(), results=tmp_path)
    assert forests.calls == [("shift 1", 2, 0), ("shift 1", 8, 0), ("shift 1", 2, 1), ("shift 1", 8, 1)]
    resumed = run(make_table(), results=tmp_path)
    assert len(forests.calls) == len(set(forests.calls)) == 12
    assert run(make_table(), results=tmp_path) == resumed
    assert len(forests.calls) == 12


def test_resumed_numbers_are_those_of_one_run(make_table: Callable[..., Table], forests: Any, tmp_path: Path) -> None:
    forests.stop = {1: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        run(make_table(), results=tmp_path / "halves")
    halves, whole = run(make_table(), results=tmp_path / "halves"), run(make_table(), results=tmp_path / "whole")
    assert [[r.metrics for r in cell.runs] for cell in halves] == [[r.metrics for r in cell.runs] for cell in whole]


def test_changed_parameters_start_the_cell_anew(make_table: Callable[..., Table], forests: Any, tmp_path: Path) -> None:
    run(make_table(), results=tmp_path)
    forests.calls.clear()
    rows = {"small": IsolationForest(n_estimators=2), "large": IsolationForest(n_estimators=9)}
    cells = run(make_table(rows=rows), results=tmp_path, seeds=[5])
    by_place = {(cell.row, cell.column): cell.seeds for cell in cells}
    assert by_place["small", "shift 1"] == {0, 1, 2, 5}
    assert by_place["large", "shift 1"] == {5}


def test_force_measures_the_asked_seeds_again(make_table: Callable[..., Table], forests: Any, tmp_path: Path) -> None:
    run(make_table(), results=tmp_path)
    forests.calls.clear()
    cells = run(make_table(), results=tmp_path, rows=["small"], columns=["shift 3"], seeds=[1], force=True)
    assert forests.calls == [("shift 3", 2, 1)]
    assert [cell.seeds for cell in cells] == [{0, 1, 2}]


def test_a_failing_run_is_named_and_the_others_go_on(
    make_table: Callable[..., Table], forests: Any, tmp_path: Path
) -> None:
    forests.stop = {4: RuntimeError("diverged")}
    with pytest.raises(FailedRuns, match=r"1 of 12 runs .* row 'small', column 'shift 1', seed 2: .*diverged"):
        run(make_table(), results=tmp_path)
    assert len(forests.calls) == 11
    run(make_table(), results=tmp_path)
    assert len(forests.calls) == 12


def test_a_metric_that_is_not_finite_is_null(make_table: Callable[..., Table], tmp_path: Path) -> None:
    table = make_table(measure=lambda method, column, seed: {"auroc": (np.nan, np.inf, 0.5)[seed]})
    cells = run(table, results=tmp_path, rows=["small"], columns=["shift 1"])
    assert [entry.metrics["auroc"] for entry in cells[0].runs] == [None, None, 0.5]
    assert cells[0].stored(tmp_path) == cells[0]


def test_other_metrics_than_the_tables_are_a_failure(make_table: Callable[..., Table], tmp_path: Path) -> None:
    with pytest.raises(FailedRuns, match="measure must return the metrics auroc; got aupr"):
        run(make_table(measure=lambda method, column, seed: {"aupr": 1.0}), results=tmp_path, seeds=[0])


def test_a_kill_while_writing_leaves_the_old_cell(
    make_table: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = run(make_table(measure=constant), results=tmp_path)[0]
    write_text, written = Path.write_text, list[Path]()

    def recorded(path: Path, text: str, **options: Any) -> int:
        written.append(path)
        return write_text(path, text, **options)

    def killed(path: Path, text: str, **options: Any) -> int:
        write_text(path, text[: len(text) // 2], **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", recorded)
    cell.write(tmp_path)
    assert written
    assert cell.path(tmp_path) not in written
    monkeypatch.setattr(Path, "write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        run(make_table(measure=constant), results=tmp_path, seeds=[7])
    assert cell.stored(tmp_path) == cell
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".json"}


def test_the_cell_of_another_label_is_not_taken_over(
    make_table: Callable[..., Table], forests: Any, tmp_path: Path
) -> None:
    run(make_table(rows={"small+": IsolationForest(n_estimators=2)}), results=tmp_path, seeds=[0])
    run(make_table(rows={"small": IsolationForest(n_estimators=2)}), results=tmp_path, seeds=[0])
    assert len(forests.calls) == 4


def test_what_is_not_a_cell_is_named(make_table: Callable[..., Table], tmp_path: Path) -> None:
    place = Cell("forests", "small", "shift 1", "cpu", None).path(tmp_path)
    place.parent.mkdir(parents=True)
    place.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"small--shift-1\.json is not a stored benchmark cell"):
        run(make_table(), results=tmp_path)


def test_a_new_metric_is_measured(make_table: Callable[..., Table], tmp_path: Path) -> None:
    run(make_table(measure=constant), results=tmp_path)
    table = make_table(metrics=("auroc", "aupr"), measure=lambda m, c, s: {"auroc": 0.5, "aupr": 0.25})
    assert run(table, results=tmp_path)[0].runs[0].metrics == {"auroc": 0.5, "aupr": 0.25}


@pytest.mark.parametrize(
    "wrong", [{"profile": "gpu"}, {"rows": ["tiny"]}, {"columns": ["shift 2"]}], ids=lambda wrong: next(iter(wrong))
)
def test_an_unknown_choice_is_named(make_table: Callable[..., Table], tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be among"):
        run(make_table(), results=tmp_path, **wrong)


def test_descriptions_tell_nested_parameters_apart_and_are_json() -> None:
    def described(width: int) -> Any:
        return plain({"model": make_pipeline(StandardScaler(), IsolationForest(n_estimators=width)), "k": {1: "x"}})

    assert described(2) == described(2) == json.loads(json.dumps(described(2), allow_nan=False))
    assert described(2) != described(3)
    assert plain(np.float32(0.5)) == 0.5
    assert plain(np.arange(2)) == [0, 1]
    with pytest.raises(ValueError, match="parameters must be plain"):
        plain(partial(constant, 1))


def test_parameters_of_a_nested_estimator_are_stored_once() -> None:
    stored = plain(BaggingClassifier(estimator=IsolationForest(n_estimators=2)))
    assert stored["estimator"]["n_estimators"] == 2
    assert not any("__" in name for name in stored)


def test_a_class_is_named_by_the_outermost_package_that_exports_that_very_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner, other = type("Forest", (), {"__module__": "papers.trees.forest"}), type("Forest", (), {})
    for name in ("papers", "papers.trees", "papers.trees.forest"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    assert public_name(inner) == "papers.trees.forest.Forest"
    vars(sys.modules["papers.trees"])["Forest"] = inner
    vars(sys.modules["papers"])["Forest"] = other
    assert public_name(inner) == "papers.trees.Forest"
    vars(sys.modules["papers"])["Forest"] = inner
    assert public_name(inner) == "papers.Forest"


def test_processors_are_told_apart_where_their_names_are_the_same(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n\n")
    assert provenance.processor(cpuinfo).startswith("AMD EPYC, family 25, model 1, ")
    assert provenance.processor(tmp_path / "absent")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_that_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    source = tmp_path / "src" / "provenance.py"
    source.parent.mkdir()
    source.write_text("", encoding="utf-8")
    monkeypatch.setattr(provenance, "REPOSITORY", tmp_path)
    monkeypatch.setattr(provenance, "__file__", str(source))
    assert provenance.commit() is None
    git("init", "--quiet")
    (tmp_path / "other.txt").write_text("", encoding="utf-8")
    git("add", "other.txt")
    git("commit", "--quiet", "--message", "other")
    assert provenance.commit() is None
    git("add", "src")
    git("commit", "--quiet", "--message", "code")
    assert provenance.commit() == git("rev-parse", "HEAD")
    (tmp_path / "other.txt").write_text("not code", encoding="utf-8")
    assert provenance.commit() == git("rev-parse", "HEAD")
    source.write_text("changed = True", encoding="utf-8")
    assert provenance.commit() == git("rev-parse", "HEAD") + "+"
