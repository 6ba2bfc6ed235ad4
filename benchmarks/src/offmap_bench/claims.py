"""What a paper states, held against the stored results."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from offmap.arrays import FloatArray
from offmap_bench.samples import Sample, Samples, mean_sample
from offmap_bench.table import Table

Outcome = Literal["beaten", "reached", "not reached", "contradicted", "not run"]
# Without several seeds the noise of a result is not known: one percent of the paper's number counts as equal.
_EQUAL = 0.01


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement of a paper about one row of a table.

    Args:
        item: What is stated, in a few words.
        table: Name of the table.
        row: The row that it is stated of.
        metric: The metric.
        columns: The columns that are averaged; by default all of the table.
        above: A row of the same table that the paper finds worse. The claim is then about the order of the two rows.
        at_most: The paper shows a failure: the metric is no better than this number.
        at_least: The paper shows, or proposes, a success: the metric is no worse than this number.
        cause: Why it is not reached, in about ten words.
    """

    item: str
    table: str
    row: str
    metric: str
    columns: tuple[str, ...] = ()
    above: str | None = None
    at_most: float | None = None
    at_least: float | None = None
    cause: str = ""


class Finding(NamedTuple):
    """What the stored results say of a claim."""

    ours: str
    theirs: str
    seeds: int
    outcome: Outcome


def judge(claim: Claim, table: Table, samples: Samples) -> Finding:
    """Compares our mean with the paper's number, or with the row that the paper finds worse.

    The noise is the standard error of the mean over the seeds.
    """
    ours = _sample(claim, claim.row, table, samples)
    if not ours.values or ours.undefined:
        return Finding("", _printed(claim, ours), 0, "not run")
    scale = 100.0 if table.format(claim.metric).endswith("%") else 1.0
    values = scale * np.array(list(ours.values.values()))
    sign = 1.0 if table.higher_is_better.get(claim.metric, True) else -1.0
    if claim.above is not None:
        return _order(claim, table, samples, ours, scale, sign)
    mean = float(values.mean())
    if claim.at_most is not None or claim.at_least is not None:
        return Finding(_text(mean) + _mark(ours), _limit(claim, ours), len(values), _within(claim, sign, mean))
    theirs = _number(ours.printed)
    error, equal = _standard_error(values), _EQUAL * abs(theirs)
    if claim.metric in table.higher_is_better:
        outcome = _compared(sign * (mean - theirs), error, equal)
    else:
        # An estimate of a number is neither better nor worse than the paper's.
        outcome = "reached" if abs(mean - theirs) <= max(error, equal) else "not reached"
    return Finding(_text(mean) + _mark(ours), _text(theirs), len(values), outcome)


def _within(claim: Claim, sign: float, mean: float) -> Outcome:
    """Whether a failure or a success that the paper shows occurs."""
    if claim.at_most is not None:
        return "reached" if sign * (mean - claim.at_most) <= 0 else "contradicted"
    assert claim.at_least is not None
    return "reached" if sign * (mean - claim.at_least) >= 0 else "not reached"


def _limit(claim: Claim, ours: Sample) -> str:
    if claim.at_least is None:
        return _printed(claim, ours)
    return _printed(claim, ours) or f"at least {_text(claim.at_least)}"


def _sample(claim: Claim, row: str, table: Table, samples: Samples) -> Sample:
    columns = claim.columns or table.columns
    found = [samples[row, column, claim.metric] for column in columns]
    return found[0] if len(found) == 1 else mean_sample(found, ".10g")


def _order(claim: Claim, table: Table, samples: Samples, ours: Sample, scale: float, sign: float) -> Finding:
    """The paper finds one row above another; the difference is taken seed by seed."""
    assert claim.above is not None
    other = _sample(claim, claim.above, table, samples)
    shared = sorted(ours.values.keys() & other.values.keys())
    if not shared:
        return Finding("", f"above {claim.above}", 0, "not run")
    pairs = scale * np.array([(ours.values[seed], other.values[seed]) for seed in shared])
    gaps = sign * (pairs[:, 0] - pairs[:, 1])
    noise = max(2 * _standard_error(gaps), _EQUAL * abs(float(pairs[:, 1].mean())) / 10)
    gap = float(gaps.mean())
    outcome: Outcome = "reached" if gap > noise else "contradicted" if gap < -noise else "not reached"
    text = " against ".join(map(_text, pairs.mean(axis=0))) + (_mark(ours) or _mark(other))
    return Finding(text, f"above {claim.above}", len(shared), outcome)


def _mark(sample: Sample) -> str:
    return "†" if sample.stale else ""


def _compared(gap: float, error: float, equal: float) -> Outcome:
    """Beaten by more than two standard errors; reached up to one below. Noise must not pass for success."""
    if gap > max(2 * error, equal):
        return "beaten"
    return "reached" if gap >= -max(error, equal) else "not reached"


def _standard_error(values: FloatArray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _number(printed: float | str | None) -> float:
    if printed is None:
        raise ValueError("a claim about a number needs the paper's number in 'printed' of the table")
    return float(str(printed).partition("±")[0])


def _printed(claim: Claim, ours: Sample) -> str:
    if claim.above is not None:
        return f"above {claim.above}"
    return "" if ours.printed is None else _text(_number(ours.printed))


def _text(value: float) -> str:
    """A number in a few digits, without an exponent.

    Example:
        >>> _text(83.9312), _text(4.04), _text(0.00663), _text(6550.0)
        ('83.9', '4.04', '0.0066', '6550')
    """
    size = abs(value)
    return (
        f"{value:.0f}"
        if size >= 1000
        else f"{value:.1f}"
        if size >= 10
        else f"{value:.2f}"
        if size >= 1
        else f"{value:.2g}"
    )
