#include "ops/conv.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/node.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

void require_entries(const std::vector<std::int64_t>& list, std::size_t axes, std::int64_t least,
                     std::string_view what) {
  if (list.size() != axes) {
    throw InvalidArgument(
        fmt::format("{} has {} entries for {} spatial axes", what, list.size(), axes));
  }
  for (const std::int64_t v : list) {
    if (v < least)
      throw InvalidArgument(fmt::format("{} is {}, expected {} or more", what, v, least));
  }
}

// Extent of a window's result along one axis.
Dim window_extent(Dim padded, Dim span, std::int64_t stride) {
  return floor_div(padded - span, stride) + 1;
}

void require_positive(Dim extent, std::size_t axis) {
  if (extent.upper_bound() > 0) return;
  throw ShapeError(
      fmt::format("the window is longer than spatial axis {}: the result would have extent {}",
                  axis, extent.to_string()));
}

std::size_t spatial_rank(const InferArgs& in) {
  require_rank_at_least(in, 0, 3);
  if (in[0].rank() > 5)
    throw ShapeError(fmt::format("x is {}, expected 1 to 3 spatial axes", to_string(in[0].shape)));
  return in[0].rank() - 2;
}

}  // namespace

// ---------------------------------------------------------------- convolution

TensorType infer(const Conv& op, InferArgs& in) {
  require_floating(in, 0);
  require_same_dtype(in, 0, 1);
  const std::size_t axes = spatial_rank(in);
  require_rank(in, 1, axes + 2);
  require_entries(op.strides, axes, 1, "strides");
  require_entries(op.dilations, axes, 1, "dilations");
  require_entries(op.padding_low, axes, 0, "padding_low");
  require_entries(op.padding_high, axes, 0, "padding_high");
  const Shape& x = in[0].shape;
  const Shape& w = in[1].shape;
  if (op.groups < 1 || mod(w[0], op.groups) != Dim(0)) {
    throw ShapeError(fmt::format("{} groups do not divide the {} output channels of w", op.groups,
                                 w[0].to_string()));
  }
  in.same(x[1], w[1] * op.groups, "channels of x and of w times groups");
  if (in.has(2)) {
    require_same_dtype(in, 0, 2);
    require_shape(in, 2, {w[0]});
  }
  Shape y{x[0], w[0]};
  for (std::size_t i = 0; i < axes; ++i) {
    const Dim span = (w[i + 2] - 1) * op.dilations[i] + 1;
    y.push_back(
        window_extent(x[i + 2] + op.padding_low[i] + op.padding_high[i], span, op.strides[i]));
    require_positive(y.back(), i);
  }
  return {in[0].dtype, std::move(y)};
}

namespace {

/// Positions of a window over the spatial axes of an array [n, c, spatial…].
struct Window {
  std::vector<std::int64_t> input, kernel, strides, padding_low, dilations;

  // Offset of the tap within one channel; nothing where it falls into the padding.
  std::optional<std::size_t> tap(std::span<const std::int64_t> out,
                                 std::span<const std::int64_t> k) const {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
      const std::int64_t at = out[i] * strides[i] + k[i] * dilations[i] - padding_low[i];
      if (at < 0 || at >= input[i]) return std::nullopt;
      offset = offset * input[i] + at;
    }
    return static_cast<std::size_t>(offset);
  }
};

std::vector<std::int64_t> spatial(const std::vector<std::int64_t>& dims) {
  return {dims.begin() + 2, dims.end()};
}

std::int64_t product(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  return count;
}

}  // namespace

void evaluate(const Conv& op, Evaluation& run) {
  const HostArray& x = run.in(0);
  const HostArray& w = run.in(1);
  HostArray& y = run.out();
  const Window window{spatial(x.dims()), spatial(w.dims()), op.strides, op.padding_low,
                      op.dilations};
  const std::int64_t in_size = product(window.input);
  const std::int64_t kernel_size = product(window.kernel);
  const std::int64_t channels = w.dims()[1];  // of one group
  const std::int64_t outputs = w.dims()[0];
  const std::vector<std::int64_t> out = spatial(y.dims());
  std::size_t to = 0;
  for (std::int64_t n = 0; n < y.dims()[0]; ++n) {
    for (std::int64_t co = 0; co < outputs; ++co) {
      const std::int64_t first = n * x.dims()[1] + co / (outputs / op.groups) * channels;
      for_each_index(out, [&](std::span<const std::int64_t> at, std::int64_t) {
        double total = run.has(2) ? run.in(2).as<double>()[static_cast<std::size_t>(co)] : 0;
        for (std::int64_t c = 0; c < channels; ++c) {
          for_each_index(window.kernel, [&](std::span<const std::int64_t> k, std::int64_t i) {
            const auto tap = window.tap(at, k);
            if (!tap) return;
            total +=
                x.as<double>()[static_cast<std::size_t>((first + c) * in_size) + *tap] *
                w.as<double>()[static_cast<std::size_t>((co * channels + c) * kernel_size + i)];
          });
        }
        y.as<double>()[to++] = total;
      });
    }
  }
}

