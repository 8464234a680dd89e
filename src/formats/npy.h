#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/tensor.h"

namespace rlx {

/// NumPy's format for one array, versions 1 to 3.
///
/// Reading takes bool, integers, f16, f32, f64, c64, c128 of either byte order and text (`S`, `U`)
/// in C or Fortran order. What is not as the format demands is a `FormatError` with its offset;
/// objects, dates, structures, `V` and wider floats are `Unsupported`: nothing is unpickled or
/// guessed. Bytes after the array are an error.
///
/// Writing uses little endian and C order. NumPy has no name for bf16: it is written as f32, which
/// holds every bf16 exactly. Other dtypes without a name are `Unsupported`; cast them first.

/// One array. The tensor views `file`, which `owner` keeps alive, where it can; big-endian, Fortran
/// and unaligned arrays are copied.
Tensor parse_npy(std::span<const std::byte> file, std::shared_ptr<const void> owner);
Tensor load_npy(const std::string& path);

/// What a file holds: the header and the elements, which are the tensor itself where NumPy knows
/// its dtype. Throws `Unsupported` as above, `InvalidArgument` for strings that are not UTF-8 or
/// end with a zero character, which NumPy would drop.
struct NpyParts {
  std::string header;
  Tensor elements;
};
NpyParts npy_parts(const Tensor& tensor);

std::vector<std::byte> encode_npy(const Tensor& tensor);
/// Atomically.
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace rlx
