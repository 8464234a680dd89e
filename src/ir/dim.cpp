#include "rlx/dim.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "rlx/error.h"

namespace rlx {

namespace {

using Limits = std::numeric_limits<std::int64_t>;
constexpr std::int64_t kMin = Limits::min();
constexpr std::int64_t kMax = Limits::max();

// A product of atoms (symbols and divisions, remainders, minima, maxima), sorted by text.
using Monomial = std::vector<const DimExpr*>;

struct ByText {
  bool operator()(const Monomial& a, const Monomial& b) const;
};

// A polynomial without zero coefficients; the empty monomial holds the constant.
using Polynomial = std::map<Monomial, std::int64_t, ByText>;

struct Range {
  std::int64_t low = kMin;
  std::int64_t high = kMax;
};

}  // namespace

struct DimExpr {
  Dim::Kind kind;
  std::int64_t value = 0;            // of a constant
  std::vector<const DimExpr*> args;  // of an atom other than a symbol
  Polynomial terms;                  // of a sum
  Range range;
  std::size_t complexity = 0;
  std::string text;
  std::string name = {};  // of a symbol
};

namespace {

bool ByText::operator()(const Monomial& a, const Monomial& b) const {
  // Products of more factors first, so that texts read from the highest power to the constant.
  if (a.size() != b.size()) return a.size() > b.size();
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const DimExpr* x, const DimExpr* y) { return x->text < y->text; });
}

[[noreturn]] void overflow() { throw ShapeError("the arithmetic of an extent overflows 64 bits"); }

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) overflow();
  return r;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) overflow();
  return r;
}