constinit const OpDef conv_def = define<Conv>({
    .name = "conv",
    .summary = "Cross-correlation over 1 to 3 spatial axes; padded taps count as 0.",
    .inputs = {"x", "w", "bias?"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- pooling

TensorType infer(const Pool& op, InferArgs& in) {
  require_floating(in, 0);
  const std::size_t axes = spatial_rank(in);
  require_entries(op.kernel, axes, 1, "kernel");
  require_entries(op.strides, axes, 1, "strides");
  require_entries(op.dilations, axes, 1, "dilations");
  require_entries(op.padding_low, axes, 0, "padding_low");
  require_entries(op.padding_high, axes, 0, "padding_high");
  const Shape& x = in[0].shape;
  Shape y{x[0], x[1]};
  for (std::size_t i = 0; i < axes; ++i) {
    const Dim padded = x[i + 2] + op.padding_low[i] + op.padding_high[i];
    const std::int64_t span = (op.kernel[i] - 1) * op.dilations[i] + 1;
    Dim extent = window_extent(padded, span, op.strides[i]);
    if (op.ceil_mode) {
      // A window that would start in the padding behind the input is left out.
      const Dim starts = floor_div(x[i + 2] + op.padding_low[i] - 1, op.strides[i]) + 1;
      extent = min(ceil_div(padded - span, op.strides[i]) + 1, starts);
    }
    require_positive(extent, i);
    y.push_back(extent);
  }
  return {in[0].dtype, std::move(y)};
}

namespace {

// Taps of a window that lie in the input extended by its padding: what `count_include_pad` counts.
std::int64_t padded_taps(const Pool& op, const Window& window, std::span<const std::int64_t> at) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::int64_t taps = 0;
    for (std::int64_t k = 0; k < window.kernel[i]; ++k) {
      const std::int64_t place = at[i] * op.strides[i] + k * op.dilations[i] - op.padding_low[i];
      taps += place < window.input[i] + op.padding_high[i];
    }
    count *= taps;
  }
  return count;
}

double pool_window(const Pool& op, const Window& window, std::span<const std::int64_t> at,
                   std::span<const double> channel) {
  double total = 0;
  double top = -INFINITY;
  std::int64_t count = 0;
  for_each_index(window.kernel, [&](std::span<const std::int64_t> k, std::int64_t) {
    const auto tap = window.tap(at, k);
    if (!tap) return;
    const double v = channel[*tap];
    if (std::isnan(v) || v > top) top = std::isnan(top) ? top : v;
    total += v;
    ++count;
  });
  if (op.kind == Pooling::max) return top;
  return total / static_cast<double>(op.count_include_pad ? padded_taps(op, window, at) : count);
}

}  // namespace

void evaluate(const Pool& op, Evaluation& run) {
  const HostArray& x = run.in(0);
  HostArray& y = run.out();
  const Window window{spatial(x.dims()), op.kernel, op.strides, op.padding_low, op.dilations};
  const auto in_size = static_cast<std::size_t>(product(window.input));
  const std::vector<std::int64_t> out = spatial(y.dims());
  const std::int64_t channels = y.dims()[0] * y.dims()[1];
  std::size_t to = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::span<const double> channel(
        x.as<double>().data() + static_cast<std::size_t>(c) * in_size, in_size);
    for_each_index(out, [&](std::span<const std::int64_t> at, std::int64_t) {
      y.as<double>()[to++] = pool_window(op, window, at, channel);
    });
  }
}

constinit const OpDef pool_def = define<Pool>({
    .name = "pool",
    .summary = "Maximum (NaN if any is; -inf of padding alone) or average of each window over 1 to "
               "3 spatial axes.",
    .inputs = {"x"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- builders

inline namespace v0 {

namespace {

std::vector<std::int64_t> or_all(const std::vector<std::int64_t>& list, std::size_t axes,
                                 std::int64_t value) {
  return list.empty() ? std::vector<std::int64_t>(axes, value) : list;
}

std::size_t spatial_axes(Value x) { return x.rank() < 2 ? 0 : x.rank() - 2; }

}  // namespace

Value conv(Value x, Value w, Value bias, const ConvOptions& options) {
  const std::size_t axes = spatial_axes(x);
  return x.graph().add1(
      make_op(conv_def, Conv{or_all(options.strides, axes, 1), or_all(options.padding_low, axes, 0),
                             or_all(options.padding_high, axes, 0),
                             or_all(options.dilations, axes, 1), options.groups}),
      {x, w, bias});
}

Value pool(Value x, Pooling kind, const PoolOptions& options) {
  const std::size_t axes = spatial_axes(x);
  Pool op{.kind = kind,
          .kernel = options.kernel,
          .strides = or_all(options.strides, axes, 1),
          .padding_low = or_all(options.padding_low, axes, 0),
          .padding_high = or_all(options.padding_high, axes, 0),
          .dilations = or_all(options.dilations, axes, 1),
          .ceil_mode = options.ceil_mode,
          .count_include_pad = options.count_include_pad};
  return x.graph().add1(make_op(pool_def, std::move(op)), {x});
}

}  // namespace v0
}  // namespace rlx
