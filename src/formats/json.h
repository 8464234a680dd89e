#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rlx {

/// A JSON value that knows where it stands in its file, so that what is wrong with it can be said
/// with a byte offset. Parsing refuses what is not strict JSON, nesting deeper than 64, and a key
/// given twice. Memory is linear in the text.
///
/// Accessors throw `FormatError` at the value's offset if it is of another kind; `what` names the
/// value in the message ("`hidden_size`", "shape of tensor 'w'").
class Json {
 public:
  struct Member;

  /// `base` is where `text` begins in its file; offsets count from there.
  static Json parse(std::span<const std::byte> text, std::uint64_t base = 0);
  static Json parse(std::string_view text);

  std::uint64_t offset() const noexcept { return offset_; }
  bool is_null() const noexcept;
  bool is_string() const noexcept;
  bool is_object() const noexcept;

  bool boolean(std::string_view what) const;
  /// A number without fraction and exponent that fits.
  std::int64_t integer(std::string_view what) const;
  /// The same, and at least 0.
  std::int64_t natural(std::string_view what) const;
  double number(std::string_view what) const;
  const std::string& string(std::string_view what) const;
  std::span<const Json> items(std::string_view what) const;
  /// In the order of the file.
  std::span<const Member> members(std::string_view what) const;

  /// The member of that name, null if there is none. For objects.
  const Json* find(std::string_view key, std::string_view what) const;
  /// The member of that name; one that is missing is an error.
  const Json& at(std::string_view key, std::string_view what) const;

  /// "a string", "42", …: what an error says was found.
  std::string found() const;
  [[noreturn]] void fail(std::string_view what, std::string_view expected) const;

 private:
  friend class JsonBuilder;
  using Value = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string,
                             std::vector<Json>, std::vector<Member>>;
  // Defined in the .cpp, like all that makes or ends a Json: Member is complete only there.
  Json(std::uint64_t offset, Value value);

  std::uint64_t offset_;
  Value value_;
};

struct Json::Member {
  std::string key;
  std::uint64_t offset;  ///< of the key
  Json value;
};

}  // namespace rlx
