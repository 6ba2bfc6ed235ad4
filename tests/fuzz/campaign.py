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
from pathlib import Path
from typing import Any

import torch

import offmap
from offmap import tensorfile
from tests.fuzz import inputs, models

SECONDS, BYTES = 5, 1 << 30


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
        folder = Path(name)
        paths = models.write_models(folder)
        wholes, contents, target = [path.read_bytes() for path in paths], models.contents(paths), folder / "case"
        for number in range(files):
            which, bits = draw.randrange(len(paths)), draw.random() < 0.3
            if bits:
                target.write_bytes(models.damaged(wholes[which], draw))
            else:
                tensorfile.write(target, models.edited(contents[which], draw))
            outcome = attempt(f"model file {number}", partial(models.try_model, target), failures)
            outcomes[f"{'damaged' if bits else 'edited'} model {outcome}"] += 1
        data, model = folder / "data", offmap.load(paths[4])
        data.mkdir()
        originals = [(path, path.read_bytes()) for path in inputs.write_files(data)]
        (folder / "cases").mkdir()
        for number in range(arrays):
            path, whole = draw.choice(originals)
            if draw.random() < 0.75:
                work, case = partial(inputs.try_file, path, whole, folder / "cases", draw), "data file"
            else:
                work, case = partial(inputs.try_array, model, draw), "array"
            outcomes[f"{case} {attempt(f'{case} {number} {path.name}', work, failures)}"] += 1
    seconds = round(time.monotonic() - started, 1)
    return {"outcomes": dict(sorted(outcomes.items())), "failures": failures, "seconds": seconds, "seed": seed}


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
