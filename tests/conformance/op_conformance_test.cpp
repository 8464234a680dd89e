#include "base/cpu_features.h"
#include "conformance/op_case.h"
#include "ir/node.h"
#include "ir/text.h"
#include "ops/all_ops.h"
#include "rlx/runtime.h"

namespace rlx {
namespace {

Graph built(const OpCase& c) {
  Graph g;
  c.build(g);
  return g;
}

// Replaces each node that has a decomposition by it, once.
Graph decomposed(const Graph& source) {
  Graph g = source.clone();
  for (Node* node : g.topological_order()) {
    const auto decompose = node->op().def().decompose;
    if (decompose == nullptr) continue;
    const std::vector<Value> values = decompose(node->op(), node->inputs());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i]) g.replace_uses(node->output(i), values[i]);
    }
  }
  g.prune();
  return g;
}

void expect_agreement(const NamedTensors& found, const NamedTensors& expected, const OpCase& c,
                      const Graph& g) {
  NamedTensors magnitudes;
  if (c.terms > 0) magnitudes = evaluate_magnitudes(g, c.inputs);
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_TRUE(agrees(found.at(name), tensor, c, c.terms > 0 ? &magnitudes.at(name) : nullptr))
        << "output " << name;
  }
}

TEST_P(OpConformance, TextRoundTrips) {
  const Graph g = built(GetParam());
  std::vector<Tensor> blobs;
  const std::string text = to_string(g, &blobs);
  EXPECT_EQ(to_string(parse_graph(text, find_op, &blobs), nullptr), to_string(g, nullptr));
}

TEST_P(OpConformance, DecompositionAgreesWithReference) {
  const OpCase& c = GetParam();
  const Graph g = built(c);
  const Graph plain = decomposed(g);
  if (to_string(plain) == to_string(g)) return;  // a primitive
  expect_agreement(evaluate_graph(plain, c.inputs), evaluate_graph(g, c.inputs), c, g);
}

class ForcedLevel {
 public:
  explicit ForcedLevel(CpuLevel level) { force_cpu_level(level); }
  ~ForcedLevel() { force_cpu_level(std::nullopt); }
};

NamedTensors run_on_cpu(const OpCase& c, int threads) {
  const Executable exe = compile(built(c), {.optimization = 0, .threads = threads});
  Context context(exe);
  return context.run(c.inputs);
}

void expect_same_bits(const NamedTensors& a, const NamedTensors& b) {
  for (const auto& [name, tensor] : a)
    EXPECT_TRUE(std::ranges::equal(tensor.bytes(), b.at(name).bytes())) << name;
}

// Strings stay on the host, and steps over the elements of sub-byte dtypes have no kernel yet:
// compiling them is an error.
bool is_refused_by_cpu(const Graph& g) {
  return std::ranges::any_of(g.topological_order(), [](const Node* node) {
    const DTypeTraits& t = traits(node->type().dtype);
    return t.kind == DTypeKind::string || (t.bits != 0 && t.bits < 8);
  });
}

// Every kernel on every instruction set that the machine has; the number of threads changes no bit.
TEST_P(OpConformance, CpuAgreesWithReference) {
  const OpCase& c = GetParam();
  const Graph g = built(c);
  if (is_refused_by_cpu(g)) {
    EXPECT_THROW((void)run_on_cpu(c, 1), Unsupported);
    return;
  }
  try {
    (void)run_on_cpu(c, 1);
  } catch (const Unsupported& e) {
    GTEST_SKIP() << e.what();  // listed in docs/roadmap.md until its kernel is there
  }
  const NamedTensors expected = evaluate_graph(g, c.inputs);
  for (const CpuLevel level : kCpuLevels) {
    if (level > detected_cpu_level()) break;
    SCOPED_TRACE(name(level));
    const ForcedLevel forced(level);
    const NamedTensors found = run_on_cpu(c, 1);
    expect_agreement(found, expected, c, g);
    for (const int threads : {2, 4}) expect_same_bits(run_on_cpu(c, threads), found);
  }
}

}  // namespace
}  // namespace rlx
