"""The type that holds the values of columns of several Arrow types without changing any."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.types as kinds

__all__ = ["common_type", "number_types"]


def common_type(types: Iterable[pa.DataType]) -> pa.DataType | None:
    """The type of all columns together; None if values would change, or if it takes the values to tell.

    Columns without a type take that of the others. Numbers, truth values and times become texts beside texts.

    Example:
        >>> common_type([pa.int8(), pa.int64()]), common_type([pa.int64(), pa.string()])
        (DataType(int64), DataType(string))
        >>> common_type([pa.bool_(), pa.int64()]) is None
        True
    """
    distinct = list(dict.fromkeys(kind for kind in types if not kinds.is_null(kind)))
    if len(distinct) < 2:
        return distinct[0] if distinct else pa.null()
    plain = [kind.value_type if kinds.is_dictionary(kind) else kind for kind in distinct]
    if any(map(_is_text, plain)):
        return pa.string() if all(_is_text(kind) or _has_one_text(kind) for kind in plain) else None
    if all(kinds.is_timestamp(kind) and kind.tz for kind in plain):
        plain = [pa.timestamp(kind.unit, "UTC") for kind in plain]
    return None if number_types(plain) else _widest(plain)


def number_types(types: Sequence[pa.DataType]) -> tuple[pa.DataType, ...]:
    """Types that may hold numbers of types that none holds for sure, such as integers and floats; the best first.

    Example:
        >>> number_types([pa.int32(), pa.float64()])
        (DataType(int64), DataType(uint64), DataType(double))
    """
    signed, unsigned, floating = (
        any(map(test, types)) for test in (kinds.is_signed_integer, kinds.is_unsigned_integer, kinds.is_floating)
    )
    only_numbers = all(kinds.is_integer(kind) or kinds.is_floating(kind) for kind in types)
    unsure = (floating and (signed or unsigned)) or (signed and pa.uint64() in types)
    return (pa.int64(), pa.uint64(), pa.float64()) if only_numbers and unsure else ()


def _is_text(kind: pa.DataType) -> bool:
    return kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind)


def _has_one_text(kind: pa.DataType) -> bool:
    return kinds.is_primitive(kind) or kinds.is_decimal(kind)


def _widest(types: Sequence[pa.DataType]) -> pa.DataType | None:
    if any(map(kinds.is_decimal, types)) and any(map(kinds.is_floating, types)):
        return None
    try:
        schemas = [pa.schema([pa.field("column", kind)]) for kind in types]
        return pa.unify_schemas(schemas, promote_options="permissive").field("column").type
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None
