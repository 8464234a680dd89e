#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/graph.h"

namespace rlx {

struct OpDef;

/// Operator definitions by name; null if there is none of that name.
using OpLookup = const OpDef* (*)(std::string_view name);

/// Cursor over the text form of a graph. Every failure is a `FormatError` with the byte offset.
class TextReader {
 public:
  TextReader(std::string_view text, OpLookup lookup, const std::vector<Tensor>* blobs = nullptr)
      : text_(text), lookup_(lookup), blobs_(blobs) {}

  [[noreturn]] void fail(const std::string& expected) const;
  void skip_spaces();
  bool at_end();
  char peek();
  bool accept(std::string_view token);
  void expect(std::string_view token);
  /// Letters, digits, '_', '.', not starting with a digit.
  std::string_view word();
  std::string quoted();
  std::int64_t integer();
  std::uint64_t unsigned_integer();
  double number();
  /// Everything up to one of `stops` that is outside brackets and quotes.
  std::string_view until(std::string_view stops);

  OpLookup lookup() const { return lookup_; }
  const std::vector<Tensor>* blobs() const { return blobs_; }
  std::size_t offset() const { return at_; }
  /// Nesting of subgraphs, at most 64.
  int depth = 0;

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  OpLookup lookup_;
  const std::vector<Tensor>* blobs_;
};

/// Collects text; constants of more than 64 elements go to `blobs`.
struct TextWriter {
  std::string text;
  std::vector<Tensor>* blobs = nullptr;
  int indent = 0;
};

std::string quote(std::string_view text);

void write_graph(TextWriter& out, const Graph& graph);
Graph read_graph(TextReader& in);

/// Reads a whole text; a definition may leave out its types. Throws `FormatError` with the byte
/// offset, and what inference throws.
Graph parse_graph(std::string_view text, OpLookup lookup,
                  const std::vector<Tensor>* blobs = nullptr);

}  // namespace rlx
