#include "ir/op.h"

#include <fmt/format.h>

#include <algorithm>

namespace rlx {

std::size_t Names::required() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!names_[i].ends_with("?") && !names_[i].ends_with("...")) count = i + 1;
  }
  return count;
}

std::string Names::label(std::size_t i) const {
  if (count_ == 0) return fmt::format("input {}", i);
  if (i + 1 >= count_ && is_variadic()) {
    std::string_view stem = names_[count_ - 1];
    stem.remove_suffix(3);
    return fmt::format("{}[{}]", stem, i + 1 - count_);
  }
  if (i >= count_) return fmt::format("input {}", i);
  std::string_view stem = names_[i];
  if (stem.ends_with("?")) stem.remove_suffix(1);
  return std::string(stem);
}

std::string InferArgs::label(std::size_t i) const { return op_.def().inputs.label(i); }

Dim InferArgs::same(Dim a, Dim b, std::string_view what) {
  if (a == b) return a;
  graph_.require_equal(a, b, node_, what);
  if (a.is_constant() || b.is_constant()) return a.is_constant() ? a : b;
  return b.complexity() < a.complexity() ? b : a;
}

void InferArgs::at_most(Dim a, Dim b, std::string_view what) {
  graph_.require_at_most(a, b, node_, what);
}

std::uint64_t Op::hash() const {
  return hash_mix(hash_bytes(def_->name.data(), def_->name.size(), 7),
                  def_->attributes->hash(attributes_.get()));
}

bool Op::operator==(const Op& other) const {
  return def_ == other.def_ &&
         (attributes_ == other.attributes_ ||
          def_->attributes->equal(attributes_.get(), other.attributes_.get()));
}

}  // namespace rlx
