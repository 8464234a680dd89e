#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/export.h"

namespace rlx {

struct DimExpr;

inline namespace v0 {

/// Sizes of symbols, for `Dim::evaluate`.
class RLX_EXPORT DimBinding {
 public:
  void set(std::string_view symbol, std::int64_t size);
  std::optional<std::int64_t> find(std::string_view symbol) const;
  std::span<const std::pair<std::string, std::int64_t>> entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, std::int64_t>> entries_;
};

/// An extent: an integer expression over named symbols, kept in one canonical form, so that two
/// Dims denote the same polynomial exactly when they compare equal. Symbols are extents and never
/// negative. A Dim is a pointer into an append-only table and free to copy; all functions are
/// thread-safe. Arithmetic throws `ShapeError` where constants overflow.
class RLX_EXPORT Dim {
 public:
  enum class Kind : std::uint8_t { constant, symbol, sum, floor_div, ceil_div, mod, min, max };

  Dim() : Dim(std::int64_t{0}) {}
  Dim(std::int64_t
          value);  // NOLINT(google-explicit-constructor): {"batch", 784} is how shapes are written
  Dim(int value) : Dim(static_cast<std::int64_t>(value)) {}  // NOLINT(google-explicit-constructor)
  Dim(const char* symbol);                                   // NOLINT(google-explicit-constructor)
  explicit Dim(const DimExpr* expr) : expr_(expr) {}
  static Dim symbol(std::string_view name);
  /// Reads what `to_string` writes. Throws `InvalidArgument`.
  static Dim parse(std::string_view text);

  Kind kind() const noexcept;
  bool is_constant() const noexcept { return kind() == Kind::constant; }
  bool is_symbol() const noexcept { return kind() == Kind::symbol; }
  std::optional<std::int64_t> constant() const noexcept;
  /// Only of a symbol.
  std::string_view symbol_name() const noexcept;

  /// Range facts that hold for all sizes of the symbols; `INT64_MIN` or `INT64_MAX` where nothing
  /// is known.
  std::int64_t lower_bound() const noexcept;
  std::int64_t upper_bound() const noexcept;

  /// The value under `sizes`; throws `InvalidArgument` naming a symbol that has none, `ShapeError`
  /// on overflow and division by zero.
  std::int64_t evaluate(const DimBinding& sizes) const;
  /// Appends the names of the symbols in it, each once.
  void collect_symbols(std::vector<std::string>& names) const;
  /// Number of operations in the expression; symbols and constants are the simplest.
  std::size_t complexity() const noexcept;

  const std::string& to_string() const noexcept;
  const DimExpr* expr() const noexcept { return expr_; }
  bool operator==(const Dim& other) const noexcept { return expr_ == other.expr_; }

  friend RLX_EXPORT Dim operator+(Dim a, Dim b);
  friend RLX_EXPORT Dim operator*(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b) { return a + Dim(-1) * b; }
  friend Dim operator-(Dim a) { return Dim(-1) * a; }

 private:
  const DimExpr* expr_;
};

RLX_EXPORT Dim floor_div(Dim a, Dim b);
RLX_EXPORT Dim ceil_div(Dim a, Dim b);
/// The remainder with the sign of the divisor.
RLX_EXPORT Dim mod(Dim a, Dim b);
RLX_EXPORT Dim min(Dim a, Dim b);
RLX_EXPORT Dim max(Dim a, Dim b);
/// a / b where b is a single product that divides every term of a.
RLX_EXPORT std::optional<Dim> exact_div(Dim a, Dim b);

}  // namespace v0
}  // namespace rlx
