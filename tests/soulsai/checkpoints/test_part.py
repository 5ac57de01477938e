"""Parts of checkpoints: what goes into the file comes out of it, bit for bit."""

import numpy as np
import pytest
import torch

from soulsai.checkpoints.part import part_from_bytes, part_to_bytes
from soulsgym.errors import MisuseError


def arrays(data):
    return {name: tensor.numpy() for name, tensor in part_from_bytes(data).items()}


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_arrays_come_back_exactly(dtype, shape):
    array = np.arange(6).astype(dtype)[: int(np.prod(shape))].reshape(shape)
    back = arrays(part_to_bytes({"x": array}))["x"]
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, shape, array.tobytes())


def test_extreme_numbers():
    values = {"big": np.array([2**64 - 1], np.uint64), "odd": np.array([np.nan, -0.0, np.inf, 5e-324])}
    back = arrays(part_to_bytes(values))
    assert back["big"][0] == 2**64 - 1
    assert back["odd"].tobytes() == values["odd"].tobytes()


def test_tensors_of_torch_only_kinds_come_back():
    tensor = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    assert torch.equal(part_from_bytes(part_to_bytes({"x": tensor}))["x"], tensor)


def test_views_of_one_tensor_and_gradients():
    flat = torch.arange(6.0, requires_grad=True)
    values = {"all": flat, "first": flat[:2], "turned": flat.reshape(2, 3).T, "again": flat}
    back = part_from_bytes(part_to_bytes(values))
    assert torch.equal(back["turned"], torch.tensor([[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]))
    assert torch.equal(back["first"], torch.tensor([0.0, 1.0]))
    assert not back["all"].requires_grad


def test_strided_and_read_only_arrays():
    array = np.arange(10)[::-2]
    array.setflags(write=False)
    back = arrays(part_to_bytes({"x": array}))["x"]
    assert back.tolist() == [9, 7, 5, 3, 1]


def test_objects_records_and_plain_numbers_are_refused():
    for value, words in (
        (np.array([None]), "dtype object"),
        (np.array(["text"]), "uint8 view"),
        (np.array([1j]), "uint8 view"),
        (np.array([1.0], ">f4"), "uint8 view"),
        (np.zeros(2, [("a", "i4")]), "uint8 view"),
        (3.0, "is a float"),
    ):
        with pytest.raises(MisuseError, match=words):
            part_to_bytes({"x": value})


@pytest.mark.parametrize("data", [b"", b"abc", b"\xff" * 64, b"\x80\x04K\x01." * 9])
def test_anything_else_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"."):
        part_from_bytes(data)
