"""Values survive writing and reading; damaged files are refused with one kind of error, without running code."""

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.torch import save_file

from offmap.tensorfile import TensorFileError, _digest, read, write

DTYPES = [np.dtype(name) for name in ("bool", "int64", "float64", "float32", "uint8", ">i4", "U3")]
arrays = st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0)))
words = st.lists(st.text(), max_size=4).map(lambda items: np.array(items, dtype=object))
numeric = arrays.filter(lambda array: array.dtype.kind != "U" and array.dtype.isnative)
tensors = numeric.map(lambda array: torch.from_numpy(array.copy()))
scalars = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    *(st.booleans().map(np.bool_), st.floats(width=32).map(np.float32), st.text().map(np.str_)),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
)
awkward = st.sampled_from(["a", "a.b", "0", "value", "$tuple"])
names = st.one_of(st.text(), st.integers(), awkward, st.tuples(st.integers()))
values = st.recursive(
    st.one_of(scalars, arrays, words, tensors),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(names, inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tensorfile") / "value.safetensors"


@settings(deadline=None, max_examples=150)
@given(values)
def test_nested_values_come_back_as_they_were(path: Path, value: Any) -> None:
    write(path, value)
    assert_same(read(path), value)


def assert_same(found: Any, expected: Any) -> None:
    expected = expected.item() if isinstance(expected, np.generic) else expected
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        assert_same(list(found.values()), list(expected.values()))
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, expected, strict=expected.dtype.isnative)
    elif isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype
        assert torch.equal(found.nan_to_num(nan=7.5), expected.nan_to_num(nan=7.5))
    else:
        assert found == expected or (found != found and expected != expected)


def test_tensors_that_are_views_or_share_memory_come_back_apart(path: Path) -> None:
    whole = torch.arange(24.0).reshape(2, 3, 4)
    views = {"whole": whole, "again": whole, "transposed": whole.transpose(0, 2), "every other": whole[..., ::2]}
    weight = torch.nn.Parameter(whole[0].expand(2, 3, 4))
    write(path, views | {"parameter": weight})
    found = read(path)
    for name, tensor in views.items():
        assert torch.equal(found[name], tensor)
    assert torch.equal(found["parameter"], weight)
    found["whole"].zero_()
    assert torch.equal(found["again"], whole)


def test_paths_that_look_alike_are_kept_apart(path: Path) -> None:
    value = {"a": {"b": torch.tensor(1), "b'": torch.tensor(2)}, "a.b": torch.tensor(3), 1: np.ones(1), "1": np.ones(2)}
    write(path, value)
    assert_same(read(path), value)


def test_what_was_read_does_not_change_with_the_file(path: Path) -> None:
    write(path, {"array": np.arange(1000.0), "tensor": torch.arange(1000)})
    found = read(path)
    with path.open("r+b") as stream:
        stream.write(bytes(path.stat().st_size))
    assert (found["array"] == np.arange(1000.0)).all()
    assert torch.equal(found["tensor"], torch.arange(1000))
    found["array"][0] = 5


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"settings": {"seed": np.random.RandomState(0)}}, "settings.seed is a RandomState, which cannot be saved"),
        ([1, {2, 3}], "1 is a set, which cannot be saved"),
        ({"labels": np.array([b"x"])}, r"labels is an array of \|S1, which cannot be saved"),
        ({"labels": np.array(["x", None])}, "labels is an array of object, which cannot be saved"),
        ({"wide": np.zeros(2, np.complex128)}, "wide is an array of complex128, which cannot be saved"),
        ({frozenset(): 1}, "is a frozenset, which cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_named_and_leaves_the_old_file(path: Path, value: Any, message: str) -> None:
    write(path, "old")
    with pytest.raises(TypeError, match=message):
        write(path, value)
    assert read(path) == "old"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent"):
        read(tmp_path / "absent")


@pytest.fixture
def whole(path: Path) -> bytes:
    write(path, {"weights": torch.arange(6.0).reshape(2, 3), "names": np.array(["a", "b"]), "steps": (1, 2)})
    return path.read_bytes()


def test_a_file_cut_at_any_length_is_refused(path: Path, whole: bytes) -> None:
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(TensorFileError, match="is not a whole safetensors file"):
            read(path)


def test_any_damaged_byte_is_refused_or_harmless(path: Path, whole: bytes) -> None:
    path.write_bytes(whole)
    intact, harmless = read(path), 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        try:
            assert_same(read(path), intact)
            harmless += 1
        except TensorFileError:
            pass
    # Only the spaces that fill up the header carry nothing.
    assert harmless <= 8


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_refused(path: Path, garbage: bytes) -> None:
    for content in (garbage, struct.pack("<Q", len(garbage)) + garbage):
        path.write_bytes(content)
        with pytest.raises(TensorFileError, match=r"not a whole safetensors file|not one that Offmap wrote"):
            read(path)


def test_a_foreign_safetensors_file_is_refused(path: Path) -> None:
    for metadata in (None, {"format": "pt"}):
        save_file({"weights": torch.ones(2)}, path, metadata=metadata)
        with pytest.raises(TensorFileError, match="is a safetensors file, but not one that Offmap wrote"):
            read(path)


def forge(path: Path, metadata: str, tensors: dict[str, torch.Tensor]) -> None:
    """A file with any content and the right checksum, as an attacker would write it."""
    save_file(tensors, path, metadata={"offmap": f"{_digest(metadata, tensors)} {metadata}"})


WEIGHTS = '{"$tensor": "weights", "shape": [2], "dtype": "torch.float32"}'


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (WEIGHTS.replace("[2]", "[3]"), r"'weights' as torch.float32 of shape \[2\], but .*\[3\] was expected"),
        (WEIGHTS.replace("float32", "float64"), "but torch.float64 of shape .* was expected"),
        (WEIGHTS.replace('"weights"', '"biases"'), "lacks the tensor 'biases'"),
        (WEIGHTS.replace('"weights"', "7"), "damaged metadata"),
        (WEIGHTS.replace('"weights"', "[]"), "damaged metadata"),
        (WEIGHTS.replace('"shape": [2], ', ""), "damaged metadata"),
        ("", "damaged metadata"),
        ("{", "damaged metadata"),
        ("[" * 100_000, "damaged metadata"),
        ("7" * 5000, "damaged metadata"),
        ('{"other": 1}', "damaged metadata"),
        ('{"$tuple": 1}', "damaged metadata"),
        ('{"$dict": [[1]]}', "damaged metadata"),
        ('{"$dict": [[[1], 2]]}', "damaged metadata"),
        ('{"$strings": ["a"], "shape": [1], "dtype": "f8"}', "an array of strings that is none"),
        ('{"$strings": [1], "shape": [1], "dtype": "O"}', "an array of strings that is none"),
        ('{"$strings": ["a"], "shape": [1], "dtype": "U100000000"}', "more than memory should hold"),
        ('{"$strings": ["a"], "shape": [2], "dtype": "U1"}', "damaged metadata"),
        ('{"$strings": [["a"], ["b", "c"]], "shape": [2], "dtype": "U1"}', "an array of strings that is none"),
    ],
)
def test_tampered_metadata_is_refused(path: Path, metadata: str, message: str) -> None:
    forge(path, metadata, {"weights": torch.ones(2)})
    with pytest.raises(TensorFileError, match=message) as refusal:
        read(path)
    assert str(path) in str(refusal.value)


