"""The one error that callers may want to tell from a wrong argument."""


class WorkFailed(RuntimeError):
    """Work that was asked for properly and could not be finished, such as training that diverged."""
