#include <fmt/format.h>

#include "formats/onnx/handlers.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

using Values = std::vector<Value>;

Values gather_of(const Site& site) {
  return {gather(site.input(0), site.input(1), site.integer("axis", 0))};
}
Values gather_elements_of(const Site& site) {
  return {gather_elements(site.input(0), site.input(1), site.integer("axis", 0))};
}
Values gather_nd_of(const Site& site) {
  return {gather_nd(site.input(0), site.input(1), site.integer("batch_dims", 0))};
}

Values one_hot_of(const Site& site) {
  Value indices = site.input(0);
  if (indices.dtype() != i32 && indices.dtype() != i64) indices = cast(indices, i64);
  const std::vector<Dim> depth = site.extents(1, "the depth");
  const Value values = site.input(2);
  if (depth.size() != 1)
    throw ShapeError(fmt::format("the depth has {} elements, expected one", depth.size()));
  if (values.shape() != Shape{2})
    throw ShapeError(fmt::format("values is {}, expected [2]", to_string(values.shape())));
  const auto value = [&](std::int64_t i) { return reshape(slice_axis(values, 0, i, 1), {}); };
  return {one_hot(indices, depth[0], value(0), value(1), site.integer("axis", -1))};
}

constexpr HandlerRow kRows[] = {
    {"Gather", gather_of},
    {"GatherElements", gather_elements_of},
    {"GatherND", gather_nd_of},
    {"OneHot", one_hot_of},
};

}  // namespace

std::span<const HandlerRow> indexing_handlers() { return kRows; }

}  // namespace rlx::onnx
