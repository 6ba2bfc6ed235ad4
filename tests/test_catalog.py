"""The families' ``__all__`` is the registry: what it holds is found, and nothing else."""

import dataclasses
import importlib
import pkgutil
import re

import pytest

import offmap
from offmap import density
from offmap.base import Detector, OpenSetClassifier
from offmap.catalog import FAMILIES, Method, method, methods, public_class, require_distinct
from offmap.collaborative.base import EntityDetector
from offmap.data import TextEncoder
from offmap.openset import MSPClassifier
from offmap.persist import public_path
from offmap.sampling import FGAN, RAS, AmortisedSVGD
from offmap.sampling.rl import SoftQAgent


def test_every_public_estimator_is_a_method_under_a_name_of_its_own() -> None:
    found = methods()
    names = [each.name for each in found]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)
    for family in FAMILIES:
        module = importlib.import_module(f"offmap.{family}")
        public = [getattr(module, name) for name in module.__all__]
        estimators = [each for each in public if issubclass(each, (Detector, OpenSetClassifier, EntityDetector))]
        assert [each.cls for each in found if each.family == family] == estimators
        assert estimators


def _exported(package: str) -> list[str]:
    return getattr(importlib.import_module(f"offmap.{package}"), "__all__", [])


def test_every_package_with_estimators_is_a_family() -> None:
    packages = [module.name for module in pkgutil.iter_modules(offmap.__path__) if module.ispkg]
    holding = [name for name in packages if any(each.endswith(("Detector", "Classifier")) for each in _exported(name))]
    assert sorted(holding) == sorted(FAMILIES)


@pytest.mark.parametrize("each", methods(), ids=lambda each: each.name)
def test_every_method_and_parameter_is_explained(each: offmap.catalog.Method) -> None:
    assert each.summary.endswith(".")
    parameters = each.parameters()
    assert sorted(parameter["parameter"] for parameter in parameters) == sorted(
        field.name for field in dataclasses.fields(each.cls)
    )
    for parameter in parameters:
        assert parameter["meaning"], f"{parameter['parameter']} of {each.cls.__name__} has no line in Args"
        assert parameter["default"] == repr(each.cls().get_params()[parameter["parameter"]])


def test_the_parameters_of_a_method_come_before_the_shared_ones() -> None:
    names = [parameter["parameter"] for parameter in method("vae").parameters()]
    assert names[0] == "likelihood"
    assert names[-9:-4] == ["alpha", "calibration", "folds", "confidence", "contamination"]
    assert names[-4:] == ["encoder", "image_shape", "random_state", "device"]
    meanings = {parameter["parameter"]: parameter["meaning"] for parameter in method("vae").parameters()}
    assert (
        meanings["alpha"]
        == "False-alarm rate that the threshold keeps. Lower it for fewer alarms; fewer novel rows are found then."
    )
    assert meanings["batch_size"] == "Rows per gradient step."
    assert "Reference" not in " ".join(meanings.values())


def test_a_meaning_that_a_class_gives_anew_is_taken_from_it() -> None:
    meanings = {parameter["parameter"]: parameter["meaning"] for parameter in method("msp").parameters()}
    assert "it may be 0" in meanings["calibration"]
    assert meanings["unknown_label"].endswith('or "unknown" among string labels.')


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vea", "there is no method 'vea'; did you mean 'vae'?"),
        ("zzzzzz", "there is no method 'zzzzzz'; known methods: .*vae"),
        ("", "there is no method ''; known methods: "),
    ],
)
def test_a_misspelt_method_gets_a_hint(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method(name)


@pytest.mark.parametrize("each", methods(), ids=lambda each: each.name)
def test_paths_lead_back_to_their_class(each: offmap.catalog.Method) -> None:
    assert public_path(each.cls) == f"offmap.{each.family}.{each.cls.__name__}"
    assert public_class(str(public_path(each.cls))) is each.cls


@pytest.mark.parametrize("cls", [RAS, FGAN, AmortisedSVGD, SoftQAgent, TextEncoder])
def test_what_is_no_method_but_saved_is_found_again(cls: type) -> None:
    assert public_class(str(public_path(cls))) is cls


ELSEWHERE = (
    "",
    "offmap",
    "os.system",
    "offmap.sampling.rl",
    "offmap.sampling.rl.evaluate",
    "offmap.data.load",
    "offmap.base.Detector",
    "other.density.VAEDetector",
)
INSIDE = ("", "VAE", "vae.VAE", "detector", "detector.VAEDetector", "__name__", "VAEDetector.fit")


@pytest.mark.parametrize("path", [*ELSEWHERE, "offmap.density", *(f"offmap.density.{name}" for name in INSIDE)])
def test_nothing_else_is_ever_looked_up(path: str) -> None:
    assert public_class(path) is None


def test_two_methods_of_one_name_are_refused() -> None:
    class MSPDetector(Detector):
        pass

    clash = [Method("msp", "openset", MSPClassifier), Method("msp", "density", MSPDetector)]
    with pytest.raises(ValueError, match="MSPClassifier and MSPDetector are both called 'msp'"):
        require_distinct(clash)


def test_a_clash_between_families_is_noticed_when_methods_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(density, "MSPDetector", Detector, raising=False)
    monkeypatch.setattr(density, "__all__", [*density.__all__, "MSPDetector"])
    with pytest.raises(ValueError, match="are both called 'msp'; rename one"):
        methods()
