"""Models come back as they were, or with a reason why not."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

import offmap
from offmap import tensorfile
from offmap.density import VAEDetector
from offmap.openset import MSPClassifier
from offmap.persist import SCHEMA, ModelFileError, public_path

X = np.random.default_rng(0).normal(size=(200, 3))
SMALL: dict[str, Any] = {"epochs": 1, "hidden": (5, 4), "random_state": 0}


@pytest.fixture(scope="module")
def fitted() -> VAEDetector:
    return VAEDetector(**SMALL, latent_dim=2).fit(X)


@pytest.fixture
def path(fitted: VAEDetector, tmp_path: Path) -> Path:
    """A saved model."""
    fitted.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def change(path: Path, part: Any = None, **values: Any) -> None:
    """Rewrites a saved model with other values in one part of it; ``...`` takes a value out."""
    content = tensorfile.read(path)
    place = content if part is None else content[part]
    place.update(values)
    for name in [name for name, value in values.items() if value is ...]:
        del place[name]
    tensorfile.write(path, content)


def test_parameters_and_fitted_attributes_come_back_with_their_types(fitted: VAEDetector, path: Path) -> None:
    loaded = offmap.load(path)
    assert type(loaded) is VAEDetector
    assert loaded.get_params() == fitted.get_params()
    assert type(loaded.hidden) is tuple
    assert vars(loaded).keys() == vars(fitted).keys()
    assert type(loaded.input_shape_) is tuple
    assert loaded.calibration_novelty_.tobytes() == fitted.calibration_novelty_.tobytes()
    assert loaded.history_ == fitted.history_
    assert not loaded.network_.training
    assert loaded.novelty(X).tobytes() == fitted.novelty(X).tobytes()
    assert loaded.fit(X).novelty(X).tobytes() == fitted.novelty(X).tobytes()


@pytest.mark.parametrize("dtype", [object, "U6"])
def test_string_labels_come_back(tmp_path: Path, dtype: Any) -> None:
    y = np.array(["known", "bekant"], dtype=dtype)[(X[:, 0] > 0).astype(int)]
    classifier = MSPClassifier(epochs=5, random_state=0).fit(X, y)
    classifier.save(tmp_path / "model")
    loaded = offmap.load(tmp_path / "model")
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert list(loaded.predict(X)) == list(classifier.predict(X))


def test_convolutions_come_back_to_the_byte(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(256, size=(220, 17, 16, 3), dtype=np.uint8)
    fitted = VAEDetector(epochs=1, likelihood="bernoulli", random_state=0).fit(images)
    fitted.save(tmp_path / "model")
    assert offmap.load(tmp_path / "model").novelty(images).tobytes() == fitted.novelty(images).tobytes()


def test_loading_leaves_random_states_alone(path: Path) -> None:
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state(legacy=False)
    offmap.load(path)
    assert torch.equal(torch.get_rng_state(), torch_before)
    np.testing.assert_equal(np.random.get_state(legacy=False), numpy_before)


def test_an_unfitted_model_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        VAEDetector().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", [np.random.RandomState(0), np.random.default_rng(0)])
def test_a_parameter_that_cannot_be_saved_is_named_and_may_be_changed(path: Path, seed: Any) -> None:
    before = path.read_bytes()
    model = VAEDetector(**SMALL | {"random_state": seed}).fit(X)
    reason = rf"parameters\.random_state is a {type(seed).__name__}, which cannot be saved; set_params changes"
    with pytest.raises(TypeError, match=reason):
        model.save(path)
    assert path.read_bytes() == before
    model.set_params(random_state=None).save(path)
    assert offmap.load(path).novelty(X).tobytes() == model.novelty(X).tobytes()


def test_a_model_that_could_not_be_loaded_again_is_not_saved(fitted: VAEDetector, tmp_path: Path) -> None:
    class Mine(VAEDetector):  # type: ignore[misc] # type checkers refuse it, Python does not
        pass

    with pytest.raises(TypeError, match="Mine cannot be saved: only Offmap's own estimators"):
        Mine(**SMALL).fit(X).save(tmp_path / "model")
    with pytest.raises(ValueError, match="epochs must be an integer at least 1 or None; got 0"):
        VAEDetector(**SMALL).fit(X).set_params(epochs=0).save(tmp_path / "model")
    changes: list[dict[str, Any]] = [{"hidden": (9,)}, {"extra_scores": ("waic",)}]
    for changed in changes:
        with pytest.raises(ValueError, match="the model could not be loaded again, so it was not saved"):
            VAEDetector(**SMALL).fit(X).set_params(**changed).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


KILLED_WHILE_SAVING = """
import os, signal, sys
from pathlib import Path
import offmap
from offmap import tensorfile

