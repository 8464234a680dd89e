#include "rlx/shape.h"

#include <algorithm>

namespace rlx {
inline namespace v0 {

Shape Shape::of(std::span<const std::int64_t> extents) {
  return Shape(std::vector<Dim>(extents.begin(), extents.end()));
}

bool Shape::is_static() const noexcept {
  return std::all_of(dims_.begin(), dims_.end(), [](Dim d) { return d.is_constant(); });
}

std::optional<std::vector<std::int64_t>> Shape::static_extents() const {
  if (!is_static()) return std::nullopt;
  std::vector<std::int64_t> extents;
  for (const Dim d : dims_) extents.push_back(*d.constant());
  return extents;
}

Dim Shape::element_count() const {
  Dim count(1);
  for (const Dim d : dims_) count = count * d;
  return count;
}

std::vector<std::int64_t> Shape::evaluate(const DimBinding& sizes) const {
  std::vector<std::int64_t> extents;
  extents.reserve(dims_.size());
  for (const Dim d : dims_) extents.push_back(d.evaluate(sizes));
  return extents;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const Dim d : shape) text += (text.size() > 1 ? ", " : "") + d.to_string();
  return text + "]";
}

std::string to_string(const TensorType& type) {
  return std::string(name(type.dtype)) + to_string(type.shape);
}

}  // namespace v0
}  // namespace rlx