std::int64_t floor_div_value(std::int64_t a, std::int64_t b) {
  if (b == 0) throw ShapeError(fmt::format("the extent {} is divided by zero", a));
  if (a == kMin && b == -1) overflow();
  const std::int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

std::int64_t ceil_div_value(std::int64_t a, std::int64_t b) {
  if (a == kMin) overflow();
  return -floor_div_value(-a, b);
}

std::int64_t mod_value(std::int64_t a, std::int64_t b) {
  return a - checked_mul(floor_div_value(a, b), b);
}

// Bounds saturate: the ends of the range mean "unknown".
std::int64_t bound_add(std::int64_t a, std::int64_t b, std::int64_t unknown) {
  std::int64_t r = 0;
  if (a == unknown || b == unknown || __builtin_add_overflow(a, b, &r)) return unknown;
  return r;
}

std::int64_t bound_mul(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  std::int64_t r = 0;
  const bool a_infinite = a == kMin || a == kMax;
  const bool b_infinite = b == kMin || b == kMax;
  if (a_infinite || b_infinite || __builtin_mul_overflow(a, b, &r))
    return (a < 0) == (b < 0) ? kMax : kMin;
  return r;
}

Range operator*(Range a, Range b) {
  const std::int64_t ends[] = {bound_mul(a.low, b.low), bound_mul(a.low, b.high),
                               bound_mul(a.high, b.low), bound_mul(a.high, b.high)};
  return {*std::min_element(std::begin(ends), std::end(ends)),
          *std::max_element(std::begin(ends), std::end(ends))};
}

Range operator+(Range a, Range b) {
  return {bound_add(a.low, b.low, kMin), bound_add(a.high, b.high, kMax)};
}

class Table {
 public:
  static Table& instance() {
    static auto* table = new Table;  // never destroyed: Dims may outlive every other static
    return *table;
  }

  const DimExpr* intern(DimExpr expr) {
    const std::lock_guard lock(mutex_);
    auto& slot = table_[expr.text];
    if (!slot) slot = std::make_unique<DimExpr>(std::move(expr));
    return slot.get();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<const DimExpr>> table_;
};

const DimExpr* intern_constant(std::int64_t value) {
  return Table::instance().intern({.kind = Dim::Kind::constant,
                                   .value = value,
                                   .args = {},
                                   .terms = {},
                                   .range = {value, value},
                                   .complexity = 0,
                                   .text = fmt::format("{}", value)});
}

bool is_plain_name(std::string_view name) {
  const auto first = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
  const auto later = [&](char c) {
    return first(c) || std::isdigit(static_cast<unsigned char>(c)) || c == '.';
  };
  constexpr std::string_view kFunctions[] = {"floordiv", "ceildiv", "mod", "min", "max"};
  return !name.empty() && first(name[0]) && std::all_of(name.begin(), name.end(), later) &&
         std::find(std::begin(kFunctions), std::end(kFunctions), name) == std::end(kFunctions);
}

std::string symbol_text(std::string_view name) {
  if (is_plain_name(name)) return std::string(name);
  std::string text = "'";
  for (const char c : name) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  return text + "'";
}

std::string monomial_text(const Monomial& monomial) {
  std::string text;
  for (const DimExpr* atom : monomial) text += (text.empty() ? "" : "*") + atom->text;
  return text;
}

std::string polynomial_text(const Polynomial& terms) {
  std::string text;
  for (const auto& [monomial, coefficient] : terms) {
    const bool negative = coefficient < 0 && coefficient != kMin;
    if (!text.empty()) text += negative ? " - " : " + ";
    const std::int64_t shown = negative && !text.empty() ? -coefficient : coefficient;
    if (monomial.empty()) {
      text += fmt::format("{}", shown);
    } else if (shown == 1) {
      text += monomial_text(monomial);
    } else {
      text += fmt::format("{}*{}", shown, monomial_text(monomial));
    }
  }
  return text;
}

Range polynomial_range(const Polynomial& terms) {
  Range total{0, 0};
  for (const auto& [monomial, coefficient] : terms) {
    Range term{coefficient, coefficient};
    for (const DimExpr* atom : monomial) term = term * atom->range;
    total = total + term;
  }
  return total;
}

Polynomial as_polynomial(const DimExpr* e) {
  if (e->kind == Dim::Kind::sum) return e->terms;
  if (e->kind == Dim::Kind::constant)
    return e->value == 0 ? Polynomial{} : Polynomial{{{}, e->value}};
  return {{{e}, 1}};
}

const DimExpr* intern_polynomial(Polynomial terms) {
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  if (terms.empty()) return intern_constant(0);
  const auto& [monomial, coefficient] = *terms.begin();
  if (terms.size() == 1 && monomial.empty()) return intern_constant(coefficient);
  if (terms.size() == 1 && monomial.size() == 1 && coefficient == 1) return monomial[0];
  std::size_t complexity = terms.size() - 1;
  for (const auto& [factors, c] : terms) {
    complexity += (c != 1) + factors.size();
    for (const DimExpr* atom : factors) complexity += atom->complexity;
  }
  const Range range = polynomial_range(terms);
  std::string text = polynomial_text(terms);
  return Table::instance().intern({.kind = Dim::Kind::sum,
                                   .value = 0,
                                   .args = {},
                                   .terms = std::move(terms),
                                   .range = range,
                                   .complexity = complexity,
                                   .text = std::move(text)});
}

constexpr const char* function_name(Dim::Kind kind) {
  switch (kind) {
    case Dim::Kind::floor_div:
      return "floordiv";
    case Dim::Kind::ceil_div:
      return "ceildiv";
    case Dim::Kind::mod:
      return "mod";
    case Dim::Kind::min:
      return "min";
    default:
      return "max";
  }
}

Range atom_range(Dim::Kind kind, const DimExpr& a, const DimExpr& b) {
  switch (kind) {
    case Dim::Kind::min:
      return {std::min(a.range.low, b.range.low), std::min(a.range.high, b.range.high)};
    case Dim::Kind::max:
      return {std::max(a.range.low, b.range.low), std::max(a.range.high, b.range.high)};
    case Dim::Kind::mod:
      if (b.range.low > 0) return {0, b.range.high == kMax ? kMax : b.range.high - 1};
      return {};
    default:
      break;
  }
  if (a.range.low < 0 || b.range.low < 0) return {};
  // With a divisor of at least 1 a quotient is at most its dividend.
  return {0, a.range.high};
}

const DimExpr* intern_atom(Dim::Kind kind, const DimExpr* a, const DimExpr* b) {
  return Table::instance().intern(
      {.kind = kind,
       .value = 0,
       .args = {a, b},
       .terms = {},
       .range = atom_range(kind, *a, *b),
       .complexity = a->complexity + b->complexity + 2,
       .text = fmt::format("{}({}, {})", function_name(kind), a->text, b->text)});
}

// Splits a into (a - rest) / c and a rest whose coefficients c does not divide.
std::pair<Polynomial, Polynomial> split_multiples(const DimExpr* a, std::int64_t c) {
  Polynomial quotient;
  Polynomial rest;
  for (const auto& [monomial, coefficient] : as_polynomial(a)) {
    (coefficient % c == 0 ? quotient : rest)[monomial] =
        coefficient % c == 0 ? coefficient / c : coefficient;
  }
  return {std::move(quotient), std::move(rest)};
}

// Removes the factors of `divisor` from `monomial`; nothing if one is missing.
std::optional<Monomial> without_factors(Monomial monomial, const Monomial& divisor) {
  for (const DimExpr* factor : divisor) {
    const auto at = std::find(monomial.begin(), monomial.end(), factor);
    if (at == monomial.end()) return std::nullopt;
    monomial.erase(at);
  }
  return monomial;
}

Dim extreme(Dim::Kind kind, Dim a, Dim b) {
  if (a == b) return a;
  const bool wants_least = kind == Dim::Kind::min;
  const Dim difference = a - b;
  if (difference.lower_bound() >= 0) return wants_least ? b : a;
  if (difference.upper_bound() <= 0) return wants_least ? a : b;
  const DimExpr* x = a.expr();
  const DimExpr* y = b.expr();
  if (y->text < x->text) std::swap(x, y);
  return Dim(intern_atom(kind, x, y));
}

// Reads the text form of expressions by recursive descent.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Dim read_all() {
    const Dim d = sum();
    skip_spaces();
    if (at_ != text_.size()) fail();
    return d;
  }

 private:
  static constexpr int kMaxDepth = 64;

  [[noreturn]] void fail() const {
    throw InvalidArgument(fmt::format("cannot read the extent \"{}\" at character {}", text_, at_));
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool accept(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail();
  }

  Dim sum() {
    if (++depth_ > kMaxDepth) fail();
    Dim total = accept('-') ? -product() : product();
    for (;;) {
      if (accept('+')) {
        total = total + product();
      } else if (accept('-')) {
        total = total - product();
      } else {
        --depth_;
        return total;
      }
    }
  }

  Dim product() {
    Dim total = atom();
    while (accept('*')) total = total * atom();
    return total;
  }

  Dim atom() {
    skip_spaces();
    if (at_ == text_.size()) fail();
    if (accept('(')) {
      const Dim d = sum();
      expect(')');
      return d;
    }
    const char c = text_[at_];
    if (c == '\'') return Dim::symbol(quoted());
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    return call_or_symbol();
  }

  Dim number() {
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail();
    at_ = static_cast<std::size_t>(end - text_.data());
    return Dim(value);
  }

  std::string quoted() {
    std::string name;
    for (++at_; at_ < text_.size() && text_[at_] != '\''; ++at_) {
      if (text_[at_] == '\\' && ++at_ == text_.size()) fail();
      name += text_[at_];
    }
    expect('\'');
    return name;
  }

  Dim call_or_symbol() {
    const std::size_t from = at_;
    const auto part_of_name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    };
    while (at_ < text_.size() && part_of_name(text_[at_])) ++at_;
    const std::string_view word = text_.substr(from, at_ - from);
    using Function = Dim (*)(Dim, Dim);
    constexpr std::pair<std::string_view, Function> kFunctions[] = {
        {"floordiv", floor_div}, {"ceildiv", ceil_div}, {"mod", mod}, {"min", min}, {"max", max}};
    for (const auto& [name, function] : kFunctions) {
      if (word == name) return call(function);
    }
    if (!is_plain_name(word)) fail();
    return Dim::symbol(word);
  }

  Dim call(Dim (*function)(Dim, Dim)) {
    expect('(');
    const Dim a = sum();
    expect(',');
    const Dim b = sum();
    expect(')');
    return function(a, b);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

std::int64_t evaluate_expr(const DimExpr& e, const DimBinding& sizes);

std::int64_t evaluate_polynomial(const DimExpr& e, const DimBinding& sizes) {
  std::int64_t total = 0;
  for (const auto& [monomial, coefficient] : e.terms) {
    std::int64_t term = coefficient;
    for (const DimExpr* atom : monomial) term = checked_mul(term, evaluate_expr(*atom, sizes));
    total = checked_add(total, term);
  }
  return total;
}

std::int64_t evaluate_expr(const DimExpr& e, const DimBinding& sizes) {
  switch (e.kind) {
    case Dim::Kind::constant:
      return e.value;
    case Dim::Kind::sum:
      return evaluate_polynomial(e, sizes);
    case Dim::Kind::symbol: {
      const auto found = sizes.find(e.name);
      if (!found) throw InvalidArgument(fmt::format("the dimension {} has no size", e.text));
      return *found;
    }
    default:
      break;
  }
  const std::int64_t a = evaluate_expr(*e.args[0], sizes);
  const std::int64_t b = evaluate_expr(*e.args[1], sizes);
  switch (e.kind) {
    case Dim::Kind::floor_div:
      return floor_div_value(a, b);
    case Dim::Kind::ceil_div:
      return ceil_div_value(a, b);
    case Dim::Kind::mod:
      return mod_value(a, b);
    case Dim::Kind::min:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

void collect(const DimExpr& e, std::vector<std::string>& names) {
  if (e.kind == Dim::Kind::symbol) {
    if (std::find(names.begin(), names.end(), e.name) == names.end()) names.push_back(e.name);
  }
  for (const DimExpr* arg : e.args) collect(*arg, names);
  for (const auto& [monomial, coefficient] : e.terms) {
    for (const DimExpr* atom : monomial) collect(*atom, names);
  }
}

}  // namespace

inline namespace v0 {

void DimBinding::set(std::string_view symbol, std::int64_t size) {
  for (auto& [name, value] : entries_) {
    if (name == symbol) {
      value = size;
      return;
    }
  }
  entries_.emplace_back(symbol, size);
}

std::optional<std::int64_t> DimBinding::find(std::string_view symbol) const {
  for (const auto& [name, value] : entries_) {
    if (name == symbol) return value;
  }
  return std::nullopt;
}

Dim::Dim(std::int64_t value) : expr_(intern_constant(value)) {}
Dim::Dim(const char* symbol) : Dim(Dim::symbol(symbol)) {}

Dim Dim::symbol(std::string_view name) {
  if (name.empty()) throw InvalidArgument("a dimension needs a name");
  return Dim(Table::instance().intern({.kind = Kind::symbol,
                                       .value = 0,
                                       .args = {},
                                       .terms = {},
                                       .range = {0, kMax},
                                       .complexity = 0,
                                       .text = symbol_text(name),
                                       .name = std::string(name)}));
}

Dim Dim::parse(std::string_view text) { return Reader(text).read_all(); }

Dim::Kind Dim::kind() const noexcept { return expr_->kind; }

std::optional<std::int64_t> Dim::constant() const noexcept {
  if (!is_constant()) return std::nullopt;
  return expr_->value;
}

std::string_view Dim::symbol_name() const noexcept { return expr_->name; }
std::int64_t Dim::lower_bound() const noexcept { return expr_->range.low; }
std::int64_t Dim::upper_bound() const noexcept { return expr_->range.high; }
std::int64_t Dim::evaluate(const DimBinding& sizes) const { return evaluate_expr(*expr_, sizes); }
void Dim::collect_symbols(std::vector<std::string>& names) const { collect(*expr_, names); }
std::size_t Dim::complexity() const noexcept { return expr_->complexity; }
const std::string& Dim::to_string() const noexcept { return expr_->text; }

Dim operator+(Dim a, Dim b) {
  Polynomial total = as_polynomial(a.expr_);
  for (const auto& [monomial, coefficient] : as_polynomial(b.expr_)) {
    total[monomial] = checked_add(total[monomial], coefficient);
  }
  return Dim(intern_polynomial(std::move(total)));
}

Dim operator*(Dim a, Dim b) {
  Polynomial total;
  for (const auto& [x, x_coefficient] : as_polynomial(a.expr_)) {
    for (const auto& [y, y_coefficient] : as_polynomial(b.expr_)) {
      Monomial product = x;
      product.insert(product.end(), y.begin(), y.end());
      std::sort(product.begin(), product.end(),
                [](const DimExpr* p, const DimExpr* q) { return p->text < q->text; });
      total[product] = checked_add(total[product], checked_mul(x_coefficient, y_coefficient));
    }
  }
  return Dim(intern_polynomial(std::move(total)));
}

Dim floor_div(Dim a, Dim b) {
  if (const auto exact = exact_div(a, b)) return *exact;
  const auto divisor = b.constant();
  if (!divisor || *divisor <= 0) return Dim(intern_atom(Dim::Kind::floor_div, a.expr(), b.expr()));
  if (a.is_constant()) return floor_div_value(*a.constant(), *divisor);
  auto [quotient, rest] = split_multiples(a.expr(), *divisor);
  const Dim whole(intern_polynomial(std::move(quotient)));
  const Dim remainder(intern_polynomial(std::move(rest)));
  if (remainder.lower_bound() >= 0 && remainder.upper_bound() < *divisor) return whole;
  if (remainder.is_constant()) return whole + floor_div_value(*remainder.constant(), *divisor);
  return whole + Dim(intern_atom(Dim::Kind::floor_div, remainder.expr(), b.expr()));
}

Dim ceil_div(Dim a, Dim b) {
  if (const auto exact = exact_div(a, b)) return *exact;
  const auto divisor = b.constant();
  if (!divisor || *divisor <= 0) return Dim(intern_atom(Dim::Kind::ceil_div, a.expr(), b.expr()));
  return floor_div(a + Dim(*divisor - 1), b);
}

Dim mod(Dim a, Dim b) {
  const auto divisor = b.constant();
  if (!divisor || *divisor <= 0) {
    if (exact_div(a, b)) return 0;
    return Dim(intern_atom(Dim::Kind::mod, a.expr(), b.expr()));
  }
  if (a.is_constant()) return mod_value(*a.constant(), *divisor);
  const Dim rest(intern_polynomial(split_multiples(a.expr(), *divisor).second));
  if (rest.is_constant()) return mod_value(*rest.constant(), *divisor);
  if (rest.lower_bound() >= 0 && rest.upper_bound() < *divisor) return rest;
  return Dim(intern_atom(Dim::Kind::mod, rest.expr(), b.expr()));
}

Dim min(Dim a, Dim b) { return extreme(Dim::Kind::min, a, b); }
Dim max(Dim a, Dim b) { return extreme(Dim::Kind::max, a, b); }

std::optional<Dim> exact_div(Dim a, Dim b) {
  const Polynomial divisor = as_polynomial(b.expr());
  if (divisor.size() != 1) {
    if (a == b && !divisor.empty()) return Dim(1);
    return std::nullopt;
  }
  const auto& [factors, coefficient] = *divisor.begin();
  Polynomial quotient;
  for (const auto& [monomial, c] : as_polynomial(a.expr())) {
    const auto rest = without_factors(monomial, factors);
    if (!rest || c == kMin || c % coefficient != 0) return std::nullopt;
    quotient[*rest] = c / coefficient;
  }
  return Dim(intern_polynomial(std::move(quotient)));
}

}  // namespace v0
}  // namespace rlx
