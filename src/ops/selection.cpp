#include "ops/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/node.h"
#include "ops/fold.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "ops/reduce.h"

namespace rlx {
namespace {

void require_ordered(const InferArgs& in) {
  require_number(in, 0);
  if (is_complex(in[0].dtype)) throw InvalidArgument("complex numbers have no order");
}

// Whether a is more extreme than b. NaN is above every number where the greatest are looked for,
// and `nan_first` says whether also where the least are.
template <class T>
bool comes_before(T a, T b, bool largest, bool nan_first) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) != std::isnan(b) && std::isnan(a) == (largest || nan_first);
  }
  return largest ? a > b : a < b;
}

// Calls f(o, i) for each line of the folded shape.
template <class F>
void for_each_line(const AxisView& v, F&& f) {
  for (std::int64_t o = 0; o < v.outer; ++o) {
    for (std::int64_t i = 0; i < v.inner; ++i) f(o, i);
  }
}

}  // namespace

// ---------------------------------------------------------------- arg_reduce

TensorType infer(const ArgReduce& op, InferArgs& in) {
  require_ordered(in);
  const Shape& shape = in[0].shape;
  require_axis(op.axis, shape.rank());
  in.at_most(1, shape[static_cast<std::size_t>(op.axis)],
             fmt::format("elements along axis {} of {}", op.axis, to_string(shape)));
  return {DType::i64, reduced_shape(shape, {op.axis}, op.keep_dims)};
}

void evaluate(const ArgReduce& op, Evaluation& run) {
  const HostArray& x = run.in(0);
  const AxisView v = fold_axis(x.dims(), op.axis);
  std::vector<std::int64_t>& to = run.out().as<std::int64_t>();
  visit_reals(x, [&](auto zero) {
    using T = decltype(zero);
    const auto at = [&](std::int64_t o, std::int64_t k, std::int64_t i) {
      return x.as<T>()[static_cast<std::size_t>(v.at(o, k, i))];
    };
    for_each_line(v, [&](std::int64_t o, std::int64_t i) {
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < v.length; ++k) {
        const bool wins = op.select_last
                              ? !comes_before(at(o, best, i), at(o, k, i), op.largest, true)
                              : comes_before(at(o, k, i), at(o, best, i), op.largest, true);
        if (wins) best = k;
      }
      to[static_cast<std::size_t>(o * v.inner + i)] = best;
    });
  });
}

constinit const OpDef arg_reduce_def = define<ArgReduce>({
    .name = "arg_reduce",
    .summary = "Index of the greatest or least element along `axis`: the first of equal ones, or "
               "the last; NaN before any number.",
    .inputs = {"x"},
    .outputs = {"indices"},
});

// ---------------------------------------------------------------- cumulative

namespace {

Reduction step_of(Accumulation kind) {
  switch (kind) {
    case Accumulation::sum:
      return Reduction::sum;
    case Accumulation::prod:
      return Reduction::prod;
    case Accumulation::max:
      return Reduction::max;
    case Accumulation::min:
      return Reduction::min;
  }
  return Reduction::sum;
}

}  // namespace

TensorType infer(const Cumulative& op, InferArgs& in) {
  const bool ordered = op.kind == Accumulation::max || op.kind == Accumulation::min;
  ordered ? require_ordered(in) : require_number(in, 0);
  require_axis(op.axis, in[0].rank());
  return in[0];
}

void evaluate(const Cumulative& op, Evaluation& run) {
  const HostArray& x = run.in(0);
  const AxisView v = fold_axis(x.dims(), op.axis);
  const Reduction step = step_of(op.kind);
  visit_numbers(x, [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T>& from = x.as<T>();
    std::vector<T>& to = run.out().as<T>();
    for_each_line(v, [&](std::int64_t o, std::int64_t i) {
      T total = identity<T>(step, x.dtype());
      for (std::int64_t k = 0; k < v.length; ++k) {
        const auto at = static_cast<std::size_t>(v.at(o, op.reverse ? v.length - 1 - k : k, i));
        const T before = total;
        total = combine(step, total, from[at]);
        to[at] = op.exclusive ? before : total;
      }
    });
  });
}

constinit const OpDef cumulative_def = define<Cumulative>({
    .name = "cumulative",
    .summary = "Running sum, product, max or min along `axis`, with or without the element itself, "
               "from either end.",
    .inputs = {"x"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- top_k

Types infer(const TopK& op, InferArgs& in) {
  require_ordered(in);
  Shape shape = in[0].shape;
  require_axis(op.axis, shape.rank());
  Dim& extent = shape[static_cast<std::size_t>(op.axis)];
  const std::string what = fmt::format("k of {} elements along axis {} of {}", op.k.to_string(),
                                       op.axis, to_string(in[0].shape));
  in.at_most(0, op.k, what);
  in.at_most(op.k, extent, what);
  extent = op.k;
  return {{in[0].dtype, shape}, {DType::i64, shape}};
}

// The order is the sorted one whether it is asked for or not.
void evaluate(const TopK& op, Evaluation& run) {
  const HostArray& x = run.in(0);
  const AxisView from = fold_axis(x.dims(), op.axis);
  const AxisView to = fold_axis(run.out(0).dims(), op.axis);
  std::vector<std::int64_t> order(static_cast<std::size_t>(from.length));
  visit_reals(x, [&](auto zero) {
    using T = decltype(zero);
    for_each_line(from, [&](std::int64_t o, std::int64_t i) {
      const auto at = [&](std::int64_t k) {
        return x.as<T>()[static_cast<std::size_t>(from.at(o, k, i))];
      };
      std::iota(order.begin(), order.end(), std::int64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return comes_before(at(a), at(b), op.largest, false);
      });
      for (std::int64_t k = 0; k < to.length; ++k) {
        const auto slot = static_cast<std::size_t>(to.at(o, k, i));
        const std::int64_t picked = order[static_cast<std::size_t>(k)];
        run.out(0).as<T>()[slot] = at(picked);
        run.out(1).as<std::int64_t>()[slot] = picked;
      }
    });
  });
}

constinit const OpDef top_k_def = define<TopK>({
    .name = "top_k",
    .summary = "The k greatest or least elements along `axis` and their indices, the smaller index "
               "first among equal ones; NaN above every number.",
    .inputs = {"x"},
    .outputs = {"values", "indices"},
});

// ---------------------------------------------------------------- builders

namespace {

Value arg_reduce(Value x, ArgReduce op) {
  op.axis = normal_axis(op.axis, x.rank());
  return x.graph().add1(make_op(arg_reduce_def, op), {x});
}

}  // namespace

inline namespace v0 {

Value arg_max(Value x, std::int64_t axis, bool keep_dims, bool select_last) {
  return arg_reduce(x, {true, axis, keep_dims, select_last});
}
Value arg_min(Value x, std::int64_t axis, bool keep_dims, bool select_last) {
  return arg_reduce(x, {false, axis, keep_dims, select_last});
}

Value cumulative(Value x, Accumulation kind, std::int64_t axis, bool exclusive, bool reverse) {
  const Cumulative op{kind, normal_axis(axis, x.rank()), exclusive, reverse};
  return x.graph().add1(make_op(cumulative_def, op), {x});
}

TopKResult top_k(Value x, Dim k, std::int64_t axis, bool largest, bool sorted) {
  const TopK op{k, normal_axis(axis, x.rank()), largest, sorted};
  const std::vector<Value> y = x.graph().add(make_op(top_k_def, op), {x});
  return {y[0], y[1]};
}

}  // namespace v0
}  // namespace rlx
