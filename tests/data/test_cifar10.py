"""The forms in which CIFAR-10 comes, made here from random images."""

import functools
import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lit_byz.data import CIFAR10, SourceFailed

LABELS = np.random.default_rng(0).integers(0, 10, 10_000)
IMAGES = np.random.default_rng(1).integers(0, 256, (10_000, 3, 32, 32), np.uint8)


@functools.cache
def binary() -> bytes:
    return b"".join(
        bytes([label]) + image.tobytes() for label, image in zip(LABELS, IMAGES, strict=True)
    )


def text(value: bytes) -> bytes:
    """A string as Python 2 pickled it."""
    return b"T" + struct.pack("<i", len(value)) + value


def python2_pickle() -> bytes:
    """The published form: a dict pickled by Python 2, its array by NumPy 1."""
    dtype = b"cnumpy\ndtype\n(" + text(b"u1") + b"K\x00K\x01tR(K\x03" + text(b"|")
    dtype += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + text(b"b") + b"tR"
    array += b"(K\x01(M" + struct.pack("<H", 10_000) + b"M" + struct.pack("<H", 3072) + b"t"
    array += dtype + b"\x89" + text(IMAGES.tobytes()) + b"tb"
    labels = b"](" + b"".join(b"K" + bytes([label]) for label in LABELS) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + labels + b"u."


@functools.cache
def sheet() -> bytes:
    rows = IMAGES.reshape(10_000, 3, 1024).transpose(0, 2, 1)
    content = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(rows)).save(content, "PNG", compress_level=0)
    return content.getvalue()


def write_sheet(folder: Path, name: str, start: int) -> None:
    (folder / f"{name}.png").write_bytes(sheet())
    part = "test" if name == "test_batch" else "train"
    every = np.zeros(start + 10_000, int)
    every[start:] = LABELS
    (folder / f"{part}_lables.json").write_text(json.dumps(every.tolist()))


def test_binary_version(tmp_path: Path) -> None:
    (tmp_path / "test_batch.bin").write_bytes(binary())
    assert CIFAR10().find(tmp_path, "test_batch.bin") == binary()
    assert CIFAR10().find(tmp_path, "data_batch_1.bin") is None


def test_python_version(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py" / "data_batch_2").write_bytes(python2_pickle())
    assert CIFAR10().find(tmp_path, "data_batch_2.bin") == binary()


@pytest.mark.parametrize(
    ("name", "start"), [("data_batch_1", 0), ("data_batch_3", 20_000), ("test_batch", 0)]
)
def test_sheets_of_one_image_per_row(tmp_path: Path, name: str, start: int) -> None:
    write_sheet(tmp_path, name, start)
    assert CIFAR10().find(tmp_path, f"{name}.bin") == binary()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"cos\nsystem\n(S'true'\ntR.", "it asks for os.system"),
        (b"cbuiltins\neval\n(S'1'\ntR.", "it asks for builtins.eval"),
        (b"\x80\x02}.", "cannot be read"),
        (b"", "cannot be read"),
    ],
)
def test_a_pickle_can_hold_arrays_and_nothing_else(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "test_batch").write_bytes(content)
    with pytest.raises(SourceFailed, match=reason):
        CIFAR10().find(tmp_path, "test_batch.bin")


def test_decoding_keeps_the_order_of_the_batches() -> None:
    content = binary()
    records = np.frombuffer(content, np.uint8).reshape(10_000, -1)
    contents = {f"data_batch_{i}.bin": np.roll(records, i, axis=0).tobytes() for i in range(1, 6)}
    raw = CIFAR10().decode({**contents, "test_batch.bin": content})
    assert raw.train_images.shape == (50_000, 3, 32, 32)
    np.testing.assert_array_equal(raw.test_images, IMAGES)
    np.testing.assert_array_equal(raw.test_labels, LABELS)
    for i in range(5):
        part = slice(i * 10_000, (i + 1) * 10_000)
        np.testing.assert_array_equal(raw.train_labels[part], np.roll(LABELS, i + 1))
    np.testing.assert_array_equal(raw.train_images[20_000:30_000], np.roll(IMAGES, 3, axis=0))
