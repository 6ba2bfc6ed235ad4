"""Scores tables that do not fit in memory, from files to files or one part at a time."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal

import pandas as pd

from offmap.data.roles import Roles
from offmap.outputs import require_scores_out
from offmap.parameters import Count, require
from offmap.progress import bar, is_shown
from offmap.scale.job import Job, Paths, plan_job
from offmap.scale.parts import BEGINNING, Position, count_rows
from offmap.scale.results import Results
from offmap.scale.threads import Scored, available_cores, score_in_threads
from offmap.workflow import Estimator, NewEntities

Engine = Literal["threads", "ray"]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What was written.

    Args:
        out: The file or folder that was written.
        rows: Number of rows in it.
        novel: How many of them are novel.
        read: How many rows were read.
        new: How many of these are of entities that the model does not know, written or skipped.
    """

    out: Path
    rows: int
    novel: int
    read: int
    new: int


def score_files(
    model: Estimator | str | os.PathLike[str],
    source: Paths,
    out: str | os.PathLike[str],
    *,
    roles: Roles | None = None,
    new_entities: NewEntities = "flag",
    resume: bool = False,
    engine: Engine = "threads",
    workers: int | None = None,
    ray_address: str | None = None,
    part_rows: int | None = None,
    trusted: Sequence[str] = (),
) -> Summary:
    """Scores the rows of files in batches and writes the scores in batches; the memory does not grow with the rows.

    The scores are those of the same rows in memory, to the byte, whatever the engine. Rows are scored in parts. The
    written parts lie in the folder ``out`` or, if ``out`` is one file, in the folder ``out.parts`` until all is done.
    A run that is killed loses the parts that it was working on, and no others.

    Args:
        model: A fitted model, or the file of one.
        source: A Parquet, CSV or TSV file, a folder of them, or a list of files. Folders called ``year=2025`` give a
            column ``year``.
        out: A .parquet, .csv or .jsonl file, or a folder, which gets one Parquet file per part.
        roles: What the columns are for; by default as in training. Columns in ``id`` and ``keep`` are carried through.
        new_entities: What to do with rows of entities that the model does not know: "flag", "skip" or "error".
        resume: Whether to continue a run that was interrupted, if there is one.
        engine: "threads" for the cores of this machine, "ray" for a Ray cluster (the extra ``ray``).
        workers: Threads, or actors of Ray; by default one per core.
        ray_address: Address of a running Ray cluster; by default Ray is started on this machine.
        part_rows: Rows of a part. Make it smaller if a row takes long to score, so that a kill costs less.
        trusted: What the file of the model may use beyond itself, as in ``offmap.load``.

    Raises:
        ValueError: A file cannot be read, or lacks a column; the message names it. What was written can be resumed.
        WorkFailed: The scores could not be written, as on a full disk; what was written can be resumed.

    Example:
        >>> import tempfile, numpy as np
        >>> from offmap.density import MahalanobisDetector
        >>> rng = np.random.default_rng(0)
        >>> train, new = (pd.DataFrame(rng.normal(size=(n, 2)), columns=["u", "v"]) for n in (200, 50))
        >>> model = MahalanobisDetector(random_state=0).fit(train)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     new.to_parquet(f"{folder}/new.parquet")
        ...     summary = score_files(model, f"{folder}/new.parquet", f"{folder}/scores.parquet")
        ...     scores = pd.read_parquet(f"{folder}/scores.parquet")
        >>> summary.rows, bool((scores["novelty"] == model.novelty(new)).all())
        (50, True)
    """
    path = Path(out)
    require_scores_out(path)
    _require_apart(path, source)
    job = plan_job(model, source, roles, new_entities, part_rows, trusted)
    results = Results(path, job.reading.schema, job.identity())
    with results.opened(resume):
        start = results.journal.position(job.source)
        with closing(_scored(job, start, engine, workers, ray_address)) as scored, _progress(job, start) as advance:
            try:
                for part, table in scored:
                    results.write(part, table)
                    advance(part.rows)
            except ValueError as error:
                if not results.journal.done:
                    raise
                # To mend a file changes it, and its scored rows are then those of another file.
                raise ValueError(f"{error}; {results.how_to_go_on()} unless a file with scored rows changes") from error
    done = results.journal.done
    return Summary(
        out=path,
        rows=sum(each.scored for each in done),
        novel=sum(each.novel for each in done),
        read=sum(each.rows for each in done),
        new=sum(each.new for each in done),
    )


def score_batches(
    model: Estimator | str | os.PathLike[str],
    source: Paths,
    *,
    roles: Roles | None = None,
    new_entities: NewEntities = "flag",
    workers: int | None = None,
    part_rows: int | None = None,
) -> Iterator[pd.DataFrame]:
    """Yields the scores of files as one table per part, in the order of the rows; few parts are held at once.

    Args:
        model: A fitted model, or the file of one.
        source: A Parquet, CSV or TSV file, a folder of them, or a list of files.
        roles: What the columns are for; by default as in training. Columns in ``id`` and ``keep`` are carried through.
        new_entities: What to do with rows of entities that the model does not know: "flag", "skip" or "error".
        workers: Threads; by default one per core.
        part_rows: Rows of a part.

    Example:
        >>> import tempfile, numpy as np
        >>> from offmap.density import MahalanobisDetector
        >>> frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["u", "v"])
        >>> model = MahalanobisDetector(random_state=0).fit(frame)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     frame.to_csv(f"{folder}/rows.csv", index=False)
        ...     [len(part) for part in score_batches(model, f"{folder}/rows.csv", part_rows=80)]
        [80, 80, 40]
    """
    job = plan_job(model, source, roles, new_entities, part_rows)
    with closing(_scored(job, BEGINNING, "threads", workers, None)) as scored:
        for _, table in scored:
            yield table.to_pandas()


def _require_apart(out: Path, source: Paths) -> None:
    """Refuses to write over what is read, or into a folder that is read: a resumed run would take scores for data."""
    target = out.resolve()
    for given in [source] if isinstance(source, str | os.PathLike) else source:
        read = Path(given).resolve()
        if target == read:
            raise ValueError(f"cannot write {out}: it is read as well; name another place")
        if target.is_relative_to(read):
            raise ValueError(f"{out} lies in the folder {os.fspath(given)}, which is read; name another place")
        if read.is_relative_to(target):
            raise ValueError(f"cannot write to {out}: {os.fspath(given)} lies in it and is read; name another place")


@contextmanager
def _progress(job: Job, start: Position) -> Iterator[Callable[[int], None]]:
    """Shows a bar with rows per second and the time that is left; yields what advances it."""
    total = count_rows(job.source) - start.before if is_shown() else 0
    begun, done = perf_counter(), 0
    with bar("rows", total=total) as shown:

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            shown.advance(rows, note=f"{done / (perf_counter() - begun):,.0f} rows/s")

        yield advance


def _scored(
    job: Job, start: Position, engine: Engine, workers: int | None, address: str | None
) -> Generator[Scored, None, None]:
    if workers is not None:
        require("workers", workers, Count)
    if engine == "ray":
        from offmap.scale.ray_engine import score_with_ray

        return score_with_ray(job, start, workers, address)
    if engine != "threads":
        raise ValueError(f'engine must be "threads" or "ray"; got {engine!r}')
    if address is not None:
        raise ValueError('ray_address needs engine="ray"')
    return score_in_threads(job.model, job.reading, job.parts(start), workers or available_cores())
