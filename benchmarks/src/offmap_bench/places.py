"""The files that the benchmarks read and write. None of them depends on the working directory."""

from pathlib import Path

# The folder ``benchmarks`` of the repository, and the repository itself.
HOME = Path(__file__).parents[2]
REPOSITORY = HOME.parent

RESULTS = HOME / "results"
FIGURES = REPOSITORY / "docs" / "figures"
PAGE = REPOSITORY / "docs" / "benchmarks.md"


def require_repository() -> None:
    """Raises a ``FileNotFoundError`` if the package was copied out of the repository that holds its results."""
    if not (HOME / "pyproject.toml").is_file():
        raise FileNotFoundError(
            f"the benchmarks keep their results in the repository, but {Path(__file__).parent} is a copy outside it: "
            "install them with pip install --editable ./benchmarks"
        )
