#include <complex>

#include "backends/cpu/kernels/tile.h"

namespace rlx::cpu {
namespace {

// Complex numbers, element by element and in double precision: rare in models, and the C++
// library's functions treat the special values as Annex G has them.
using Wide = std::complex<double>;

struct Neg {
  Wide operator()(Wide x) const { return -x; }
};
struct Sqrt {
  Wide operator()(Wide x) const { return std::sqrt(x); }
};
struct Reciprocal {
  Wide operator()(Wide x) const { return 1.0 / x; }
};
struct Exp {
  Wide operator()(Wide x) const { return std::exp(x); }
};
struct Log {
  Wide operator()(Wide x) const { return std::log(x); }
};
struct Add {
  Wide operator()(Wide a, Wide b) const { return a + b; }
};
struct Sub {
  Wide operator()(Wide a, Wide b) const { return a - b; }
};
struct Mul {
  Wide operator()(Wide a, Wide b) const { return a * b; }
};
struct Div {
  Wide operator()(Wide a, Wide b) const { return a / b; }
};
struct Pow {
  Wide operator()(Wide a, Wide b) const { return std::pow(a, b); }
};
struct Equal {
  bool operator()(Wide a, Wide b) const { return a == b; }
};
struct NotEqual {
  bool operator()(Wide a, Wide b) const { return a != b; }
};

template <class T>
const T& operand(const TileArgs& t, std::size_t k, std::size_t i) {
  return reinterpret_cast<const T*>(t.in[k])[i & t.mask[k]];
}

template <class T, class R, class F>
void each1(const TileArgs& t) {
  for (std::size_t i = 0; i < t.count; ++i)
    reinterpret_cast<R*>(t.to)[i] = static_cast<R>(F()(Wide(operand<T>(t, 0, i))));
}
template <class T, class R, class F>
void each2(const TileArgs& t) {
  for (std::size_t i = 0; i < t.count; ++i) {
    const Wide a(operand<T>(t, 0, i)), b(operand<T>(t, 1, i));
    reinterpret_cast<R*>(t.to)[i] = static_cast<R>(F()(a, b));
  }
}
template <class T>
void select(const TileArgs& t) {
  for (std::size_t i = 0; i < t.count; ++i) {
    const bool on = operand<std::uint8_t>(t, 0, i) != 0;
    reinterpret_cast<T*>(t.to)[i] = operand<T>(t, on ? 1 : 2, i);
  }
}

struct Row {
  const OpDef* op;
  TileFunction function;
};

template <class T>
TileFunction find(const OpDef& op) {
  static constexpr Row kRows[] = {
      {&neg_def, each1<T, T, Neg>},
      {&sqrt_def, each1<T, T, Sqrt>},
      {&reciprocal_def, each1<T, T, Reciprocal>},
      {&exp_def, each1<T, T, Exp>},
      {&log_def, each1<T, T, Log>},
      {&add_def, each2<T, T, Add>},
      {&sub_def, each2<T, T, Sub>},
      {&mul_def, each2<T, T, Mul>},
      {&div_def, each2<T, T, Div>},
      {&pow_def, each2<T, T, Pow>},
      {&equal_def, each2<T, std::uint8_t, Equal>},
      {&not_equal_def, each2<T, std::uint8_t, NotEqual>},
      {&select_def, select<T>},
  };
  for (const Row& row : kRows) {
    if (row.op == &op) return row.function;
  }
  return nullptr;
}

}  // namespace

TileFunction complex_tile(const OpDef& op, DType tile) noexcept {
  if (tile == DType::c64) return find<std::complex<float>>(op);
  if (tile == DType::c128) return find<std::complex<double>>(op);
  return nullptr;
}

}  // namespace rlx::cpu
