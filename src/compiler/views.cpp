#include "compiler/views.h"

#include "base/check.h"
#include "ops/movement.h"

namespace rlx {

ValueView dense_view(std::size_t buffer, std::vector<std::int64_t> dims) {
  ValueView view{buffer, 0, std::move(dims), {}};
  view.strides.resize(view.dims.size());
  std::int64_t stride = 1;
  for (std::size_t axis = view.dims.size(); axis-- > 0;) {
    view.strides[axis] = stride;
    stride *= view.dims[axis];
  }
  return view;
}

bool is_dense(const ValueView& view) {
  std::int64_t stride = 1;
  for (std::size_t axis = view.dims.size(); axis-- > 0;) {
    if (view.dims[axis] == 0) return true;
    if (view.dims[axis] != 1 && view.strides[axis] != stride) return false;
    stride *= view.dims[axis];
  }
  return true;
}

bool is_view_candidate(const Node& node) {
  return node.is(reshape_def) || node.is(transpose_def) || node.is(broadcast_def) ||
         node.is(slice_def);
}

namespace {

ValueView transposed(const Transpose& op, const ValueView& input) {
  ValueView view = input;
  for (std::size_t axis = 0; axis < op.permutation.size(); ++axis) {
    const auto from = static_cast<std::size_t>(op.permutation[axis]);
    view.dims[axis] = input.dims[from];
    view.strides[axis] = input.strides[from];
  }
  return view;
}

ValueView broadcast_view(const ValueView& input, std::vector<std::int64_t> dims) {
  ValueView view{input.buffer, input.offset, std::move(dims), {}};
  view.strides.assign(view.dims.size(), 0);
  const std::size_t lead = view.dims.size() - input.dims.size();
  for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
    if (input.dims[axis] == view.dims[lead + axis]) view.strides[lead + axis] = input.strides[axis];
  }
  return view;
}

ValueView sliced(const Slice& op, const ValueView& input, const DimBinding& sizes) {
  ValueView view = input;
  for (std::size_t axis = 0; axis < op.starts.size(); ++axis) {
    const std::int64_t step = op.steps.empty() ? 1 : op.steps[axis];
    view.offset += op.starts[axis].evaluate(sizes) * input.strides[axis];
    view.dims[axis] = op.sizes[axis].evaluate(sizes);
    view.strides[axis] = input.strides[axis] * step;
  }
  // Of nothing there is no first element to point at.
  if (view.size() == 0) view.offset = input.offset;
  return view;
}

// Splits and joins axes: each run of old axes that steps like one axis is cut into the new extents
// of its product.
std::optional<ValueView> reshaped(const ValueView& input, std::vector<std::int64_t> dims) {
  if (input.size() == 0 || is_dense(input)) {
    ValueView view = dense_view(input.buffer, std::move(dims));
    view.offset = input.offset;
    return view;
  }
  ValueView view{input.buffer, input.offset, dims, std::vector<std::int64_t>(dims.size(), 1)};
  std::size_t from = 0;
  std::size_t to = 0;
  const auto skip_ones = [](const std::vector<std::int64_t>& d, std::size_t i) {
    while (i < d.size() && d[i] == 1) ++i;
    return i;
  };
  for (;;) {
    from = skip_ones(input.dims, from);
    to = skip_ones(dims, to);
    if (from == input.dims.size() || to == dims.size()) break;
    std::size_t from_end = from + 1;
    std::size_t to_end = to + 1;
    std::int64_t old_count = input.dims[from];
    std::int64_t new_count = dims[to];
    while (old_count != new_count) {
      if (old_count < new_count) {
        if (from_end == input.dims.size()) return std::nullopt;
        old_count *= input.dims[from_end++];
      } else {
        if (to_end == dims.size()) return std::nullopt;
        new_count *= dims[to_end++];
      }
    }
    std::int64_t stride = -1;  // of the innermost axis of the run that is longer than 1
    for (std::size_t axis = from_end; axis-- > from;) {
      if (input.dims[axis] == 1) continue;
      if (stride < 0) {
        stride = input.strides[axis];
      }
    }
    std::int64_t expected = stride;
    for (std::size_t axis = from_end; axis-- > from;) {
      if (input.dims[axis] == 1) continue;
      if (input.strides[axis] != expected) return std::nullopt;
      expected *= input.dims[axis];
    }
    for (std::size_t axis = to_end; axis-- > to;) {
      view.strides[axis] = stride;
      stride *= dims[axis];
    }
    from = from_end;
    to = to_end;
  }
  return view;
}

}  // namespace

std::optional<ValueView> view_of(const Node& node, const ValueView& input,
                                 const DimBinding& sizes) {
  if (const auto* op = node.as<Transpose>()) return transposed(*op, input);
  if (const auto* op = node.as<Slice>()) return sliced(*op, input, sizes);
  std::vector<std::int64_t> dims = node.type().shape.evaluate(sizes);
  if (node.is(broadcast_def)) return broadcast_view(input, std::move(dims));
  RLX_ASSERT(node.is(reshape_def));
  return reshaped(input, std::move(dims));
}

}  // namespace rlx
