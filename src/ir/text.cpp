#include "ir/text.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "base/check.h"
#include "ir/leaves.h"
#include "ir/node.h"

namespace rlx {

// ---------------------------------------------------------------- reading

namespace {

constexpr int kMaxDepth = 64;

bool is_word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_word_part(char c) {
  return is_word_start(c) || std::isdigit(static_cast<unsigned char>(c)) || c == '.';
}

}  // namespace

void TextReader::fail(const std::string& expected) const {
  throw FormatError("expected " + expected, at_);
}

void TextReader::skip_spaces() {
  while (at_ < text_.size()) {
    if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    } else {
      return;
    }
  }
}

bool TextReader::at_end() {
  skip_spaces();
  return at_ == text_.size();
}

char TextReader::peek() {
  skip_spaces();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool TextReader::accept(std::string_view token) {
  skip_spaces();
  if (text_.substr(at_, token.size()) != token) return false;
  const std::size_t end = at_ + token.size();
  if (is_word_part(token.back()) && end < text_.size() && is_word_part(text_[end])) return false;
  at_ = end;
  return true;
}

void TextReader::expect(std::string_view token) {
  if (!accept(token)) fail(fmt::format("\"{}\"", token));
}

std::string_view TextReader::word() {
  skip_spaces();
  const std::size_t from = at_;
  if (at_ < text_.size() && is_word_start(text_[at_])) {
    while (at_ < text_.size() && is_word_part(text_[at_])) ++at_;
  }
  if (from == at_) fail("a name");
  return text_.substr(from, at_ - from);
}

std::string TextReader::quoted() {
  expect("\"");
  std::string value;
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] != '\\') {
      value += text_[at_++];
      continue;
    }
    const std::string_view escape = text_.substr(at_, 4);
    if (escape.size() >= 2 && (escape[1] == '"' || escape[1] == '\\')) {
      value += escape[1];
      at_ += 2;
      continue;
    }
    unsigned code = 0;
    if (escape.size() < 4 || escape[1] != 'x' ||
        std::from_chars(escape.data() + 2, escape.data() + 4, code, 16).ptr != escape.data() + 4) {
      fail("an escape \\\" \\\\ or \\xHH");
    }
    value += static_cast<char>(code);
    at_ += 4;
  }
  if (at_ == text_.size()) fail("a closing quote");
  ++at_;
  return value;
}

namespace {

template <class T>
std::size_t read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? static_cast<std::size_t>(end - text.data()) : 0;
}

}  // namespace

std::int64_t TextReader::integer() {
  skip_spaces();
  std::int64_t value = 0;
  const std::size_t length = read_number(text_.substr(at_), value);
  if (length == 0) fail("an integer");
  at_ += length;
  return value;
}

std::uint64_t TextReader::unsigned_integer() {
  skip_spaces();
  std::uint64_t value = 0;
  const std::size_t length = read_number(text_.substr(at_), value);
  if (length == 0) fail("a non-negative integer");
  at_ += length;
  return value;
}

double TextReader::number() {
  skip_spaces();
  double value = 0;
  const std::size_t length = read_number(text_.substr(at_), value);
  if (length == 0) fail("a number");
  at_ += length;
  return value;
}

std::string_view TextReader::until(std::string_view stops) {
  skip_spaces();
  const std::size_t from = at_;
  int open = 0;
  bool in_quotes = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\'' && (at_ == from || text_[at_ - 1] != '\\')) in_quotes = !in_quotes;
    if (in_quotes) continue;
    if (open == 0 && stops.find(c) != std::string_view::npos) break;
    open += (c == '(' || c == '[') - (c == ')' || c == ']');
  }
  return text_.substr(from, at_ - from);
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

namespace {

/// Reads one graph body.
class GraphReader {
 public:
  explicit GraphReader(TextReader& in) : in_(in) {}

  Graph read() {
    if (++in_.depth > kMaxDepth) in_.fail("fewer nested graphs");
    in_.expect("graph");
    in_.expect("{");
    while (!in_.accept("}")) statement();
    --in_.depth;
    graph_.set_origin({});
    return std::move(graph_);
  }

 private:
  void statement() {
    if (in_.accept("output")) {
      const std::string name = in_.quoted();
      in_.expect("=");
      graph_.output(name, value());
    } else if (in_.accept("update")) {
      const Value state = value();
      in_.expect("=");
      graph_.update(state, value());
    } else if (in_.accept("require")) {
      constraint();
    } else {
      definition();
    }
  }

  void constraint() {
    const Dim left = Dim::parse(in_.until("=<"));
    const bool equal = in_.accept("==");
    if (!equal) in_.expect("<=");
    const Dim right = Dim::parse(in_.until("\""));
    const std::string node = in_.quoted();
    const std::string what = in_.quoted();
    if (equal) {
      graph_.require_equal(left, right, node, what);
    } else {
      graph_.require_at_most(left, right, node, what);
    }
  }

  std::uint64_t id() {
    in_.expect("%");
    return in_.unsigned_integer();
  }

  Value value() {
    const std::size_t offset = in_.offset();
    const auto at = values_.find(id());
    if (at == values_.end()) throw FormatError("a value that is not defined above", offset);
    return at->second;
  }

  void definition() {
    std::vector<std::uint64_t> ids;
    do ids.push_back(id());
    while (in_.accept(","));
    in_.expect("=");
    const std::string name(in_.word());
    const OpDef* def = in_.lookup()(name);
    if (def == nullptr) in_.fail(fmt::format("an operator, not {}", name));
    const auto attributes = read_braced(*def);
    const std::vector<Value> inputs = arguments();
    const std::vector<TensorType> types = declared_types();
    graph_.set_origin(in_.accept("@") ? in_.quoted() : std::string());
    define_values(ids, add(Op(*def, attributes), inputs), types);
  }

