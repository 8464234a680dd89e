#include "conformance/op_case.h"
#include "ir/text.h"
#include "ops/all_ops.h"

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

}  // namespace
}  // namespace rlx
