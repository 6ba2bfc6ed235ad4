"""Runs damaged files and odd inputs within limits of time and memory: ``python -m tests.fuzz.campaign``."""

import argparse
import json
import random
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from offmap import tensorfile
from tests.fuzz import inputs, models, originals, worlds

SECONDS, BYTES = 5, 1 << 30
Case = tuple[str, Callable[[], str]]


@contextmanager
def limited_memory() -> Iterator[None]:
    """Lets the process grow by 1 GB; beyond that, memory is refused as on a machine that has no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def limited_time() -> Iterator[None]:
    """Stops what takes longer than five seconds of this process's own time."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"slower than {SECONDS} s")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def attempt(case: str, work: Callable[[], str], failures: list[dict[str, Any]]) -> str:
    """The outcome of one case; an error that is not documented is added to ``failures``."""
    try:
        with limited_time(), limited_memory():
            return work()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        failures.append({"case": case, "error": repr(error)[:300], "where": traceback.format_exc()[-1500:]})
        return "failed"


def run(files: int, arrays: int, seed: int) -> dict[str, Any]:
    """Runs the cases, which depend on ``seed`` alone, and returns the outcomes and failures."""
    draw, outcomes = random.Random(seed), Counter[str]()
    failures: list[dict[str, Any]] = []
    torch.set_num_threads(1)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case, work in chain(_model_cases(Path(name), files, draw), _input_cases(Path(name), arrays, draw)):
            kind, _, where = case.partition(":")
            outcomes[f"{kind} {attempt(f'{kind} {outcomes.total()}{where}', work, failures)}"] += 1
    seconds = round(time.monotonic() - started, 1)
    return {"outcomes": dict(sorted(outcomes.items())), "failures": failures, "seconds": seconds, "seed": seed}


def _model_cases(folder: Path, count: int, draw: random.Random) -> Iterator[Case]:
    """Damaged and edited model files, states of a monitor, and worlds."""
    paths, world = [*originals.write_models(folder), originals.write_monitor(folder)], originals.write_world(folder)
    wholes, contents, target = [path.read_bytes() for path in paths], models.contents(paths), folder / "case"
    for _ in range(count):
        which, kind = draw.randrange(len(paths)), draw.random()
        if kind < 0.05:
            yield "world:", partial(worlds.try_world, world, folder / "copy", draw)
            continue
        if kind < 0.3:
            target.write_bytes(models.damaged(wholes[which], draw))
        else:
            tensorfile.write(target, models.edited(contents[which], draw))
        name = contents[which].get("class", "monitor")
        attempted = models.try_monitor if name == "monitor" else models.try_model
        yield f"{'damaged' if kind < 0.3 else 'edited'} model: {name}", partial(attempted, target)


def _input_cases(folder: Path, count: int, draw: random.Random) -> Iterator[Case]:
    data, cases, model = folder / "data", folder / "cases", originals.classifier()
    data.mkdir()
    cases.mkdir()
    wholes = [(path, path.read_bytes()) for path in inputs.write_files(data)]
    for _ in range(count):
        path, whole = draw.choice(wholes)
        if draw.random() < 0.75:
            yield f"data file: {path.name}", partial(inputs.try_file, path, whole, cases, draw)
        else:
            yield "array:", partial(inputs.try_array, model, draw)


def main() -> None:
    """Runs a campaign and prints its outcome as JSON; fails if there was an error that no document mentions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = run(given.files, given.inputs, given.seed)
    print(json.dumps(found, indent=1))
    raise SystemExit(1 if found["failures"] else 0)


if __name__ == "__main__":
    main()