  // People may leave the types to inference; none are given then.
  std::vector<TensorType> declared_types() {
    std::vector<TensorType> types;
    if (!in_.accept(":")) return types;
    do read_attribute(in_, types.emplace_back());
    while (in_.accept(","));
    return types;
  }

  std::shared_ptr<const void> read_braced(const OpDef& def) {
    if (!in_.accept("{")) {
      TextReader none("}", in_.lookup());
      return def.attributes->read(none);
    }
    auto attributes = def.attributes->read(in_);
    in_.expect("}");
    return attributes;
  }

  std::vector<Value> arguments() {
    std::vector<Value> inputs;
    in_.expect("(");
    if (in_.accept(")")) return inputs;
    do inputs.push_back(in_.accept("_") ? Value() : value());
    while (in_.accept(","));
    in_.expect(")");
    return inputs;
  }

  std::vector<Value> add(const Op& op, const std::vector<Value>& inputs) {
    if (const auto* x = op.as<Input>()) return {graph_.input(x->name, x->type)};
    if (const auto* x = op.as<Param>()) return {graph_.param(x->name, x->type)};
    if (const auto* x = op.as<State>()) return {graph_.state(x->name, x->type)};
    if (const auto* x = op.as<Constant>()) return {graph_.constant(x->value)};
    if (const auto* x = op.as<Size>()) return {graph_.size(x->extent)};
    return graph_.add(op, inputs);
  }

  void define_values(const std::vector<std::uint64_t>& ids, const std::vector<Value>& values,
                     const std::vector<TensorType>& types) {
    const bool fits = types.empty() || types.size() == values.size();
    if (ids.size() != values.size() || !fits) {
      in_.fail(fmt::format("{} values and types before this point", values.size()));
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!types.empty() && values[i].type() != types[i]) {
        in_.fail(fmt::format("the type {} before this point, not {}", to_string(values[i].type()),
                             to_string(types[i])));
      }
      if (!values_.emplace(ids[i], values[i]).second) in_.fail("a value number that is not taken");
    }
  }

  TextReader& in_;
  Graph graph_;
  std::map<std::uint64_t, Value> values_;
};

}  // namespace

Graph read_graph(TextReader& in) { return GraphReader(in).read(); }

Graph parse_graph(std::string_view text, OpLookup lookup, const std::vector<Tensor>* blobs) {
  TextReader in(text, lookup, blobs);
  Graph graph = read_graph(in);
  if (!in.at_end()) in.fail("the end of the text");
  return graph;
}

// ---------------------------------------------------------------- writing

namespace {

class GraphWriter {
 public:
  GraphWriter(TextWriter& out, const Graph& graph) : out_(out), graph_(graph) {}

  void write() {
    out_.text += "graph {\n";
    ++out_.indent;
    for (Node* node : graph_.topological_order()) write_node(*node);
    for (const DimConstraint& c : graph_.constraints()) {
      line(fmt::format("require {} {} {} {} {}", c.left.to_string(),
                       c.relation == DimConstraint::Relation::equal ? "==" : "<=",
                       c.right.to_string(), quote(c.node), quote(c.what)));
    }
    for (const auto& o : graph_.outputs())
      line(fmt::format("output {} = {}", quote(o.name), id(o.value)));
    for (const auto& u : graph_.updates())
      line(fmt::format("update {} = {}", id(u.state), id(u.next)));
    --out_.indent;
    out_.text += std::string(2 * out_.indent, ' ') + "}";
  }

 private:
  void start_line() { out_.text += std::string(2 * out_.indent, ' '); }
  void line(const std::string& text) {
    start_line();
    out_.text += text + '\n';
  }

  std::string id(Value v) const {
    return v ? fmt::format("%{}", ids_.at({v.node(), v.index()})) : "_";
  }

  void write_node(Node& node) {
    start_line();
    for (std::size_t i = 0; i < node.output_count(); ++i) {
      ids_[{&node, i}] = ids_.size();
      out_.text += (i > 0 ? ", " : "") + id(node.output(i));
    }
    out_.text += fmt::format(" = {}{{", node.op().name());
    node.op().def().attributes->write(node.op().attributes(), out_);
    if (out_.text.back() == '{') {
      out_.text.pop_back();
    } else {
      out_.text += '}';
    }
    out_.text += '(';
    for (std::size_t i = 0; i < node.inputs().size(); ++i)
      out_.text += (i > 0 ? ", " : "") + id(node.inputs()[i]);
    out_.text += ") : ";
    for (std::size_t i = 0; i < node.output_count(); ++i)
      out_.text += (i > 0 ? ", " : "") + to_string(node.type(i));
    const bool has_own_name =
        !node.is(constant_def) && !node.is(size_def) && node.name() != node.op().name();
    if (has_own_name) out_.text += " @" + quote(node.name());
    out_.text += '\n';
  }

  TextWriter& out_;
  const Graph& graph_;
  std::map<std::pair<const Node*, std::size_t>, std::size_t> ids_;
};

}  // namespace

void write_graph(TextWriter& out, const Graph& graph) { GraphWriter(out, graph).write(); }

inline namespace v0 {

std::string to_string(const Graph& graph, std::vector<Tensor>* blobs) {
  TextWriter out{.text = {}, .blobs = blobs, .indent = 0};
  write_graph(out, graph);
  return out.text + "\n";
}

}  // namespace v0
}  // namespace rlx
