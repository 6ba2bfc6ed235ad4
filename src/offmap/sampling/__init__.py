"""Drawing from a density known up to a constant, in one forward pass."""

__all__: list[str] = []
