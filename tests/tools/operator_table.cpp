// Prints docs/operators.md: every operator with what its definition says of it, and the CPU kernels
// that compute it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "backends/cpu/kernel.h"
#include "compiler/fused.h"
#include "ir/leaves.h"
#include "ops/all_ops.h"
#include "ops/attention.h"
#include "ops/control.h"
#include "ops/conv.h"
#include "ops/dot_general.h"
#include "ops/elementwise.h"
#include "ops/indexing.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/recurrent.h"
#include "ops/reduce.h"
#include "ops/selection.h"
#include "ops/softmax.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::string_view kHead = R"(# Operators

Made from the operator definitions and the table of CPU kernels by `make docs`; a test compares this page with them. Do not
edit it by hand. `name?` is optional, `name...` stands for any number and comes last. How to add one is told in
[adding an operator](adding-an-operator.md).

"ONNX" names the ONNX operator that maps to this one without conversion; the importer reads many more by conversion.
"CPU kernels" lists kernels fastest first; the compiler takes the first that accepts a node's dtypes and attributes.
"decomposed" means that the operator has no kernel and is rewritten into others, which need kernels in turn; "view" that it
costs nothing where its reader takes strides, and a copy elsewhere; "none" that compiling a graph with it is an error which
lists its nodes.
)";

constexpr std::string_view kColumns =
    "\n| operator | inputs | outputs | attributes | does | ONNX | CPU kernels |\n"
    "| --- | --- | --- | --- | --- | --- | --- |\n";

// A pipe would end the cell.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string code(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("`{}`", cell(text));
}

std::string code(const std::vector<std::string_view>& words) {
  return code(fmt::format("{}", fmt::join(words, ", ")));
}

std::vector<std::string_view> listed(const Names& names) {
  std::vector<std::string_view> list;
  for (std::size_t i = 0; i < names.size(); ++i) list.push_back(names[i]);
  return list;
}

template <class T>
bool names_attributes_of(const OpDef& def, std::vector<std::string_view>& names) {
  if (def.attributes != &attribute_type<T>) return false;
  for_each_field<T>([&](const char* name, auto) { names.emplace_back(name); });
  return true;
}

template <class... T>
std::vector<std::string_view> attributes_among(const OpDef& def) {
  std::vector<std::string_view> names;
  if (!(names_attributes_of<T>(def, names) || ...)) {
    throw InternalError(fmt::format(
        "the attributes of {} are not listed in tests/tools/operator_table.cpp", def.name));
  }
  return names;
}

// A definition knows its attributes by address only; their names are read off the structs.
std::vector<std::string_view> attributes_of(const OpDef& def) {
  return attributes_among<
      NoAttributes, ArgReduce, Attention, BatchNorm, Broadcast, Cast, Concat, Constant, Conv,
      Cumulative, DotGeneral, FusedAddNorm, FusedConv, FusedLinear, Gather, GatherElements,
      GatherNd, GroupNorm, Gru, If, Input, Iota, LayerNorm, LogSoftmax, Lstm, Pad, Param, Pool,
      Reduce, Region, Reshape, RmsNorm, Rnn, Scan, Size, Slice, Softmax, State, TopK, Transpose>(
      def);
}

bool is_one_of(const OpDef& def, std::initializer_list<const OpDef*> list) {
  return std::ranges::find(list, &def) != list.end();
}

std::string kernels_of(const OpDef& def) {
  if (is_one_of(def, {&input_def, &param_def, &constant_def, &size_def, &state_def})) return "leaf";
  std::string list;
  for (const cpu::Kernel* kernel : cpu::kernels_for(def))
    list += fmt::format("{}`{}`", list.empty() ? "" : ", ", kernel->name);
  if (!list.empty()) return list;
  if (is_one_of(def, {&reshape_def, &transpose_def, &broadcast_def, &slice_def})) return "view";
  return def.decompose != nullptr ? "decomposed" : "none";
}

void print_row(const OpDef& def) {
  fmt::print("| `{}` | {} | {} | {} | {} | {} | {} |\n", def.name, code(listed(def.inputs)),
             code(listed(def.outputs)), code(attributes_of(def)), cell(def.summary), code(def.onnx),
             kernels_of(def));
}

void print_page() {
  fmt::print("{}", kHead);
  fmt::print("\n## Elementwise\n\nOperands broadcast as in NumPy and have one dtype.\n{}",
             kColumns);
  for (const OpDef* def : all_ops()) {
    if (def->elementwise != nullptr) print_row(*def);
  }
  fmt::print("\n## Others\n{}", kColumns);
  for (const OpDef* def : all_ops()) {
    if (def->elementwise == nullptr) print_row(*def);
  }
  fmt::print("\n## Made by fusion\n\nOnly the compiler makes these, after legalisation.\n{}",
             kColumns);
  for (const OpDef* def : {&fused_add_norm_def, &fused_conv_def, &fused_linear_def, &region_def})
    print_row(*def);
}

}  // namespace
}  // namespace rlx

int main() {
  try {
    rlx::print_page();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "operator_table: {}\n", error.what());
    return 1;
  }
}
