#include "backends/cpu/kernels/strided.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/check.h"

namespace rlx::cpu {
namespace {

/// Walks runs along the last axis: f(offset of the run's first element, its length).
template <class F>
void for_each_run(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                  std::size_t first, std::size_t count, F&& f) {
  std::array<std::int64_t, kMaxAxes> at{};
  const std::size_t last = dims.size() - 1;
  std::int64_t offset = 0;
  auto rest = static_cast<std::int64_t>(first);
  for (std::size_t axis = dims.size(); axis-- > 0; rest /= dims[axis]) {
    at[axis] = rest % dims[axis];
    offset += at[axis] * strides[axis];
  }
  for (auto left = static_cast<std::int64_t>(count); left > 0;) {
    const std::int64_t length = std::min(dims[last] - at[last], left);
    f(offset, length);
    left -= length;
    at[last] += length;
    offset += length * strides[last];
    for (std::size_t axis = last; axis > 0 && at[axis] == dims[axis]; --axis) {
      offset += strides[axis - 1] - dims[axis] * strides[axis];
      at[axis] = 0;
      ++at[axis - 1];
    }
  }
}

template <class T>
void gather(const T* from, std::span<const std::int64_t> dims,
            std::span<const std::int64_t> strides, std::size_t first, std::size_t count, T* to) {
  const std::int64_t stride = strides.back();
  constexpr std::int64_t kLongRun = 16;
  for_each_run(dims, strides, first, count, [&](std::int64_t offset, std::int64_t length) {
    const T* run = from + offset;
    if (stride == 1 && length >= kLongRun) {
      std::memcpy(to, run, static_cast<std::size_t>(length) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < length; ++i) to[i] = run[i * stride];
    }
    to += length;
  });
}

void gather_codes(const std::byte* from, unsigned bits, std::span<const std::int64_t> dims,
                  std::span<const std::int64_t> strides, std::size_t first, std::size_t count,
                  std::byte* to) {
  std::memset(to, 0, stored_bytes(bits, count));
  std::size_t target = 0;
  const auto copy_bit = [&](std::size_t source) {
    const bool on = ((from[source / 8] >> (source % 8)) & std::byte{1}) != std::byte{0};
    if (on) to[target / 8] |= std::byte{1} << (target % 8);
    ++target;
  };
  for_each_run(dims, strides, first, count, [&](std::int64_t offset, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) {
      const auto source = static_cast<std::size_t>(offset + i * strides.back()) * bits;
      for (std::size_t b = 0; b < bits; ++b) copy_bit(source + b);
    }
  });
}

struct Wide {
  std::uint64_t words[2];
};

bool joins(const IndexSpace& space, std::size_t axis, std::int64_t extent,
           std::span<const std::int64_t> strides) {
  for (std::size_t k = 0; k < space.strides.size(); ++k) {
    if (space.strides[k][axis] != strides[k] * extent) return false;
  }
  return true;
}

std::int64_t broadcast_stride(const Operand& operand, std::size_t axis, std::size_t rank) {
  const std::size_t lead = rank - operand.rank();
  if (axis < lead || operand.dims[axis - lead] == 1) return 0;
  return operand.strides[axis - lead];
}

}  // namespace

std::int64_t IndexSpace::size() const {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  return count;
}

IndexSpace joined_space(std::span<const std::int64_t> dims,
                        std::span<const Operand* const> operands) {
  IndexSpace space;
  space.strides.resize(operands.size());
  std::vector<std::int64_t> strides(operands.size());
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) continue;
    for (std::size_t k = 0; k < operands.size(); ++k)
      strides[k] = broadcast_stride(*operands[k], axis, dims.size());
    const bool join =
        !space.dims.empty() && joins(space, space.dims.size() - 1, dims[axis], strides);
    if (join) {
      space.dims.back() *= dims[axis];
    } else {
      space.dims.push_back(dims[axis]);
    }
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (join) {
        space.strides[k].back() = strides[k];
      } else {
        space.strides[k].push_back(strides[k]);
      }
    }
  }
  if (space.dims.empty()) {
    space.dims.push_back(1);
    for (auto& s : space.strides) s.push_back(1);
  }
  RLX_ASSERT(space.dims.size() <= kMaxAxes);
  return space;
}

std::size_t stored_bytes(unsigned element_bits, std::size_t count) noexcept {
  const std::size_t block = 8 / std::gcd(8U, element_bits);
  return (count + block - 1) / block * (block * element_bits / 8);
}

void gather_strided(const std::byte* from, unsigned element_bits,
                    std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                    std::size_t first, std::size_t count, std::byte* to) noexcept {
  const auto as = [&](auto zero) {
    using T = decltype(zero);
    gather(reinterpret_cast<const T*>(from), dims, strides, first, count, reinterpret_cast<T*>(to));
  };
  switch (element_bits) {
    case 8:
      return as(std::uint8_t{});
    case 16:
      return as(std::uint16_t{});
    case 32:
      return as(std::uint32_t{});
    case 64:
      return as(std::uint64_t{});
    case 128:
      return as(Wide{});
    default:
      return gather_codes(from, element_bits, dims, strides, first, count, to);
  }
}

}  // namespace rlx::cpu
