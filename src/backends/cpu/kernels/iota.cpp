#include <algorithm>
#include <complex>
#include <cstring>

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ops/host_array.h"
#include "ops/movement.h"

namespace rlx::cpu {
namespace {

/// y as [outer, length, inner], in elements of `table`: the counts 0 to length - 1 of the dtype.
struct IotaStep {
  Buffer y;
  std::span<const std::byte> table;
  std::size_t outer, length, inner;
  std::size_t threads;
};
using IotaFunction = void (*)(const IotaStep&, const Run&) noexcept;

template <class T>
void iota_rows(const IotaStep& s, const Run& run) noexcept {
  const auto* table = reinterpret_cast<const T*>(s.table.data());
  T* y = run.at<T>(s.y);
  parallel_ranges(run, s.outer, s.length * s.inner, s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t o = begin; o < end; ++o) {
                      T* to = y + o * s.length * s.inner;
                      for (std::size_t k = 0; k < s.length; ++k)
                        std::fill_n(to + k * s.inner, s.inner, table[k]);
                    }
                  });
}

struct Bytes16 {
  std::uint64_t low = 0, high = 0;
};

IotaFunction iota_function(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return iota_rows<std::uint8_t>;
    case 2:
      return iota_rows<std::uint16_t>;
    case 4:
      return iota_rows<std::uint32_t>;
    case 8:
      return iota_rows<std::uint64_t>;
    default:
      return iota_rows<Bytes16>;
  }
}

Match accepts_iota(const Node& node) {
  const DTypeTraits& t = traits(node.type().dtype);
  if (t.block_length != 1) return Match::no(fmt::format("elements of {} are not bytes", t.name));
  return {};
}

/// 0, 1, 2, … rounded to the dtype as the reference does.
Tensor counts(DType dtype, std::int64_t length) {
  HostArray values(dtype, {length});
  visit_numbers(values, [&](auto zero) {
    using T = decltype(zero);
    std::int64_t next = 0;
    for (T& v : values.as<T>()) {
      if constexpr (std::is_same_v<T, std::complex<double>>) {
        v = static_cast<double>(next++);
      } else {
        v = static_cast<T>(next++);
      }
    }
  });
  return values.to_tensor();
}

void plan_iota(StepBuilder& step) {
  const Operand& y = step.out();
  if (y.size() == 0) return;
  const AxisView view = fold_axis(y.dims, step.node().as<Iota>()->axis);
  const auto table = std::make_shared<const Tensor>(counts(y.dtype, view.length));
  step.keep_alive(table);
  step.launch(iota_function(traits(y.dtype).block_bytes),
              IotaStep{y.at, table->bytes(), static_cast<std::size_t>(view.outer),
                       static_cast<std::size_t>(view.length), static_cast<std::size_t>(view.inner),
                       static_cast<std::size_t>(step.threads())});
}

}  // namespace

KernelList iota_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "iota_rows", .op = &iota_def, .accepts = accepts_iota, .plan = plan_iota}};
  return kKernels;
}

}  // namespace rlx::cpu
