"""The example method of CONTRIBUTING.md works, and so does the test that it shows."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from offmap import density

CONTRIBUTING = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_example_method_passes_the_example_test(monkeypatch: pytest.MonkeyPatch) -> None:
    method, test = re.findall(r"```python\n(.*?)```", CONTRIBUTING, re.DOTALL)
    module = ModuleType("offmap.density.centroid")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(method, "CONTRIBUTING.md", "exec"), vars(module))
    detector = module.CentroidDetector
    X = np.random.default_rng(0).normal(size=(500, 3))
    fitted = detector(random_state=0).fit(X)
    assert fitted.predict([[0.0, 0.1, -0.2], [30.0, 30.0, 30.0]]).tolist() == [1, -1]
    monkeypatch.setattr(density, "CentroidDetector", detector, raising=False)
    example: dict[str, object] = {"__name__": "test_centroid"}
    exec(compile(test, "CONTRIBUTING.md", "exec"), example)
    checks = [check for name, check in example.items() if name.startswith("test_") and callable(check)]
    assert len(checks) == 1
    checks[0]()
