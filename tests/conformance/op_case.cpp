#include "conformance/op_case.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/host_array.h"

namespace rlx {
namespace {

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128:
      return std::ldexp(1.0, -53);
    case DType::f32:
    case DType::c64:
      return std::ldexp(1.0, -24);
    case DType::f16:
      return std::ldexp(1.0, -11);
    case DType::bf16:
      return std::ldexp(1.0, -8);
    default:
      return std::ldexp(1.0, -3);
  }
}

// The least normal number: below it errors are absolute.
double least_normal(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128:
      return std::numeric_limits<double>::min();
    case DType::f32:
    case DType::c64:
    case DType::bf16:
      return std::numeric_limits<float>::min();
    default:
      return std::ldexp(1.0, -14);
  }
}

template <class F>
Tensor filled(DType dtype, Tensor::Dims dims, F&& next) {
  HostArray a(dtype, std::move(dims));
  visit_numbers(a, [&](auto zero) {
    using T = decltype(zero);
    for (T& v : a.as<T>()) v = next(T{});
  });
  return a.to_tensor();
}

double largest_finite(const std::vector<double>& values) {
  double top = 0;
  for (const double v : values) {
    if (std::isfinite(v)) top = std::max(top, std::fabs(v));
  }
  return top;
}

bool same_special(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const OpCase& c) { return out << c.name; }

namespace {

std::vector<OpCase>& noted_cases() {
  static std::vector<OpCase> cases;
  return cases;
}

}  // namespace

std::string case_name(const testing::TestParamInfo<OpCase>& info) {
  noted_cases().push_back(info.param);
  return info.param.name;
}
const std::vector<OpCase>& instantiated_cases() { return noted_cases(); }

OpCase op_case(std::string name, const std::vector<Tensor>& inputs, OpBuilder build) {
  OpCase c{.name = std::move(name), .build = {}, .inputs = {}};
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    types.push_back({inputs[i].dtype(), Shape::of(inputs[i].dims())});
    c.inputs[fmt::format("x{}", i)] = inputs[i];
  }
  c.build = [types = std::move(types), build = std::move(build)](Graph& g) {
    std::vector<Value> values;
    for (std::size_t i = 0; i < types.size(); ++i)
      values.push_back(g.input(fmt::format("x{}", i), types[i]));
    g.output("y", build(values));
  };
  return c;
}

Tensor evaluated(const std::vector<Tensor>& inputs, const OpBuilder& build) {
  const OpCase c = op_case("", inputs, build);
  Graph g;
  c.build(g);
  return evaluate_graph(g, c.inputs).at("y");
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

Tensor random_tensor(DType dtype, Tensor::Dims dims, std::uint64_t seed, double low, double high) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> real(low, high);
  std::uniform_int_distribution<std::int64_t> whole(static_cast<std::int64_t>(low),
                                                    static_cast<std::int64_t>(high));
  return filled(dtype, std::move(dims), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, std::complex<double>>) {
      const double re = real(engine);
      return T(re, real(engine));
    } else if constexpr (std::is_same_v<T, double>) {
      return real(engine);
    } else {
      if (dtype == DType::boolean) return static_cast<T>(engine() & 1U);
      return static_cast<T>(whole(engine));
    }
  });
}

Tensor special_tensor(DType dtype, Tensor::Dims dims, std::uint64_t seed) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double kSpecials[] = {NAN,  kInf,  -kInf, 0.0, -0.0, least_normal(dtype) / 4,
                              3e38, -3e38, 1e-30, 0.5, -1.5, 2.5};
  const Tensor base = random_tensor(dtype, dims, seed);
  if (!is_floating(dtype)) return base;
  std::vector<double> values = doubles(base);
  std::mt19937_64 engine(seed + 1);
  for (double& v : values) {
    if (engine() % 3 == 0) v = kSpecials[engine() % std::size(kSpecials)];
  }
  return tensor_of(dtype, std::move(dims), values);
}

Tensor tensor_of(DType dtype, Tensor::Dims dims, const std::vector<double>& values) {
  std::size_t i = 0;
  return filled(dtype, std::move(dims),
                [&](auto zero) { return static_cast<decltype(zero)>(values.at(i++)); });
}

