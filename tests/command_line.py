"""What a command of the command line left behind."""

import io
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd


class Result(NamedTuple):
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as JSON, without the words that JSON does not have."""

        def refuse(word: str) -> Any:
            raise ValueError(f"{word} is not JSON")

        return json.loads(self.out, parse_constant=refuse)

    @property
    def frame(self) -> pd.DataFrame:
        """Standard output as a table."""
        return pd.read_csv(io.StringIO(self.out))


Run = Callable[..., Result]
