"""What the tests of the report are made of: tiny estimators, a reader of pages, sections to vary."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.calibration import Promise
from offmap.report import Examples, Report, Section
from offmap.report.page import render
from offmap.verdict import Verdict


@dataclass
class Distance:
    """Distance to the mean of the normal rows.

    This line is not part of the description.
    """

    alpha: float = 0.05
    image_shape: tuple[int, ...] | None = None
    calls: list[int] = field(default_factory=list)

    @property
    def promised_rate(self) -> float | None:
        return self.alpha

    def fit(self, X: NDArray[Any]) -> "Distance":
        """Learns the mean from one half of the rows and the threshold from the other."""
        self.mean_ = X[::2].mean(axis=0)
        self.history_: dict[str, list[float]] = {"loss": [3.0, 2.0, 1.5], "penalty": [0.5, 0.4, 0.3]}
        self.promise_ = Promise(alpha=self.alpha).fit(self._distance(X[1::2]))
        return self

    @property
    def threshold_(self) -> float:
        return self.promise_.threshold_

    @property
    def calibration_novelty_(self) -> NDArray[np.float64]:
        return self.promise_.calibration_novelty_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"alpha": self.alpha, "image_shape": self.image_shape}

    def assess(self, X: Any) -> Verdict:
        self.calls.append(len(X))
        novelty = self._distance(X)
        novel = self.promise_.novel(novelty)
        return Verdict(novelty=novelty, novel=novel, p_value=self.promise_.p_value(novelty), **self._labels(X, novel))

    def _labels(self, X: Any, novel: NDArray[np.bool_]) -> dict[str, Any]:
        return {}

    def _distance(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(np.linalg.norm(np.asarray(X) - self.mean_, axis=1))


class Classifier(Distance):
    """Names rows by the sign of their first feature."""

    def _labels(self, X: Any, novel: NDArray[np.bool_]) -> dict[str, Any]:
        named = np.where(np.asarray(X)[:, 0] < 0, "left", "right")
        return {"label": np.where(novel, "neither", named), "closest": named}


class Page(HTMLParser):
    """What a browser would see."""

    VOID = ("br", "hr", "img", "meta")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.cells: list[list[str]] = []
        self.words: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        elif tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.words.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def row(self, first: str) -> list[str]:
        """The first table row that starts with this cell."""
        return next(cells for cells in self.cells if cells and cells[0] == first)


def section(**changes: Any) -> Section:
    rng = np.random.default_rng(1)
    scores = {"normal_novelty": rng.normal(size=60), "novel_novelty": rng.normal(2, 1, size=30)}
    usual: dict[str, Any] = {"name": "method", "threshold": 1.5, "alpha": 0.05} | scores
    return Section(**usual | changes)


def examples(**changes: Any) -> Examples:
    usual: dict[str, Any] = {"title": "rows", "rows": ["one", "two"], "index": [0, 1], "novelty": np.array([2.0, 1.0])}
    return Examples(**usual | changes)


def page(*sections: Section, **report: Any) -> Page:
    return Page(render(Report(**{"title": "A run", "sections": sections} | report)))
