"""Writes the sample files of tests/corpora with the libraries that define the formats.

Needs numpy and safetensors (0.8); run from anywhere: python write_format_samples.py
"""

import pathlib

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


if __name__ == "__main__":
    write_safetensors()
