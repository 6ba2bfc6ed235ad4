"""The dashboard: the rate of rejections, the p-values, drift, and what each version learnt."""

from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import MaxNLocator

from offmap.arrays import FloatArray
from offmap.loop.promise import Calibration
from offmap.loop.state import Label, Row
from offmap.loop.timeline import Stream
from offmap.loop.views import sentence
from offmap.service.review.charts import Chart, Frame, Shape
from offmap.service.review.desk import Desk
from offmap.service.review.sentences import listed, new_classes

_BLOCKS, _SMALLEST_BLOCK, _BINS, _POINTS, _LATEST = 40, 20, 20, 400, 12


@dataclass(frozen=True)
class VersionLine:
    """One version of the model, as a line of a table."""

    number: int
    in_use: bool
    classes: int
    new: str
    promise: str


def novelty_chart(desk: Desk, alpha: float) -> Chart | None:
    """The share of rows that was rejected, block by block, with the promised rate of false alarms."""
    seen = desk.stream()
    if not len(seen.novel):
        return None
    ends, rates = block_rates(seen)
    frame = Frame((0, len(seen.novel)), (0, _nice_top(max(100 * rates.max(), 200 * alpha))))
    changes = np.flatnonzero(np.diff(seen.version)) + 1
    shapes = [Shape("rule", frame.upright(float(place))) for place in changes]
    shapes += [Shape("limit", frame.level(100 * alpha)), Shape("curve", frame.line(ends, 100 * rates))]
    keys = [("curve", "rejected rows"), ("limit", f"promised for known classes: {alpha:.1%}")]
    keys += [("rule", "new version")] if len(changes) else []
    description = (
        f"{100 * seen.novel.mean():.1f}% of {len(seen.novel):,} rows rejected; {100 * rates[-1]:.1f}% of the last ones"
    )
    return _chart("Rejected rows over the stream (%)", description, shapes, frame, "rows observed", keys)


def block_rates(seen: Stream) -> tuple[FloatArray, FloatArray]:
    """The middle of each block of rows, and the share of it that was rejected."""
    size = max(_SMALLEST_BLOCK, -(-len(seen.novel) // _BLOCKS))
    starts = np.arange(0, len(seen.novel), size)
    counts = np.diff([*starts, len(seen.novel)])
    return starts + counts / 2, np.add.reduceat(seen.novel.astype(float), starts) / counts


def p_value_chart(desk: Desk, alpha: float) -> Chart | None:
    """The p-values of the rows that the version in use assessed as they came."""
    found = desk.stream().of_version(desk.world.state.version).p_value
    found = found[np.isfinite(found)]
    if not len(found):
        return None
    edges = np.linspace(0, 1, _BINS + 1)
    share = 100 * np.histogram(found, edges)[0] / len(found)
    frame = Frame((0, 1), (0, _nice_top(max(share.max(), 2 * 100 / _BINS))))
    shapes = [
        Shape("bars", frame.bars(edges, share)),
        Shape("even", frame.level(100 / _BINS)),
        Shape("limit", frame.upright(alpha)),
    ]
    keys = [
        ("bars", "rows of the stream"),
        ("even", "known classes alone would give this"),
        ("limit", f"rejected up to {alpha:g}"),
    ]
    description = f"{100 * (found <= alpha).mean():.1f}% of {len(found):,} p-values are at most {alpha:g}"
    return _chart("p-values since the last version (% of rows)", description, shapes, frame, "p-value", keys)


def drift_chart(desk: Desk) -> Chart | None:
    """The capital of the martingale that bets against an unchanged stream."""
    monitor = desk.drift()
    if monitor is None or not len(monitor.path_):
        return None
    level, path = float(np.log(monitor.level)), monitor.path_
    shown = np.unique(np.linspace(0, len(path) - 1, min(len(path), _POINTS)).astype(int))
    bottom, top = min(float(path.min()), -1.0), max(float(path.max()), level) * 1.1
    frame = Frame((0, len(path)), (bottom, top))
    shapes = [Shape("limit", frame.level(level)), Shape("curve", frame.line(shown + 1.0, path[shown]))]
    keys = [("curve", "evidence of change (log capital)"), ("limit", f"alarm at {level:.1f}")]
    if monitor.drift.since is not None:
        shapes.append(Shape("rule", frame.upright(monitor.drift.since)))
        keys.append(("rule", "change began"))
    title = "Drift since the last version"
    return _chart(title, str(monitor.drift), shapes, frame, "rows since the last version", keys)


def version_lines(desk: Desk) -> list[VersionLine]:
    """Every version, the newest first, with what it learnt and what it promises."""
    state = desk.world.state
    return [
        VersionLine(
            number=number,
            in_use=number == state.version,
            classes=len(version.classes),
            new=listed(new_classes(desk.world, number)) or "no new class",
            promise=sentence(Calibration(**version.calibration), None),
        )
        for number, version in sorted(state.versions.items(), reverse=True)
    ]


def latest_rows(desk: Desk) -> list[tuple[Row, Label | None]]:
    """The rows that came last, the last first, and the class as which each was learnt."""
    state = desk.world.state
    return [(state.rows[number], state.taught.get(number)) for number in list(state.rows)[: -_LATEST - 1 : -1]]


def _chart(
    title: str, description: str, shapes: list[Shape], frame: Frame, x_label: str, keys: list[tuple[str, str]]
) -> Chart:
    across, down = (_round_numbers(*ends) for ends in (frame.x, frame.y))
    ticks = frame.x_ticks(across, [f"{value:,g}" for value in across]), frame.y_ticks(down, [f"{v:g}" for v in down])
    return Chart(title, description, tuple(shapes), *ticks, x_label, tuple(keys))


def _round_numbers(low: float, high: float) -> list[float]:
    return [float(value) for value in MaxNLocator(4).tick_values(low, high) if low <= value <= high]


def _nice_top(value: float) -> float:
    return float(MaxNLocator(4).tick_values(0, max(value, 1e-9))[-1])