def test_no_code_in_a_file_is_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "sprung",)

    for content in (pickle.dumps(Trap()), struct.pack("<Q", 2) + b"{}" + pickle.dumps(Trap())):
        (tmp_path / "trap").write_bytes(content)
        with pytest.raises(TensorFileError):
            read(tmp_path / "trap")
    torch.save(Trap(), tmp_path / "trap")
    with pytest.raises(TensorFileError):
        read(tmp_path / "trap")
    assert not (tmp_path / "sprung").exists()
    pickle.loads(pickle.dumps(Trap()))
    assert (tmp_path / "sprung").exists()


def test_a_file_that_is_cut_short_while_it_is_read_does_not_kill_the_process(path: Path) -> None:
    write(path, {"weights": torch.ones(100_000)})
    found = read(path)
    path.write_bytes(b"")
    assert float(found["weights"].sum()) == 100_000


def test_a_value_that_is_all_header_is_not_written(path: Path) -> None:
    path.unlink(missing_ok=True)
    with pytest.raises(TypeError, match="bytes beside its arrays"):
        write(path, ["x" * 1000] * 20_000)
    assert not path.exists()


def test_control_characters_of_a_file_do_not_reach_the_message(path: Path) -> None:
    forge(path, json.dumps({"$tensor": "\x1b[31m\u202e", "shape": [], "dtype": ""}), {})
    with pytest.raises(TensorFileError) as refusal:
        read(path)
    assert str(refusal.value).isprintable()


def test_the_same_value_gives_the_same_file(path: Path) -> None:
    found = set()
    for _ in range(20):
        write(path, {"weights": torch.ones(2), "name": "a"})
        found.add(path.read_bytes())
    assert len(found) == 1
