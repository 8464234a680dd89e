#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "formats/dense.h"
#include "formats/onnx/handlers.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

using Values = std::vector<Value>;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kLargestWindow = 1'000'000'000;  // keeps sums of products within 64 bits

/// The attributes that convolutions and pools share, one entry a spatial axis.
struct Window {
  Ints kernel, strides, dilations;
  std::vector<Dim> low, high;

  std::size_t rank() const { return kernel.size(); }
};

Ints window_attribute(const Site& site, std::string_view name, std::size_t rank,
                      std::int64_t otherwise, std::int64_t least) {
  Ints values = site.integers(name);
  if (values.empty()) values.assign(rank, otherwise);
  if (values.size() != rank) {
    throw ShapeError(
        fmt::format("{} has {} entries for {} spatial axes", name, values.size(), rank));
  }
  for (const std::int64_t v : values) {
    if (v < least || v > kLargestWindow)
      site.bad_attribute(name, fmt::format("from {} to {}", least, kLargestWindow));
  }
  return values;
}

/// SAME_*: as many outputs as strides fit into the extent.
void pad_for_same_size(Value x, bool more_at_the_end, Window& w) {
  for (std::size_t i = 0; i < w.rank(); ++i) {
    const Dim extent = x.shape()[i + 2];
    const std::int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const Dim steps = ceil_div(extent, w.strides[i]) - 1;
    const Dim total = max(steps * w.strides[i] + reach - extent, 0);
    const Dim less = floor_div(total, 2);
    w.low[i] = more_at_the_end ? less : total - less;
    w.high[i] = more_at_the_end ? total - less : less;
  }
}

Window window_of(const Site& site, Value x, const Ints& kernel) {
  if (x.rank() != kernel.size() + 2 || kernel.empty()) {
    throw ShapeError(fmt::format("x is {}, its window {}: expected one extent a spatial axis",
                                 to_string(x.shape()), to_string(kernel)));
  }
  Window w;
  w.kernel = kernel;
  for (const std::int64_t k : kernel) {
    if (k < 1 || k > kLargestWindow) site.bad_attribute("kernel_shape", "of positive extents");
  }
  const std::size_t rank = w.rank();
  w.strides = window_attribute(site, "strides", rank, 1, 1);
  w.dilations = window_attribute(site, "dilations", rank, 1, 1);
  w.low.assign(rank, Dim(0));
  w.high = w.low;
  const std::string_view auto_pad = site.text("auto_pad", "NOTSET");
  if (auto_pad == "VALID") return w;
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    pad_for_same_size(x, auto_pad == "SAME_UPPER", w);
    return w;
  }
  if (auto_pad != "NOTSET" && !auto_pad.empty())
    site.bad_attribute("auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  const Ints pads = window_attribute(site, "pads", 2 * rank, 0, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    w.low[i] = pads[i];
    w.high[i] = pads[rank + i];
  }
  return w;
}

/// Padding as numbers; where it depends on extents, x is padded with `value` before and nothing is
/// left.
struct Padding {
  Value x;
  Ints low, high;
};
Padding numeric_padding(Value x, const Window& w, Value value) {
  Padding p{x, {}, {}};
  const auto is_number = [](Dim d) { return d.is_constant(); };
  const bool known = std::all_of(w.low.begin(), w.low.end(), is_number) &&
                     std::all_of(w.high.begin(), w.high.end(), is_number);
  if (known) {
    for (const Dim d : w.low) p.low.push_back(*d.constant());
    for (const Dim d : w.high) p.high.push_back(*d.constant());
    return p;
  }
  std::vector<Dim> low = {0, 0};
  std::vector<Dim> high = low;
  low.insert(low.end(), w.low.begin(), w.low.end());
  high.insert(high.end(), w.high.begin(), w.high.end());
  p.x = pad(x, std::move(low), std::move(high), PadMode::constant, value);
  p.low.assign(w.rank(), 0);
  p.high = p.low;
  return p;
}

Ints kernel_extents(const Site& site, Value w) {
  Ints kernel;
  for (std::size_t axis = 2; axis < w.rank(); ++axis) {
    if (!w.shape()[axis].is_constant())
      throw Unsupported(fmt::format("the kernel's extents {} are not known", to_string(w.shape())));
    kernel.push_back(*w.shape()[axis].constant());
  }
  const Ints declared = site.integers("kernel_shape");
  if (!declared.empty() && declared != kernel) {
    throw ShapeError(
        fmt::format("kernel_shape is {}, W is {}", to_string(declared), to_string(w.shape())));
  }
  return kernel;
}

Values conv_of(const Site& site) {
  const Value x = site.input(0);
  const Value w = site.input(1);
  const Window window = window_of(site, x, kernel_extents(site, w));
  Padding padding = numeric_padding(x, window, scalar(x, 0));
  ConvOptions options;
  options.strides = window.strides;
  options.dilations = window.dilations;
  options.padding_low = std::move(padding.low);
  options.padding_high = std::move(padding.high);
  options.groups = site.integer("group", 1);
  return {conv(padding.x, w, site.optional_input(2), options)};
}

Values pool_of(const Site& site, Pooling kind) {
  if (site.wants_output(1)) throw Unsupported("its indices are used");
  const Value x = site.input(0);
  const Window window = window_of(site, x, site.integers("kernel_shape"));
  const bool averages = kind == Pooling::average;
  PoolOptions options;
  options.count_include_pad = averages && site.flag("count_include_pad");
  if (averages && !options.count_include_pad && !window.low[0].is_constant())
    throw Unsupported("the padding of an average depends on extents");
  const double outside = averages ? 0 : -std::numeric_limits<double>::infinity();
  Padding padding = numeric_padding(x, window, scalar(x, outside));
  options.kernel = window.kernel;
  options.strides = window.strides;
  options.dilations = window.dilations;
  options.padding_low = std::move(padding.low);
  options.padding_high = std::move(padding.high);
  options.ceil_mode = site.flag("ceil_mode");
  return {pool(padding.x, kind, options)};
}
Values max_pool(const Site& site) { return pool_of(site, Pooling::max); }
Values average_pool(const Site& site) { return pool_of(site, Pooling::average); }

template <Reduction Kind>
Values global_pool(const Site& site) {
  const Value x = site.input(0);
  if (x.rank() < 3) {
    throw ShapeError(fmt::format("x is {}, expected rank 3 or more", to_string(x.shape())));
  }
  Ints axes(x.rank() - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return {reduce(x, Kind, std::move(axes), true)};
}

constexpr HandlerRow kRows[] = {
    {"AveragePool", average_pool},
    {"Conv", conv_of},
    {"GlobalAveragePool", global_pool<Reduction::mean>},
    {"GlobalMaxPool", global_pool<Reduction::max>},
    {"MaxPool", max_pool},
};

}  // namespace

std::span<const HandlerRow> conv_handlers() { return kRows; }

}  // namespace rlx::onnx
