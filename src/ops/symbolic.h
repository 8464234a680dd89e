#pragma once

#include <map>
#include <optional>
#include <vector>

#include "rlx/graph.h"

namespace rlx {

/// The elements of small integer and bool tensors as extents, row-major: what a graph computes from
/// the shapes of its inputs (`size`, `concat`, `gather`, … chains), whatever those shapes are.
///
/// Bools are 0 and 1, or an expression that is one of them. Arithmetic is that of 64-bit integers
/// that do not overflow; 32-bit integers are taken not to overflow either. Answers are kept, so an
/// object serves one graph for as long as its existing nodes do not change.
class SymbolicValues {
 public:
  /// Tensors with more elements are not looked at.
  static constexpr std::int64_t kMaxElements = 256;
  /// Nor are expressions with more operations (`Dim::complexity`).
  static constexpr std::size_t kMaxComplexity = 256;

  /// Nothing where an element depends on data.
  std::optional<std::vector<Dim>> elements(Value value);
  /// Whether a one-element bool is true for all sizes of the symbols, or false for all.
  std::optional<bool> decide(Value predicate);

 private:
  using Elements = std::optional<std::vector<Dim>>;
  using Key = std::pair<const Node*, std::size_t>;
  bool is_known(Value value) const { return known_.count({value.node(), value.index()}) != 0; }

  std::map<Key, Elements> known_;
};

/// `SymbolicValues::elements` for a single question.
std::optional<std::vector<Dim>> symbolic_value(Value value);

/// A tensor of integers or bools with these elements: a constant where all are, else joined from
/// `size` leaves. `dims` are its extents, of rank 0 to 2.
Value symbolic_tensor(Graph& graph, DType dtype, const std::vector<Dim>& elements,
                      const std::vector<std::int64_t>& dims);

}  // namespace rlx
