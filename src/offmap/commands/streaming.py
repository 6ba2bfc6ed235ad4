"""The part of ``offmap score`` that goes from files to files, in batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from offmap.commands.options import DATA_HELP
from offmap.outputs import SCORE_SUFFIXES

if TYPE_CHECKING:
    from offmap.data.roles import Roles
    from offmap.scale import Summary
    from offmap.workflow import Estimator

RowData = Annotated[
    str, typer.Argument(metavar="DATA", help=f"{DATA_HELP} A folder may also hold Parquet, CSV or TSV files.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a run that was interrupted.")]
EngineName = Annotated[
    Literal["threads", "ray"], typer.Option("--engine", help="The cores of this machine, or a Ray cluster.")
]
Workers = Annotated[int | None, typer.Option(help="Threads, or actors of Ray; one per core by default.", min=1)]
RayAddress = Annotated[
    str | None,
    typer.Option(help="A running Ray cluster, as host:6379; by default Ray is started on this machine."),
]


@dataclass(frozen=True, kw_only=True)
class Stream:
    """How files are scored in batches, as the options state it."""

    resume: bool
    engine: Literal["threads", "ray"]
    workers: int | None
    ray_address: str | None

    def serves(self, data: str, out: Path | None, whole: bool) -> bool:
        """Whether to go from files to files; an option that only this has is refused otherwise.

        Args:
            data: What the user named.
            out: Where the scores go.
            whole: Whether an option needs all rows at once.
        """
        from offmap.scale.sources import is_stream

        if is_stream(data) and out is not None and not whole:
            return True
        asked = [name for name, value in self._options(out).items() if value]
        if asked or (is_stream(data) and Path(data).is_dir()):
            raise ValueError(
                f"{' and '.join(asked) or f'the folder {data}'} needs files that are scored in batches: Parquet, CSV "
                "or TSV as DATA, --out, and none of --top, --explain, --known, --alpha auto and --new-entities add"
            )
        return False

    def _options(self, out: Path | None) -> dict[str, bool]:
        return {
            "--resume": self.resume,
            "--engine ray": self.engine == "ray",
            "--workers": self.workers is not None,
            "--ray-address": self.ray_address is not None,
            "a folder as --out": out is not None and out.suffix not in SCORE_SUFFIXES,
        }

    def run(
        self, model: "Estimator", data: str, out: Path, roles: "Roles", new_entities: Any, trusted: Sequence[str]
    ) -> "Summary":
        """Scores the files."""
        from offmap.scale import score_files

        return score_files(
            model,
            data,
            out,
            roles=roles,
            new_entities=new_entities,
            resume=self.resume,
            engine=self.engine,
            workers=self.workers,
            ray_address=self.ray_address,
            trusted=trusted,
        )