def killed_half_way(path, content):
    whole = Path(sys.argv[1]).read_bytes()
    written(path, whole[: len(whole) // 2])
    os.kill(os.getpid(), signal.SIGKILL)

model = offmap.load(sys.argv[1])
Path.write_bytes, written = killed_half_way, Path.write_bytes
model.save(sys.argv[1])
"""


def test_a_kill_while_saving_leaves_the_old_model(fitted: VAEDetector, path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED_WHILE_SAVING, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert offmap.load(path).novelty(X).tobytes() == fitted.novelty(X).tobytes()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.999])
def test_a_cut_file_is_refused(path: Path, share: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ModelFileError, match=r"cannot load the model: .*model\.safetensors is not a whole safetensors"):
        offmap.load(path)


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "offmap.commands.app.main",
        "offmap.catalog.load",
        "offmap.base.Detector",
        "offmap.density.VAE",
        "offmap.density.vae_detector.VAEDetector",
        "offmap.density.__builtins__",
        "offmap.density",
        "offmap",
        "VAEDetector",
        "",
        None,
        ["offmap", "density"],
    ],
)
def test_a_class_that_is_no_public_estimator_is_refused(path: Path, name: Any) -> None:
    change(path, **{"class": name})
    with pytest.raises(ModelFileError, match="which is not an estimator of this release"):
        offmap.load(path)


def test_a_public_name_that_is_no_estimator_is_never_called(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr("offmap.density.helper", lambda **parameters: called.append(parameters), raising=False)
    monkeypatch.setattr("offmap.density.__all__", ["VAEDetector", "helper"])
    change(path, **{"class": "offmap.density.helper"})
    with pytest.raises(ModelFileError, match=r"'offmap\.density\.helper', which is not an estimator"):
        offmap.load(path)
    assert called == []


@pytest.mark.parametrize("versions", [{"offmap": "9.9"}, "unheard of"])
def test_a_newer_schema_says_what_it_needs(path: Path, versions: Any) -> None:
    change(path, schema=SCHEMA + 1, versions=versions, modules=...)
    with pytest.raises(ModelFileError, match=rf"schema is {SCHEMA + 1}, this release reads up to {SCHEMA}") as refusal:
        offmap.load(path)
    assert str(versions) in str(refusal.value)


@pytest.mark.parametrize("content", [None, [], {}, {"schema": "1"}, {"schema": 0}, {"run": "training"}])
def test_what_is_no_model_is_refused(path: Path, content: Any) -> None:
    tensorfile.write(path, content)
    with pytest.raises(ModelFileError, match=r"cannot load .*model\.safetensors: it is not a model"):
        offmap.load(path)


@pytest.mark.parametrize("name", ["class", "parameters", "attributes", "modules"])
def test_a_missing_part_is_named(path: Path, name: str) -> None:
    change(path, **{name: ...})
    with pytest.raises(ModelFileError, match=f"it lacks {name}"):
        offmap.load(path)


@pytest.mark.parametrize("name", ["input_shape_", "promise_", "history_"])
def test_a_missing_attribute_is_named(path: Path, name: str) -> None:
    change(path, "attributes", **{name: ...})
    with pytest.raises(ModelFileError, match=f"it lacks {name}"):
        offmap.load(path)


@pytest.mark.parametrize("name", ["predict", "_novelty", "alpha", "__class__"])
def test_only_fitted_attributes_are_set(path: Path, name: str) -> None:
    change(path, "attributes", **{name: 1})
    with pytest.raises(ModelFileError, match=f"it holds {name}, which no fit leaves"):
        offmap.load(path)


@pytest.mark.parametrize(
    ("part", "values", "reason"),
    [
        ("parameters", {"depth": 3}, "depth"),
        ("parameters", {"latent_dim": -3}, "latent_dim must be an integer at least 1 or None; got -3"),
        ("attributes", {"latent_dim_": 10**17}, "memory"),
        (
            "parameters",
            {"likelihood": "laplace"},
            "likelihood must be a str among 'gaussian_learned', .*; got 'laplace'",
        ),
        ("parameters", {"device": "nowhere"}, "nowhere"),
        ("attributes", {"input_shape_": "wide"}, "str"),
        (None, {"parameters": []}, "list"),
        (None, {"attributes": "none"}, "str"),
    ],
)
def test_content_that_does_not_fit_the_class_is_refused(path: Path, part: Any, values: Any, reason: str) -> None:
    change(path, part, **values)
    with pytest.raises(ModelFileError, match=rf"its content does not fit offmap\.density\.VAEDetector: .*{reason}"):
        offmap.load(path)


def test_networks_must_be_those_of_the_class(path: Path) -> None:
    """Without this a model without weights would load, with weights drawn at random."""
    change(path, modules={})
    with pytest.raises(ModelFileError, match=r"its networks should be \['ensemble_', 'network_'\], but are \[\]"):
        offmap.load(path)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"draw": torch.zeros(3)}, "size mismatch for draw"),
        ({"draw": ...}, r"Missing key\(s\) in state_dict: \"draw\""),
        ({"extra": torch.zeros(3)}, r"Unexpected key\(s\) in state_dict: \"extra\""),
        ({"draw": "zeros"}, "draw"),
    ],
)
def test_tensors_that_do_not_fit_the_network_are_named(path: Path, values: dict[str, Any], reason: str) -> None:
    content = tensorfile.read(path)
    tensors = content["modules"]["network_"] | values
    content["modules"]["network_"] = {name: value for name, value in tensors.items() if value is not ...}
    tensorfile.write(path, content)
    with pytest.raises(ModelFileError, match=f"the tensors of 'network_' do not fit the network: .*{reason}"):
        offmap.load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent"):
        offmap.load(tmp_path / "absent")


def test_the_file_says_what_it_was_made_with(path: Path) -> None:
    content = tensorfile.read(path)
    assert content["schema"] == SCHEMA
    assert content["class"] == public_path(VAEDetector) == "offmap.density.VAEDetector"
    assert content["versions"].keys() == {"python", "offmap", "torch", "numpy", "scikit-learn"}
    assert content["versions"]["torch"] == torch.__version__
