"""Attacks that once worked, kept as they were."""

import os
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import offmap
from offmap import tensorfile
from offmap.collaborative import EntityForestDetector
from offmap.density import NearestNeighborDetector, VAEDetector
from offmap.loop import OpenWorld
from offmap.monitor import DriftMonitor
from offmap.openset import MSPClassifier
from offmap.persist import ModelFileError
from offmap.sampling import BinaryVAE
from offmap.store import JournalUnreadable
from tests.fuzz.originals import write_world

ROWS = np.random.default_rng(0).normal(size=(300, 3))
LABELS = np.array(["ant", "bee", "cow"])[np.arange(300) % 3]
FEW: dict[str, Any] = {"epochs": 1, "random_state": 0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def edit(path: Path, *steps: str, value: Any) -> None:
    content = tensorfile.read(path)
    place = content
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    tensorfile.write(path, content)


BOMBS: list[tuple[str, str, Any]] = [
    ("attributes", "input_shape_", (10**7,)),
    ("parameters", "hidden", (20_000, 20_000)),
    ("parameters", "hidden", (1,) * 10**5),
    ("attributes", "latent_dim_", 10**8),
]


@pytest.mark.parametrize(("part", "name", "value"), BOMBS, ids=lambda value: str(value)[:20])
def test_a_small_file_cannot_ask_for_much_memory(path: Path, part: str, name: str, value: Any) -> None:
    VAEDetector(hidden=(4,), latent_dim=2, **FEW).fit(ROWS).save(path)
    edit(path, part, name, value=value)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelFileError, match=r"more memory than its content needs|does not fit|do not fit"):
        offmap.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("threshold_", float("nan"), "threshold_ must be a number"),
        ("threshold_", "high", "threshold_ must be a number"),
        ("calibration_novelty_", np.array([3.0, 1.0]), "calibration_novelty_ must be numbers in ascending order"),
        ("calibration_novelty_", np.array([1.0, np.nan]), "in ascending order"),
        ("calibration_novelty_", np.array(["a"]), "in ascending order"),
    ],
)
def test_a_promise_that_no_fit_leaves_is_refused(path: Path, name: str, value: Any, message: str) -> None:
    NearestNeighborDetector(random_state=0).fit(ROWS).save(path)
    edit(path, "attributes", "promise_", "$estimator", "attributes", name, value=value)
    with pytest.raises(ModelFileError, match=message):
        offmap.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("classes_", np.array(["bee", "ant", "cow"])),
        ("classes_", np.array(["ant", "bee", "cow", "dog"])),
        ("classes_", np.array([1.0, 2.0, np.nan])),
        ("classes_", ["ant", "bee", "cow"]),
        ("unknown_label_", "ant"),
        ("unknown_label_", -1),
        ("input_shape_", (4,)),
        ("input_shape_", [3]),
        ("n_features_in_", "3"),
        ("feature_names_in_", np.array(["a"], dtype=object)),
        ("column_shift_", np.zeros(3)),
        ("history_", {"loss": "low"}),
        ("promise_", 0.5),
    ],
)
def test_fitted_attributes_that_do_not_fit_together_are_refused(path: Path, name: str, value: Any) -> None:
    MSPClassifier(**FEW).fit(ROWS, LABELS).save(path)
    edit(path, "attributes", name, value=value)
    with pytest.raises(ModelFileError):
        offmap.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("promise_", 0.5),
        ("promise_", {}),
        ("members_", 7),
        ("members_", ()),
        ("members_", torch.zeros(3)),
        ("members_", (1, 2)),
        ("class_promise_", 2),
        ("classes_", np.array(["ant", "bee"])),
        ("unknown_label_", "ant"),
    ],
)
def test_the_whole_of_the_folds_is_checked_as_its_models_are(path: Path, name: str, value: Any) -> None:
    MSPClassifier(calibration="cv", folds=2, by_class="predicted", **FEW).fit(ROWS, LABELS).save(path)
    edit(path, "attributes", name, value=value)
    with pytest.raises(ModelFileError):
        offmap.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("past_", np.array([2.0, 1.0])),
        ("past_", "many"),
        ("path_", np.zeros(10_000)),
        ("shares_", np.zeros(3)),
        ("log_capital_", np.array([np.nan])),
        ("alarm_row_", 10**9),
        ("since_", 0.5),
        ("seed_", -1),
    ],
)
def test_a_state_that_no_monitor_leaves_is_refused(path: Path, name: str, value: Any) -> None:
    monitor = DriftMonitor(random_state=0).fit(ROWS[:, 0])
    monitor.update(ROWS[:, 1])
    monitor.save(path)
    edit(path, "state", name, value=value)
    with pytest.raises(ValueError, match=r"holds no state that a DriftMonitor leaves: .* does not fit"):
        DriftMonitor.load(path)