std::vector<double> doubles(const Tensor& t) {
  const HostArray a(t);
  if (is_complex(t.dtype())) {
    std::vector<double> parts;
    for (const std::complex<double> z : a.as<std::complex<double>>())
      parts.insert(parts.end(), {z.real(), z.imag()});
    return parts;
  }
  std::vector<double> values(a.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = a.real(i);
  return values;
}

namespace {

// Element by element: the bits behind the last element of a sub-byte dtype are nobody's.
testing::AssertionResult same_integers(const Tensor& found, const Tensor& expected) {
  const HostArray x(found);
  const HostArray y(expected);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x.index(i) == y.index(i)) continue;
    return testing::AssertionFailure()
           << "element " << i << " is " << x.index(i) << ", expected " << y.index(i);
  }
  return testing::AssertionSuccess();
}

}  // namespace

testing::AssertionResult agrees(const Tensor& found, const Tensor& expected, const OpCase& c,
                                const Tensor* magnitudes) {
  if (found.dtype() != expected.dtype() || found.dims() != expected.dims()) {
    return testing::AssertionFailure()
           << name(found.dtype()) << to_string(found.dims()) << ", expected "
           << name(expected.dtype()) << to_string(expected.dims());
  }
  if (found.dtype() == DType::string) {
    if (std::ranges::equal(found.strings(), expected.strings())) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "strings differ";
  }
  if (!is_floating(found.dtype()) && !is_complex(found.dtype())) {
    return same_integers(found, expected);
  }
  const std::vector<double> x = doubles(found);
  const std::vector<double> y = doubles(expected);
  const std::vector<double> sums =
      magnitudes != nullptr ? doubles(*magnitudes) : std::vector<double>(y.size());
  const double u = unit_roundoff(found.dtype());
  const double u_sum = std::min(u, std::ldexp(1.0, -24));  // sums of narrow floats run in f32
  const double top = largest_finite(y);
  // Runs flush what they compute in f32 and f64; f16 has its own, which are normal numbers there.
  const bool flushes_denormals = found.dtype() != f16;
  // The parts of a complex number share its magnitude.
  const auto magnitude = [&](std::size_t i) {
    return is_complex(found.dtype()) ? std::hypot(y[i / 2 * 2], y[i / 2 * 2 + 1]) : std::fabs(y[i]);
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (same_special(x[i], y[i])) continue;
    if (x[i] == 0 && flushes_denormals && std::fabs(y[i]) < least_normal(found.dtype())) continue;
    const double bound =
        2 * u *
            (c.ulps * std::max(magnitude(i), least_normal(found.dtype())) + c.scale_ulps * top) +
        (c.terms > 0 ? (c.terms + 4) * u_sum * sums[i] : 0);
    if (std::fabs(x[i] - y[i]) <= bound) continue;
    return testing::AssertionFailure()
           << "element " << i << " is " << x[i] << ", expected " << y[i] << " within " << bound;
  }
  return testing::AssertionSuccess();
}

namespace {

Tensor part_magnitudes(const Tensor& complex) {
  HostArray a(complex);
  for (std::complex<double>& z : a.as<std::complex<double>>())
    z = {std::fabs(z.real()), std::fabs(z.imag())};
  return a.to_tensor();
}

}  // namespace

NamedTensors evaluate_magnitudes(const Graph& graph, const NamedTensors& inputs) {
  NamedTensors magnitudes;
  for (const auto& [name, tensor] : inputs) {
    if (is_complex(tensor.dtype())) {
      magnitudes[name] = part_magnitudes(tensor);
      continue;
    }
    std::vector<double> values =
        is_floating(tensor.dtype()) ? doubles(tensor) : std::vector<double>();
    for (double& v : values) v = std::fabs(v);
    magnitudes[name] =
        is_floating(tensor.dtype()) ? tensor_of(tensor.dtype(), tensor.dims(), values) : tensor;
  }
  return evaluate_graph(graph, magnitudes);
}

}  // namespace rlx
