"""Values as JSON has them: files of lines, the command line and explanations write the same value alike."""

import math
from collections.abc import Mapping
from typing import Any


def json_value(value: Any) -> Any:
    """A value in the words of JSON: a number that is not finite becomes null, a set a list, and a date a text.

    Example:
        >>> json_value({"threshold": math.inf, "rows": (1, 2.5), 3: frozenset({"b", "a"})})
        {'threshold': None, 'rows': [1, 2.5], '3': ['a', 'b']}
    """
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {str(name): json_value(item) for name, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(map(json_value, value), key=str)
    return list(map(json_value, value)) if isinstance(value, list | tuple) else str(value)
