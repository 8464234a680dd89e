#include "formats/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "formats/dense.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxDepth = 64;

/// Tells others how far the parser has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  const char& operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

/// The library's text without its prefix and without raw bytes of the file.
std::string reason(std::string_view text) {
  const std::size_t start = text.find("syntax error");
  if (start != std::string_view::npos) text.remove_prefix(start);
  std::string out;
  for (const char c : text.substr(0, 200)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return out;
}

}  // namespace

/// Receives the parser's events and builds the tree.
class JsonBuilder {
 public:
  JsonBuilder(std::string_view text, std::uint64_t base)
      : begin_(text.data()),
        end_(begin_ + text.size()),
        base_(base),
        read_(begin_),
        seen_(begin_) {}

  Json build() {
    nlohmann::json::sax_parse(CountingIterator(begin_, &read_), CountingIterator(end_, &read_),
                              this);
    return std::move(root_.front());
  }

  bool null() { return leaf(std::monostate{}); }
  bool boolean(bool v) { return leaf(v); }
  bool number_integer(std::int64_t v) { return leaf(v); }
  bool number_unsigned(std::uint64_t v) {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (v <= kMax) return leaf(static_cast<std::int64_t>(v));
    return leaf(v);
  }
  bool number_float(double v, const std::string&) { return leaf(v); }
  bool string(std::string& v) { return leaf(std::move(v)); }
  bool binary(std::vector<std::uint8_t>&) { return false; }

  bool start_array(std::size_t) { return open(std::vector<Json>()); }
  bool end_array() { return close(); }
  bool start_object(std::size_t) { return open(std::vector<Json::Member>()); }
  bool key(std::string& name) {
    keys_.back() = {std::move(name), token_offset()};
    return true;
  }
  bool end_object() {
    refuse_repeated_keys(std::get<std::vector<Json::Member>>(open_.back().value_));
    return close();
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) {
    const std::uint64_t at = position == 0 ? 0 : position - 1;
    throw FormatError(fmt::format("not valid json: {}", reason(error.what())), base_ + at);
  }

 private:
  struct Key {
    std::string name;
    std::uint64_t offset = 0;
  };

  /// Where the token that was just reported begins. Between tokens stand only these characters; the
  /// parser may have read one of them ahead, after a number.
  std::uint64_t token_offset() {
    constexpr std::string_view kBetween = " \t\r\n,:]}\xEF\xBB\xBF";
    while (seen_ < end_ && kBetween.find(*seen_) != std::string_view::npos) ++seen_;
    const auto offset = base_ + static_cast<std::uint64_t>(seen_ - begin_);
    seen_ = read_;
    return offset;
  }

  void put(Json value) {
    if (open_.empty()) {
      root_.push_back(std::move(value));
      return;
    }
    if (auto* items = std::get_if<std::vector<Json>>(&open_.back().value_)) {
      items->push_back(std::move(value));
      return;
    }
    std::get<std::vector<Json::Member>>(open_.back().value_)
        .push_back({std::move(keys_.back().name), keys_.back().offset, std::move(value)});
  }

  bool leaf(Json::Value value) {
    const std::uint64_t offset = token_offset();
    put(Json(offset, std::move(value)));
    return true;
  }

  bool open(Json::Value value) {
    const std::uint64_t offset = token_offset();
    if (open_.size() == kMaxDepth) {
      throw FormatError(fmt::format("json is nested deeper than {}", kMaxDepth), offset);
    }
    open_.push_back(Json(offset, std::move(value)));
    keys_.emplace_back();
    return true;
  }

  bool close() {
    seen_ = read_;
    Json done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    put(std::move(done));
    return true;
  }

  static void refuse_repeated_keys(const std::vector<Json::Member>& members) {
    std::vector<const Json::Member*> sorted;
    sorted.reserve(members.size());
    for (const Json::Member& m : members) sorted.push_back(&m);
    std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
      return std::tie(a->key, a->offset) < std::tie(b->key, b->offset);
    });
    const auto twice =
        std::adjacent_find(sorted.begin(), sorted.end(),
                           [](const auto* a, const auto* b) { return a->key == b->key; });
    if (twice == sorted.end()) return;
    throw FormatError(fmt::format("key {} is given twice", in_quotes((*twice)->key)),
                      (*std::next(twice))->offset);
  }

  const char* begin_;
  const char* end_;
  std::uint64_t base_;
  const char* read_;  ///< end of what the parser has read
  const char* seen_;  ///< `read_` at the event before
  std::vector<Json> root_, open_;
  std::vector<Key> keys_;  ///< of each open value, the last key
};

Json::Json(std::uint64_t offset, Value value) : offset_(offset), value_(std::move(value)) {}

Json Json::parse(std::span<const std::byte> text, std::uint64_t base) {
  return JsonBuilder({reinterpret_cast<const char*>(text.data()), text.size()}, base).build();
}

Json Json::parse(std::string_view text) { return parse(std::as_bytes(std::span(text))); }

bool Json::is_null() const noexcept { return std::holds_alternative<std::monostate>(value_); }
bool Json::is_string() const noexcept { return std::holds_alternative<std::string>(value_); }
bool Json::is_object() const noexcept {
  return std::holds_alternative<std::vector<Member>>(value_);
}

std::string Json::found() const {
  struct Describe {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(std::uint64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return in_quotes(v); }
    std::string operator()(const std::vector<Json>&) const { return "an array"; }
    std::string operator()(const std::vector<Member>&) const { return "an object"; }
  };
  return std::visit(Describe{}, value_);
}

void Json::fail(std::string_view what, std::string_view expected) const {
  throw FormatError(fmt::format("{} is {}, expected {}", what, found(), expected), offset_);
}

bool Json::boolean(std::string_view what) const {
  if (const auto* v = std::get_if<bool>(&value_)) return *v;
  fail(what, "true or false");
}

std::int64_t Json::integer(std::string_view what) const {
  if (const auto* v = std::get_if<std::int64_t>(&value_)) return *v;
  fail(what, "an integer of 64 bits");
}

std::int64_t Json::natural(std::string_view what) const {
  const auto* v = std::get_if<std::int64_t>(&value_);
  if (v == nullptr || *v < 0) fail(what, "an integer from 0 to 2^63 - 1");
  return *v;
}

double Json::number(std::string_view what) const {
  if (const auto* v = std::get_if<double>(&value_)) return *v;
  if (const auto* v = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*v);
  fail(what, "a number");
}

const std::string& Json::string(std::string_view what) const {
  if (const auto* v = std::get_if<std::string>(&value_)) return *v;
  fail(what, "a string");
}

std::span<const Json> Json::items(std::string_view what) const {
  if (const auto* v = std::get_if<std::vector<Json>>(&value_)) return *v;
  fail(what, "an array");
}

std::span<const Json::Member> Json::members(std::string_view what) const {
  if (const auto* v = std::get_if<std::vector<Member>>(&value_)) return *v;
  fail(what, "an object");
}

const Json* Json::find(std::string_view key, std::string_view what) const {
  for (const Member& m : members(what)) {
    if (m.key == key) return &m.value;
  }
  return nullptr;
}

const Json& Json::at(std::string_view key, std::string_view what) const {
  if (const Json* found = find(key, what)) return *found;
  throw FormatError(fmt::format("{} has no key '{}'", what, key), offset_);
}

}  // namespace rlx
