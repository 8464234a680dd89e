#include "ops/softmax.h"

#include <cmath>

#include "ir/node.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

TensorType infer_softmax(std::int64_t axis, const InferArgs& in) {
  require_floating(in, 0);
  require_axis(axis, in[0].rank());
  return in[0];
}

// The greatest of a line, NaN if any is.
double line_max(const std::vector<double>& x, const AxisView& v, std::int64_t o, std::int64_t i) {
  double top = -INFINITY;
  for (std::int64_t k = 0; k < v.length; ++k) {
    const double e = x[static_cast<std::size_t>(v.at(o, k, i))];
    if (std::isnan(e) || e > top) top = e;
    if (std::isnan(top)) break;
  }
  return top;
}

// Calls f(from, to, top, total) for each line along the axis, with total = sum exp(x - top).
template <class F>
void for_each_line(const HostArray& x, HostArray& y, std::int64_t axis, F&& f) {
  const AxisView v = fold_axis(x.dims(), axis);
  const std::vector<double>& from = x.as<double>();
  std::vector<double>& to = y.as<double>();
  for (std::int64_t o = 0; o < v.outer; ++o) {
    for (std::int64_t i = 0; i < v.inner; ++i) {
      const double top = line_max(from, v, o, i);
      double total = 0;
      for (std::int64_t k = 0; k < v.length; ++k)
        total += std::exp(from[static_cast<std::size_t>(v.at(o, k, i))] - top);
      for (std::int64_t k = 0; k < v.length; ++k) {
        const auto at = static_cast<std::size_t>(v.at(o, k, i));
        to[at] = f(from[at] - top, total);
      }
    }
  }
}

}  // namespace

TensorType infer(const Softmax& op, InferArgs& in) { return infer_softmax(op.axis, in); }
TensorType infer(const LogSoftmax& op, InferArgs& in) { return infer_softmax(op.axis, in); }

void evaluate(const Softmax& op, Evaluation& run) {
  for_each_line(run.in(0), run.out(), op.axis,
                [](double x, double total) { return std::exp(x) / total; });
}
void evaluate(const LogSoftmax& op, Evaluation& run) {
  for_each_line(run.in(0), run.out(), op.axis,
                [](double x, double total) { return x - std::log(total); });
}

Value decompose(const Softmax& op, std::span<const Value> in) {
  const Value e = exp(in[0] - reduce(in[0], Reduction::max, {op.axis}, true));
  return e / sum(e, {op.axis}, true);
}
Value decompose(const LogSoftmax& op, std::span<const Value> in) {
  const Value shifted = in[0] - reduce(in[0], Reduction::max, {op.axis}, true);
  return shifted - log(sum(exp(shifted), {op.axis}, true));
}

constinit const OpDef softmax_def = define<Softmax>({
    .name = "softmax",
    .summary = "Scales each slice along `axis` to positive numbers that sum to 1.",
    .inputs = {"x"},
    .outputs = {"y"},
});
constinit const OpDef log_softmax_def = define<LogSoftmax>({
    .name = "log_softmax",
    .summary = "The logarithm of softmax along `axis`.",
    .inputs = {"x"},
    .outputs = {"y"},
});

inline namespace v0 {
Value softmax(Value x, std::int64_t axis) {
  return x.graph().add1(make_op(softmax_def, Softmax{normal_axis(axis, x.rank())}), {x});
}
Value log_softmax(Value x, std::int64_t axis) {
  return x.graph().add1(make_op(log_softmax_def, LogSoftmax{normal_axis(axis, x.rank())}), {x});
}
}  // namespace v0
}  // namespace rlx
