#pragma once

#include <map>
#include <span>
#include <string>

#include "rlx/graph.h"

namespace rlx {

/// Sizes of the symbols of `graph`, from the extents of its inputs. `dims` gives the extents of
/// each input by name. Throws `InvalidArgument` for a missing or unknown input, `ShapeError` for a
/// wrong rank or extent, a symbol with two sizes, and a broken constraint; each names both values.
/// `preset` gives sizes of symbols that no input determines.
DimBinding bind_sizes(const Graph& graph, const std::map<std::string, Tensor::Dims>& dims,
                      const DimBinding& preset = {});

/// Throws `ShapeError` naming node, expressions and values if a constraint of the graph does not
/// hold.
void check_constraints(const Graph& graph, const DimBinding& sizes);

}  // namespace rlx