def test_a_journal_whose_entries_do_not_add_up_is_unreadable(tmp_path: Path) -> None:
    journal = write_world(tmp_path) / "journal.sqlite"
    with closing(sqlite3.connect(journal, isolation_level=None)) as database:
        database.execute("DROP TRIGGER entries_stay")
        database.execute("UPDATE entries SET content = replace(content, '\"group\"', '\"grouq\"') WHERE kind = 'named'")
    with pytest.raises(JournalUnreadable, match=r"is damaged: its entries do not add up \(KeyError: 'group'\)"):
        OpenWorld.open(journal.parent)
    with closing(sqlite3.connect(journal, isolation_level=None)) as database:
        database.execute("UPDATE entries SET content = substr(content, 2) WHERE kind = 'named'")
    with pytest.raises(JournalUnreadable, match=r"is damaged: entry \d+ is not JSON"):
        OpenWorld.open(journal.parent)
    with closing(sqlite3.connect(journal, isolation_level=None)) as database:
        database.execute("UPDATE entries SET at = CAST(x'1b5b33316dff' AS TEXT) WHERE kind = 'named'")
    with pytest.raises(JournalUnreadable, match=r"is damaged: Could not decode .*\\x1b\[31m"):
        OpenWorld.open(journal.parent)


def test_the_device_of_a_file_must_compute(path: Path) -> None:
    MSPClassifier(**FEW).fit(ROWS, LABELS).save(path)
    edit(path, "parameters", "device", value="meta")
    with pytest.raises(ModelFileError):
        offmap.load(path)


def test_a_file_cannot_ask_for_endless_draws_per_row(path: Path) -> None:
    BinaryVAE(hidden=(4,), **FEW).fit(ROWS > 0).save(path)
    edit(path, "parameters", "particles", value=10**8)
    with pytest.raises(ModelFileError, match="particles must be an integer from 1 to 1,000"):
        offmap.load(path)


def test_a_file_does_not_choose_where_a_later_fit_writes(path: Path, tmp_path: Path) -> None:
    VAEDetector(hidden=(4,), **FEW).fit(ROWS).save(path)
    edit(path, "parameters", "checkpoint", value=str(tmp_path / "elsewhere"))
    assert offmap.load(path).checkpoint is None


def test_the_table_of_entities_must_have_its_shape(path: Path) -> None:
    EntityForestDetector(n_estimators=3, random_state=0).fit(ROWS, np.arange(300) % 5).save(path)
    content = tensorfile.read(path)
    table = content["modules"]["entities_"]
    table["count"] = table["count"][:1]
    tensorfile.write(path, content)
    with pytest.raises(ModelFileError, match="the table of entities must have columns of the shapes"):
        offmap.load(path)


WATCHED = """
import os, sys
import numpy as np

model, data, out, mode = sys.argv[1:5]
allowed = [os.path.realpath(os.path.dirname(out))]
seen = []

def watch(event, args):
    if event.startswith(("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto")):
        seen.append((event, str(args)))
    elif event in ("subprocess.Popen", "os.exec", "os.system", "os.posix_spawn", "os.fork", "os.forkpty"):
        seen.append((event, str(args)))
    elif event == "open" and isinstance(args[0], (str, bytes)):
        writes = isinstance(args[1], str) and set(args[1]) & set("wax+") or args[2] & (os.O_WRONLY | os.O_RDWR)
        path = os.path.realpath(os.fsdecode(args[0]))
        if writes and not path.startswith((*allowed, "/dev/null")):
            seen.append((event, path, args[1]))
    elif event in ("os.mkdir", "os.rename", "os.remove", "sqlite3.connect"):
        if not os.path.realpath(os.fsdecode(args[0])).startswith(tuple(allowed)):
            seen.append((event, str(args)))

# What libraries do when they are imported is not what a file makes them do.
import offmap.workflow, offmap.openset, offmap.density, pandas, pyarrow.parquet, sklearn.neighbors
offmap.openset.MSPClassifier(epochs=1, random_state=0).fit(np.eye(40), np.arange(40) % 2).novelty(np.eye(40))
sys.addaudithook(watch)
if mode == "control":
    open(os.path.join(os.path.dirname(model), "elsewhere.txt"), "w").close()
from offmap.persist import ModelFileError
from offmap.sampling import BinaryVAE
from offmap.workflow import load_model, score_rows, write_frame
from offmap.data import open_data
from pathlib import Path
try:
    frame = score_rows(load_model(model), open_data(data))
    write_frame(frame, Path(out))
except ModelFileError as error:
    print("refused:", error)
print("seen:", seen)
"""


def watched(model: Path, data: Path, out: Path, mode: str = "") -> str:
    command = [sys.executable, "-c", WATCHED, str(model), str(data), str(out), mode]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_loading_and_scoring_touch_nothing_but_the_given_paths(path: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "rows.npy", tmp_path / "out" / "scores.csv"
    out.parent.mkdir()
    np.save(data, ROWS)
    MSPClassifier(**FEW).fit(ROWS, LABELS).save(path)
    assert watched(path, data, out) == "seen: []\n"
    assert out.exists()
    assert "elsewhere.txt" in watched(path, data, out, "control")


def test_a_file_that_names_another_text_model_reaches_neither_network_nor_disk(path: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "rows.npy", tmp_path / "out" / "scores.csv"
    out.parent.mkdir()
    np.save(data, ROWS)
    MSPClassifier(**FEW).fit(ROWS, LABELS).save(path)
    encoder = {"model": "hub/name", "cache": str(tmp_path / "cache")}
    content: dict[str, Any] = {
        "class": "offmap.data.TextEncoder",
        "parameters": encoder,
        "attributes": {},
        "modules": {},
    }
    edit(path, "parameters", "encoder", value={"$estimator": content})
    edit(path, "attributes", "encoder_", value={"$estimator": content})
    said = watched(path, data, out)
    assert "refused: " in said
    assert "uses 'hub/name', which is not part of Offmap" in said
    assert said.endswith("seen: []\n")
