"""Numbers for Prometheus: what was scored, how novel it was, whether the stream drifts, and what waits for review."""

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from offmap.loop import OpenWorld
from offmap.loop.state import LIVE
from offmap.monitor import DriftMonitor
from offmap.service.models import Loaded
from offmap.verdict import Verdict

_BOUNDS = np.array([0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
# Rows after which the martingale starts anew: its memory and time grow with them.
_WINDOW = 10_000
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counts for one service, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._streams = Streams()
        self._registry.register(self._streams)
        ProcessCollector(registry=self._registry)
        self._rows = Counter("offmap_rows_scored", "Rows that were scored.", ["model"], registry=self._registry)
        self._rejected = Counter(
            "offmap_rows_rejected", "Rows that were called novel.", ["model"], registry=self._registry
        )
        self._seconds = Histogram(
            "offmap_score_duration_seconds",
            "Time to score a batch.",
            ["model"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._groups = Gauge("offmap_review_groups", "Groups of a world.", ["world", "status"], registry=self._registry)
        self._info = Gauge(
            "offmap_model_info", "The version in use.", ["model", "version", "method"], registry=self._registry
        )

    def scored(self, loaded: Loaded, verdict: Verdict, seconds: float) -> None:
        """Counts rows that were scored."""
        self._rows.labels(loaded.name).inc(len(verdict))
        self._rejected.labels(loaded.name).inc(int(verdict.novel.sum()))
        self._seconds.labels(loaded.name).observe(seconds)
        self._streams.add(loaded, verdict)

    def used(self, loaded: Loaded | None, before: Loaded | None = None) -> None:
        """Says which version is in use, if one is."""
        if before is not None:
            self._info.remove(before.name, before.version, before.method)
        if loaded is not None:
            self._info.labels(loaded.name, loaded.version, loaded.method).set(1)

    def reviewed(self, name: str, world: OpenWorld) -> None:
        """Counts the groups of a world."""
        found = [group.status for group in world.state.groups.values() if group.rows]
        for status in (*LIVE, "learnt"):
            self._groups.labels(name, status).set(found.count(status))

    def text(self) -> bytes:
        """Everything in the text format of Prometheus."""
        return generate_latest(self._registry)


class Streams(Collector):
    """P-values and drift of each model, from arrays: one call per row would take longer than to score it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: dict[str, _Stream] = {}

    def add(self, loaded: Loaded, verdict: Verdict) -> None:
        """Takes a batch."""
        with self._lock:
            stream = self._streams.setdefault(loaded.name, _Stream())
            stream.add(loaded, verdict)

    def collect(self) -> Iterable[Metric]:
        """P-values as a histogram, and the logarithm of the martingale."""
        p_values = HistogramMetricFamily("offmap_p_value", "P-values of the rows that were scored.", labels=["model"])
        capital = GaugeMetricFamily(
            "offmap_log_martingale",
            f"Natural logarithm of the capital that bets on drift, over up to {_WINDOW:,} rows; 4.6 is an alarm.",
            labels=["model"],
        )
        with self._lock:
            for name, stream in self._streams.items():
                p_values.add_metric([name], stream.buckets(), stream.total)
                if (value := stream.log_capital()) is not None:
                    capital.add_metric([name], value)
        return [p_values, capital]

    def describe(self) -> Iterable[Metric]:
        """Nothing: what there is depends on what was scored."""
        return []


class _Stream:
    """What one model was shown. Novelties wait until somebody asks for the martingale."""

    def __init__(self) -> None:
        self.counts, self.total = np.zeros(len(_BOUNDS), dtype=np.int64), 0.0
        self._source: Loaded | None = None
        self._monitor: DriftMonitor | None = None
        self._waiting: list[Any] = []
        self._held = 0

    def add(self, loaded: Loaded, verdict: Verdict) -> None:
        if verdict.p_value is None:
            return
        known = verdict.p_value[np.isfinite(verdict.p_value)]
        self.counts += np.bincount(np.searchsorted(_BOUNDS, known), minlength=len(_BOUNDS))[: len(_BOUNDS)]
        self.total += float(known.sum())
        if loaded is not self._source:
            self._source, self._monitor, self._waiting, self._held = loaded, None, [], 0
        if self._held < _WINDOW:
            self._waiting.append(verdict.novelty[np.isfinite(verdict.novelty)])
            self._held += len(verdict)

    def buckets(self) -> list[tuple[str, float]]:
        upto = np.cumsum(self.counts).tolist()
        return [*((f"{bound:g}", count) for bound, count in zip(_BOUNDS, upto, strict=True)), ("+Inf", upto[-1])]

    def log_capital(self) -> float | None:
        if self._source is None:
            return None
        if self._monitor is None or self._monitor.drift.rows >= _WINDOW:
            self._monitor = DriftMonitor(random_state=0).fit(self._source.model.calibration_novelty_)
        drift = self._monitor.update(np.concatenate([np.empty(0), *self._waiting]))
        self._waiting, self._held = [], 0
        return drift.log_capital
