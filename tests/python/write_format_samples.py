"""Writes the sample files of tests/corpora with the libraries that define the formats.

Needs numpy and safetensors (0.8); run from anywhere: python write_format_samples.py
"""

import io
import pathlib
import zipfile

import numpy as np
from safetensors import TensorSpec, serialize_file

CORPORA = pathlib.Path(__file__).resolve().parent.parent / "corpora"

PLAIN = {
    "F64": np.array([0.5, -3.0]),
    "F32": np.array([[1.5, -2.0], [0.25, 1e30]], np.float32),
    "F16": np.array([1.0, -0.5, 6e-8], np.float16),
    "I64": np.array([-1, 1 << 40], np.int64),
    "I32": np.array([-7], np.int32),
    "I16": np.array([-300, 300], np.int16),
    "I8": np.array([-128, 127], np.int8),
    "U64": np.array([2**64 - 1], np.uint64),
    "U32": np.array([2**32 - 1], np.uint32),
    "U16": np.array([65535], np.uint16),
    "U8": np.array([0, 255], np.uint8),
    "BOOL": np.array([True, False, True]),
    "C64": np.array([1 - 2j], np.complex64),
}
# Types that NumPy lacks, as raw bytes: name -> (what the library calls it, shape, bytes).
RAW = {
    "BF16": ("bfloat16", [2], [0x80, 0x3F, 0x00, 0xC0]),
    "F8_E4M3": ("float8_e4m3fn", [2], [0x38, 0xB8]),
    "F8_E5M2": ("float8_e5m2", [2], [0x3C, 0xBC]),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", [1], [0x40]),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", [1], [0x40]),
    "F8_E8M0": ("float8_e8m0fnu", [1], [0x7F]),
    "F4": ("float4_e2m1fn_x2", [2, 1], [0x21, 0x43]),
    "scalar": ("float64", [], list(np.array(0.1).tobytes())),
    "empty": ("float32", [0, 3], []),
}


def write_safetensors():
    """Every dtype, and a scalar, and no element at all."""
    arrays = dict(PLAIN)
    specs = {}
    for name, (dtype, shape, data) in RAW.items():
        arrays[name] = np.array(data, np.uint8)
        specs[name] = (dtype, shape)
    for name, array in PLAIN.items():
        specs[name] = (array.dtype.name, array.shape)
    tensors = {
        name: TensorSpec(
            dtype=dtype,
            shape=shape,
            data_ptr=arrays[name].ctypes.data,
            data_len=arrays[name].nbytes,
        )
        for name, (dtype, shape) in specs.items()
    }
    path = CORPORA / "safetensors" / "every_dtype.safetensors"
    serialize_file(tensors, str(path), {"format": "pt", "unit": "µ"})


def write_npy():
    folder = CORPORA / "npy"
    folder.mkdir(exist_ok=True)
    numbers = (np.arange(12) * 1000003).astype(np.int32).reshape(2, 3, 2)
    text = np.array(["é", "", "漢字🙂"])
    arrays = {
        "c_order": numbers,
        "fortran_order": np.asfortranarray(numbers),
        "big_endian": numbers.astype(">i4"),
        "bool": np.array([True, False]),
        "scalar": np.array(0.1),
        "empty": np.zeros((0, 3), np.float32),
        "complex_big_endian": np.array([1.5 - 2.5j], ">c16"),
        "text": text,
        "text_big_endian": text.astype(">U3"),
        "text_bytes": np.array([b"ab", b"c"]),
        "half": np.array([1, -0.5, 65504], np.float16),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    for major in (2, 3):
        with open(folder / f"version_{major}.npy", "wb") as f:
            np.lib.format.write_array(f, numbers, (major, 0))


def npy_bytes(array):
    f = io.BytesIO()
    np.save(f, array)
    return f.getvalue()


def zip_bytes(members, method=zipfile.ZIP_STORED):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", method) as z:
        for name, data in members:
            z.writestr(zipfile.ZipInfo(name), data, method)
    return bytearray(f.getvalue())


def central(data):
    """Where the first record of the directory begins."""
    return data.rindex(b"PK\1\2")


def patch(data, at, value, size):
    data[at : at + size] = value.to_bytes(size, "little")


def write_npz():
    folder = CORPORA / "npz"
    (folder / "hostile").mkdir(exist_ok=True, parents=True)
    arrays = {"a": np.arange(9000), "b/c": np.eye(2, dtype=np.float32), "µ": np.array(1, np.int8)}
    np.savez(folder / "stored.npz", **arrays)
    np.savez_compressed(folder / "deflated.npz", **arrays)
    one = [("a.npy", npy_bytes(np.arange(3, dtype=np.int8)))]
    (folder / "small.npz").write_bytes(zip_bytes(one, zipfile.ZIP_DEFLATED))

    hostile = {}
    big = [("a.npy", npy_bytes(np.zeros(10_000_000, np.int8)))]
    for name, size in (("says_too_little", 100), ("says_too_much", 4294967200)):
        data = zip_bytes(big, zipfile.ZIP_DEFLATED)
        patch(data, central(data) + 24, size, 4)
        hostile[name] = data
    # Both records of the directory point at one member of nearly the size of the file.
    data = zip_bytes([("a.npy", npy_bytes(np.zeros(500, np.int8))), ("b.npy", b"")])
    records = data.index(b"PK\1\2")
    second = central(data)
    for field, size in ((16, 4), (20, 4), (24, 4), (42, 4)):
        data[second + field : second + field + size] = data[records + field : records + field + size]
    hostile["overlap"] = data
    hostile["twice"] = zip_bytes(one * 2)
    hostile["method"] = zip_bytes(one, zipfile.ZIP_BZIP2)
    data = zip_bytes(one)
    data[data.index(b"PK\1\2") - 1] ^= 1
    hostile["checksum"] = data
    hostile["cut"] = zip_bytes(one)[:-30]
    for name, data in hostile.items():
        (folder / "hostile" / f"{name}.npz").write_bytes(data)


if __name__ == "__main__":
    write_npy()
    write_npz()
    write_safetensors()
