import pickle
import struct
import zipfile

import numpy as np
import pytest

from tensortriage.errors import DataError
from tensortriage.inputs.files.npy import open_npy, open_npz


def refused(call, *args, slug):
    with pytest.raises(DataError) as caught:
        call(*args)
    assert caught.value.slug == slug
    assert caught.value.cure
    return caught.value.message


def load_npz(path):
    return {name: stored.load() for name, stored in open_npz(path, str(path)).items()}


ARRAYS = {
    "plain": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a/b:0": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    "scalar": np.array(3, np.int64),
    "empty": np.zeros((0, 3), np.float16),
    "words": np.array([["ab", "c"]]),
    "big_endian": np.arange(3, dtype=">i4"),
    "flags": np.array([True, False]),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_come_back_as_they_were(tmp_path, save):
    save(tmp_path / "f.npz", **ARRAYS)
    loaded = load_npz(tmp_path / "f.npz")
    assert list(loaded) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(loaded[name], array, strict=True)


@pytest.mark.parametrize("name", ARRAYS)
def test_single_arrays_come_back_as_they_were(tmp_path, name):
    path = tmp_path / "x.npy"
    np.save(path, ARRAYS[name])
    np.testing.assert_array_equal(open_npy(path).load(), ARRAYS[name], strict=True)


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_arrays_are_mapped_not_read(tmp_path, order):
    array = np.arange(600_000, dtype=np.float32).reshape(600, 1000)
    np.save(tmp_path / "x.npy", np.asarray(array, order=order))
    loaded = open_npy(tmp_path / "x.npy").load()
    assert isinstance(loaded, np.memmap)
    np.testing.assert_array_equal(loaded, array)


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_a_member_are_read_one_by_one(tmp_path, order):
    array = np.asarray(np.arange(24.0).reshape(4, 3, 2), order=order)
    np.savez_compressed(tmp_path / "f.npz", x=array, y=array + 1)
    stored = open_npz(tmp_path / "f.npz", "f.npz")
    rows = list(zip(stored["x"].rows(), stored["y"].rows(), strict=True))
    np.testing.assert_array_equal([x for x, _ in rows], array)
    np.testing.assert_array_equal([y for _, y in rows], array + 1)


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('unpickled')",))


def test_pickles_are_never_loaded(tmp_path):
    np.savez(tmp_path / "f.npz", x=np.array([Bomb()], dtype=object))
    np.save(tmp_path / "f.npy", np.array([Bomb()], dtype=object))
    assert "'x'" in refused(load_npz, tmp_path / "f.npz", slug="npy-pickled")
    refused(open_npy, tmp_path / "f.npy", slug="npy-pickled")
    (tmp_path / "p.npy").write_bytes(pickle.dumps(Bomb()))
    refused(open_npy, tmp_path / "p.npy", slug="npy-unreadable")


@pytest.mark.parametrize("keep", [0, 5, 20, 100, 140])
def test_truncated_arrays_are_refused(tmp_path, keep):
    np.save(tmp_path / "x.npy", np.arange(10.0))
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:keep])
    refused(open_npy, tmp_path / "x.npy", slug="npy-unreadable")


def test_a_header_that_claims_more_than_there_is_allocates_nothing(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000000,), }"
    header = header.ljust(117) + b"\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)
    (tmp_path / "x.npy").write_bytes(data)
    assert "32000000000000 bytes" in refused(open_npy, tmp_path / "x.npy", slug="npy-unreadable")
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", data)
    refused(load_npz, tmp_path / "x.npz", slug="npy-unreadable")


@pytest.mark.parametrize(
    "text", [b"(" * 200, b"{'descr': 'O'}", b"{'descr': '<f4', 'fortran_order': 0, 'shape': (-1,)}"]
)
def test_hostile_headers_are_refused(tmp_path, text):
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
    (tmp_path / "x.npy").write_bytes(data)
    refused(open_npy, tmp_path / "x.npy", slug="npy-unreadable")


@pytest.mark.parametrize("shape", [(1,) * 70, (0, 2**62, 8), (2**62, 2**62)])
def test_shapes_that_no_array_has_are_refused(tmp_path, shape):
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        file.write(bytes(4))
    refused(open_npy, tmp_path / "x.npy", slug="npy-unreadable")


def test_structured_types_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3, [("a", "<f4"), ("b", "<i4")]))
    refused(open_npy, tmp_path / "x.npy", slug="npy-unreadable")


def test_an_archive_that_expands_without_measure_is_refused(tmp_path):
    path, claimed = tmp_path / "x.npz", 3 << 29
    header = (b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % (claimed - 128)).ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(1000))
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):  # Where the expanded size stands.
        place = data.find(signature) + offset
        data[place : place + 4] = struct.pack("<I", claimed)
    path.write_bytes(bytes(data))
    assert str(claimed) in refused(load_npz, path, slug="npz-expands-too-much")


def test_damaged_archives_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.arange(1000.0))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(load_npz, path, slug="npz-unreadable")
    path.write_bytes(whole[:500] + bytes(100) + whole[600:])
    assert "CRC" in refused(load_npz, path, slug="npz-unreadable")


def test_archives_of_something_else_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    assert "data.pkl" in refused(load_npz, path, slug="npz-unreadable")


def test_encrypted_archives_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.arange(3))
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(signature) + offset] |= 1  # The flag bit that says encrypted.
    path.write_bytes(bytes(data))
    assert "encrypted" in refused(load_npz, path, slug="npz-unreadable")
