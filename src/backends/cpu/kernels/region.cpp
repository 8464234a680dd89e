#include "backends/cpu/kernels/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "backends/cpu/kernels/strided.h"
#include "backends/cpu/kernels/tile.h"
#include "base/check.h"
#include "compiler/fused.h"
#include "ir/leaves.h"

namespace rlx::cpu {
namespace {

constexpr std::size_t kMaxOperations = 64;  ///< of one node
constexpr std::size_t kMaxSlots = 4 * kMaxOperations;
constexpr std::size_t kScratchBytes = 64 << 10;  ///< on the stack of each thread
constexpr std::size_t kLine = 64;

// ---------------------------------------------------------------- what a node computes

/// A value of the body: an input of the node, a scalar constant or an operation's result.
struct BodyValue {
  DType dtype;
  const Tensor* constant = nullptr;
  int uses = 0;  ///< by operations; outputs of the node apart
};

struct Operation {
  const OpDef* op;
  std::vector<std::size_t> operands;
  std::size_t result;
  /// A product that only this sum reads: a·b + c in one instruction.
  bool is_mul_add = false;
};

/// The node's work as a list, whether it is one operator or a region. Inputs are the first values.
struct Body {
  std::vector<BodyValue> values;
  std::vector<Operation> operations;
  std::vector<std::size_t> outputs;
};

Body single_operation(const Node& node) {
  Body body;
  Operation operation{&node.op().def(), {}, node.inputs().size()};
  for (const Value v : node.inputs()) {
    operation.operands.push_back(body.values.size());
    body.values.push_back({v.dtype(), nullptr, 1});
  }
  body.values.push_back({node.type().dtype});
  body.operations.push_back(std::move(operation));
  body.outputs.push_back(node.inputs().size());
  return body;
}

Body body_of_region(const Graph& graph) {
  Body body;
  std::map<const Node*, std::size_t> index;
  for (const Graph::Named& input : graph.inputs()) {
    index[input.value.node()] = body.values.size();
    body.values.push_back({input.value.dtype()});
  }
  for (Node* node : graph.topological_order()) {
    if (index.contains(node)) continue;
    const std::size_t result = body.values.size();
    index[node] = result;
    body.values.push_back({node->type().dtype, constant_of(node->output())});
    if (node->is(constant_def)) continue;
    Operation operation{&node->op().def(), {}, result};
    for (const Value v : node->inputs()) {
      const std::size_t operand = index.at(v.node());
      operation.operands.push_back(operand);
      ++body.values[operand].uses;
    }
    body.operations.push_back(std::move(operation));
  }
  for (const Graph::Named& output : graph.outputs())
    body.outputs.push_back(index.at(output.value.node()));
  return body;
}

Body body_of(const Node& node) {
  if (const auto* region = node.as<Region>()) return body_of_region(*region->body);
  return single_operation(node);
}

bool is_output(const Body& body, std::size_t value) {
  return std::ranges::find(body.outputs, value) != body.outputs.end();
}

// Joins products with the sums that alone read them. The two roundings stay, so no result changes.
void join_mul_add(Body& body) {
  std::vector<Operation*> maker(body.values.size(), nullptr);
  for (Operation& sum : body.operations) {
    maker[sum.result] = &sum;
    if (sum.op != &add_def || tile_mul_add(body.values[sum.result].dtype) == nullptr) continue;
    for (const std::size_t k : {0U, 1U}) {
      const std::size_t factor = sum.operands[k];
      Operation* product = maker[factor];
      if (product == nullptr || product->op != &mul_def || product->operands.size() != 2) continue;
      if (body.values[factor].uses != 1 || is_output(body, factor)) continue;
      sum.operands = {product->operands[0], product->operands[1], sum.operands[1 - k]};
      sum.is_mul_add = true;
      product->operands.clear();  // computed there
      break;
    }
  }
  std::erase_if(body.operations, [](const Operation& o) { return o.operands.empty(); });
}

DType operand_tile(const Body& body, const Operation& operation) {
  return tile_dtype(body.values[operation.operands.back()].dtype);
}

Match accepts_operation(const Body& body, const Operation& operation) {
  for (const std::size_t operand : operation.operands) {
    const DType d = body.values[operand].dtype;
    if (is_block(d) || d == DType::string) return Match::no(fmt::format("{} operands", name(d)));
  }
  const DType result = body.values[operation.result].dtype;
  if (is_block(result)) return Match::no(fmt::format("{} results", name(result)));
  if (operation.op == &cast_def) return {};
  const DType tile = operand_tile(body, operation);
  if (operation.op->elementwise != nullptr && tile_function(*operation.op, tile) != nullptr)
    return {};
  return Match::no(fmt::format("no {} of {}", operation.op->name, name(tile)));
}

// ---------------------------------------------------------------- the program of a bound node

using Slot = std::uint16_t;

/// Operands and result are slots: places whose addresses the run knows, tile by tile.
struct Instruction {
  TileFunction function;
  Slot to;
  std::array<Slot, 3> in;
};

/// How the elements of an input reach the instructions.
struct Leaf {
  enum class Kind : std::uint8_t {
    direct,  ///< read in place
    splat,   ///< one element for a whole row, repeated over a line
    gather,  ///< copied to scratch, tile by tile
  };
  Kind kind = Kind::direct;
  Slot slot = 0;
  unsigned bits = 0;  ///< of an element as stored
  Buffer at;
  std::vector<std::int64_t> row_strides;    ///< of the axes above a row
  std::vector<std::int64_t> dims, strides;  ///< of the walk within a row, to gather
  std::size_t scratch = 0;                  ///< where splat and gathered elements go
};

struct Written {
  Slot slot;
  unsigned bits;
  Buffer at;
};
struct Register {
  Slot slot;
  std::size_t scratch;
};
struct alignas(kLine) Line {
  std::byte bytes[kLine];
};

/// Everything a run needs: it walks rows of `row` elements, each in tiles of up to `tile`.
struct TileProgram {
  std::vector<Instruction> code;
  std::vector<Leaf> leaves;
  std::vector<Written> outputs;
  std::vector<Register> registers;
  std::vector<Line> constants;
  std::vector<Slot> constant_slots;
  std::array<std::size_t, kMaxSlots> mask;
  std::size_t slots = 0;
  std::vector<std::int64_t> outer;  ///< extents of the axes above a row
  std::size_t row = 0, tile = 0, tiles_per_row = 0, tiles = 0;
  std::size_t parts = 1;
  bool streamed = false;
  /// How many bytes ahead to fetch each leaf and output: memory's latency would not hide behind an
  /// instruction that only computes.
  std::vector<std::size_t> leaf_ahead, output_ahead;
  bool fetches_ahead = false;
};

/// Fills a line with copies of one element.
void repeat_element(const std::byte* element, std::size_t bytes, std::byte* line) noexcept {
  for (std::size_t at = 0; at < kLine; at += bytes) std::memcpy(line + at, element, bytes);
}

// ---------------------------------------------------------------- planning

class ProgramBuilder {
 public:
  explicit ProgramBuilder(StepBuilder& step)
      : step_(step), program_(std::make_shared<TileProgram>()), body_(body_of(step.node())) {
    join_mul_add(body_);
    program_->mask.fill(~std::size_t{0});
    state_.resize(body_.values.size());
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i].uses_left = count_uses(i);
  }

  std::shared_ptr<const TileProgram> build() {
    lay_out();
    choose_streaming();
    add_leaves();
    add_outputs();
    for (const Operation& operation : body_.operations) emit(operation);
    finish_outputs();
    place_registers();
    choose_prefetches();
    split_work();
    return program_;
  }

 private:
  /// Where a value is while the code is made.
  struct State {
    std::optional<Slot> slot;
    bool is_packed = false;  ///< still in the stored form, to be unpacked when first read
    std::optional<Slot> in_register;
    int uses_left = 0;
  };

  int count_uses(std::size_t value) const {
    int uses = 0;
    for (const Operation& o : body_.operations)
      uses += static_cast<int>(std::ranges::count(o.operands, value));
    return uses;
  }

  Slot new_slot() {
    RLX_ASSERT(program_->slots < kMaxSlots);
    return static_cast<Slot>(program_->slots++);
  }

  // Rows are the last joined axis where it is long; else all is one row, and what is not dense is
  // gathered. Tiles begin at whole bytes.
  void lay_out() {
    TileProgram& p = *program_;
    std::vector<const Operand*> operands = {&step_.out()};
    bool has_codes = traits(step_.out().dtype).bits < 8;
    for (std::size_t i = 0; i < step_.input_count(); ++i) {
      operands.push_back(&step_.in(i));
      has_codes = has_codes || traits(step_.in(i).dtype).bits < 8;
    }
    for (std::size_t i = 1; i < body_.outputs.size(); ++i)
      has_codes = has_codes || traits(step_.out(i).dtype).bits < 8;
    space_ = joined_space(step_.out().dims, operands);

    constexpr std::int64_t kLongRow = 64;
    by_rows_ = space_.dims.size() == 1 || (space_.dims.back() >= kLongRow && !has_codes);
    p.row = static_cast<std::size_t>(by_rows_ ? space_.dims.back() : space_.size());
    if (by_rows_) p.outer.assign(space_.dims.begin(), space_.dims.end() - 1);
  }

  std::size_t total() const { return static_cast<std::size_t>(space_.size()); }

  // Results that would push everything else out of the caches go past them, unless they overwrite
  // lines that were just read.
  void choose_streaming() {
    constexpr std::size_t kFarBeyondL2 = 32 << 20;
    const Operand& out = step_.out();
    program_->streamed = traits(out.dtype).bits >= 8 && !is_complex(out.dtype) &&
                         byte_size(out.dtype, total()) >= kFarBeyondL2 && body_.outputs.size() == 1;
    for (std::size_t i = 0; i < step_.input_count(); ++i) {
      if (overlaps(step_.in(i), out)) program_->streamed = false;
    }
  }

  static bool overlaps(const Operand& in, const Operand& out) {
    return in.at.slot == out.at.slot && in.at.offset == out.at.offset;
  }

  void add_leaves() {
    for (std::size_t i = 0; i < step_.input_count(); ++i) {
      if (state_[i].uses_left == 0 && !is_output(body_, i)) continue;
      add_leaf(i);
    }
    std::size_t constants = 0;
    for (const BodyValue& v : body_.values) constants += v.constant != nullptr ? 1 : 0;
    program_->constants.reserve(constants);
    for (std::size_t i = 0; i < body_.values.size(); ++i) {
      if (body_.values[i].constant != nullptr) add_constant(i, *body_.values[i].constant);
    }
  }

  void add_leaf(std::size_t i) {
    const Operand& in = step_.in(i);
    const std::vector<std::int64_t>& strides = space_.strides[i + 1];
    Leaf leaf;
    leaf.slot = new_slot();
    leaf.bits = traits(in.dtype).bits;
    leaf.at = in.at;
    const bool constant = std::ranges::all_of(strides, [](std::int64_t s) { return s == 0; });
    if (by_rows_) {
      leaf.row_strides.assign(strides.begin(), strides.end() - 1);
      leaf.dims = {space_.dims.back()};
      leaf.strides = {strides.back()};
      leaf.kind = strides.back() == 1   ? Leaf::Kind::direct
                  : strides.back() == 0 ? Leaf::Kind::splat
                                        : Leaf::Kind::gather;
    } else {
      leaf.dims = space_.dims;
      leaf.strides = strides;
      leaf.kind = strides == space_.strides[0] ? Leaf::Kind::direct
                  : constant                   ? Leaf::Kind::splat
                                               : Leaf::Kind::gather;
    }
    if (leaf.kind == Leaf::Kind::splat) program_->mask[leaf.slot] = 0;
    state_[i].slot = leaf.slot;
    state_[i].is_packed = tile_unpack(in.dtype) != nullptr;
    widest_ = std::max<std::size_t>(widest_, (leaf.bits + 7) / 8);
    program_->leaves.push_back(std::move(leaf));
  }

  void add_constant(std::size_t value, const Tensor& scalar) {
    const DType tile = tile_dtype(scalar.dtype());
    Line element{};
    std::memcpy(element.bytes, scalar.bytes().data(), scalar.bytes().size());
    if (const TileFunction unpack = tile_unpack(scalar.dtype())) {
      Line unpacked{};
      unpack({unpacked.bytes, {element.bytes}, {0}, 1, nullptr, 0});
      element = unpacked;
    }
    Line& line = program_->constants.emplace_back();
    repeat_element(element.bytes, tile_bytes(tile), line.bytes);
    const Slot slot = new_slot();
    program_->constant_slots.push_back(slot);
    program_->mask[slot] = 0;
    state_[value].slot = slot;
  }

  void add_outputs() {
    for (std::size_t i = 0; i < body_.outputs.size(); ++i) {
      const Operand& out = step_.out(i);
      program_->outputs.push_back({new_slot(), traits(out.dtype).bits, out.at});
    }
  }

  // ---- registers

  Slot take_register(std::size_t bytes) {
    widest_ = std::max(widest_, bytes);
    if (!free_.empty()) {
      const Slot slot = free_.back();
      free_.pop_back();
      return slot;
    }
    const Slot slot = new_slot();
    program_->registers.push_back({slot, 0});
    return slot;
  }

  void release(std::size_t value) {
    State& s = state_[value];
    if (!s.in_register) return;
    free_.push_back(*s.in_register);
    s.in_register.reset();
  }

  // ---- code

  void add(TileFunction function, Slot to, std::array<Slot, 3> in) {
    program_->code.push_back({function, to, in});
  }

  /// The slot of a value in its tile form.
  Slot operand(std::size_t value) {
    State& s = state_[value];
    if (!s.is_packed) return *s.slot;
    const DType dtype = body_.values[value].dtype;
    const Slot unpacked = take_register(tile_bytes(tile_dtype(dtype)));
    add(tile_unpack(dtype), unpacked, {*s.slot});
    s.slot = unpacked;
    s.in_register = unpacked;
    s.is_packed = false;
    return unpacked;
  }

  void emit(const Operation& operation) {
    std::array<Slot, 3> in{};
    for (std::size_t k = 0; k < operation.operands.size(); ++k)
      in[k] = operand(operation.operands[k]);
    for (const std::size_t v : operation.operands) --state_[v].uses_left;
    const std::size_t result = operation.result;
    const DType dtype = body_.values[result].dtype;
    const std::size_t bytes = tile_bytes(tile_dtype(dtype));
    release_dead(operation, [&](std::size_t v) { return value_bytes(v) == bytes; });

    const std::optional<std::size_t> direct = direct_output(result);
    Slot to;
    if (direct) {
      to = program_->outputs[*direct].slot;
      written_[*direct] = true;
    } else {
      to = take_register(bytes);
      state_[result].in_register = to;
    }
    state_[result].slot = to;
    emit_function(operation, to, in);
    release_dead(operation, [](std::size_t) { return true; });
    if (state_[result].uses_left == 0 && !is_output(body_, result)) release(result);
  }

  std::size_t value_bytes(std::size_t v) const {
    return tile_bytes(tile_dtype(body_.values[v].dtype));
  }

  template <class F>
  void release_dead(const Operation& operation, F&& may_release) {
    for (const std::size_t v : operation.operands) {
      if (state_[v].uses_left == 0 && !is_output(body_, v) && may_release(v)) release(v);
    }
  }

  void emit_function(const Operation& operation, Slot to, const std::array<Slot, 3>& in) {
    const DType result = body_.values[operation.result].dtype;
    const DType tile = operand_tile(body_, operation);
    if (operation.op == &cast_def) {
      const TileCast cast = tile_cast(tile, result);
      if (cast.second == nullptr) return add(cast.first, to, {in[0]});
      const Slot between = take_register(tile_bytes(cast.between));
      add(cast.first, between, {in[0]});
      add(cast.second, to, {between});
      free_.push_back(between);
      return;
    }
    add(operation.is_mul_add ? tile_mul_add(tile) : tile_function(*operation.op, tile), to, in);
    if (const TileFunction round = tile_round(result)) add(round, to, {to});
  }

  /// The output that an operation may write itself: stored as computed, and not over an input that
  /// is still to be read.
  std::optional<std::size_t> direct_output(std::size_t value) const {
    const DType dtype = body_.values[value].dtype;
    if (program_->streamed || tile_pack(dtype) != nullptr) return std::nullopt;
    const auto at = std::ranges::find(body_.outputs, value) - body_.outputs.begin();
    const auto i = static_cast<std::size_t>(at);
    if (i == body_.outputs.size() || overwrites_needed_input(i)) return std::nullopt;
    return i;
  }

  bool overwrites_needed_input(std::size_t output) const {
    for (std::size_t i = 0; i < step_.input_count(); ++i) {
      const bool needed = state_[i].uses_left > 0 || is_output(body_, i);
      if (needed && overlaps(step_.in(i), step_.out(output))) return true;
    }
    return false;
  }

  // What no operation has written: narrow forms, streamed results, inputs and constants that are
  // outputs, values that are outputs twice.
  void finish_outputs() {
    std::vector<Slot> sources;
    for (std::size_t i = 0; i < body_.outputs.size(); ++i)
      sources.push_back(operand(body_.outputs[i]));
    // Output 0 comes last: it may lie over an input that another output copies.
    for (std::size_t i = body_.outputs.size(); i-- > 0;) {
      if (written_[i]) continue;
      const DType dtype = step_.out(i).dtype;
      const Slot to = program_->outputs[i].slot;
      const TileFunction pack = tile_pack(dtype);
      if (pack == nullptr) {
        add(tile_copy(tile_bytes(dtype), program_->streamed), to, {sources[i]});
      } else if (!program_->streamed) {
        add(pack, to, {sources[i]});
      } else {
        const Slot packed = take_register(sizeof(float));
        add(pack, packed, {sources[i]});
        add(tile_copy((traits(dtype).bits + 7) / 8, true), to, {packed});
      }
    }
  }

  // ---- sizes

  // Scratch holds the registers, a line for each splat and a tile for each gathered input.
  void place_registers() {
    TileProgram& p = *program_;
    std::size_t tiles = p.registers.size(), lines = 0;
    for (const Leaf& leaf : p.leaves) {
      tiles += leaf.kind == Leaf::Kind::gather ? 1 : 0;
      lines += leaf.kind == Leaf::Kind::splat ? 1 : 0;
    }
    constexpr std::size_t kSmall = 16 << 10;  // elements; fewer tiles cost less, caches hold them
    // Short tiles let the processor overlap one instruction's memory with the next one's
    // arithmetic.
    std::size_t tile = total() <= kSmall ? 512 : is_beyond_l2() ? 128 : 256;
    while (tiles * tile * widest_ + lines * kLine > kScratchBytes) tile /= 2;
    RLX_ASSERT(tile >= 8);
    p.tiles_per_row = (p.row + tile - 1) / tile;
    const std::size_t even = (p.row + p.tiles_per_row - 1) / p.tiles_per_row;
    p.tile = std::min(tile, (even + 63) / 64 * 64);  // whole vectors of any element
    p.tiles_per_row = (p.row + p.tile - 1) / p.tile;
    p.tiles = p.tiles_per_row * (total() / p.row);

    const std::size_t stride = (p.tile * widest_ + kLine - 1) / kLine * kLine;
    std::size_t at = 0;
    for (Register& r : p.registers) r.scratch = std::exchange(at, at + stride);
    for (Leaf& leaf : p.leaves) {
      if (leaf.kind == Leaf::Kind::gather) leaf.scratch = std::exchange(at, at + stride);
    }
    for (Leaf& leaf : p.leaves) {
      if (leaf.kind == Leaf::Kind::splat) leaf.scratch = std::exchange(at, at + kLine);
    }
    RLX_ASSERT(at <= kScratchBytes);
  }

  bool is_beyond_l2() const {
    constexpr std::size_t kBeyondL2 = 1 << 20;
    std::size_t bytes = 0;
    for (const Leaf& leaf : program_->leaves)
      bytes += leaf.kind == Leaf::Kind::direct ? total() * leaf.bits / 8 : 0;
    for (const Written& out : program_->outputs) bytes += total() * out.bits / 8;
    return bytes >= kBeyondL2;
  }

  void choose_prefetches() {
    constexpr std::size_t kTilesAhead = 2;
    TileProgram& p = *program_;
    p.leaf_ahead.assign(p.leaves.size(), 0);
    p.output_ahead.assign(p.outputs.size(), 0);
    p.fetches_ahead = is_beyond_l2();
    if (!p.fetches_ahead) return;
    for (std::size_t i = 0; i < p.leaves.size(); ++i) {
      if (p.leaves[i].kind == Leaf::Kind::direct)
        p.leaf_ahead[i] = kTilesAhead * p.tile * p.leaves[i].bits / 8;
    }
    for (std::size_t i = 0; i < p.outputs.size() && !p.streamed; ++i)
      p.output_ahead[i] = kTilesAhead * p.tile * p.outputs[i].bits / 8;
  }

  // A part must be worth waking a thread for.
  void split_work() {
    constexpr std::size_t kPartWork = 8 << 10;  // elements times instructions
    const std::size_t worth = total() * program_->code.size() / kPartWork;
    const auto threads = static_cast<std::size_t>(std::max(1, step_.threads()));
    program_->parts = std::clamp<std::size_t>(std::min(worth, threads), 1, program_->tiles);
  }

  StepBuilder& step_;
  std::shared_ptr<TileProgram> program_;
  Body body_;
  std::vector<State> state_;
  IndexSpace space_;  ///< operands: output 0, then the inputs
  bool by_rows_ = true;
  std::vector<Slot> free_;
  std::map<std::size_t, bool> written_;
  std::size_t widest_ = 1;  ///< bytes of the largest element in scratch
};

// ---------------------------------------------------------------- running

/// One thread's walk over its tiles.
class TileRunner {
 public:
  TileRunner(const TileProgram& program, const Run& run) noexcept : p_(program), run_(run) {
    for (const Register& r : p_.registers) at_[r.slot] = scratch_ + r.scratch;
    for (std::size_t i = 0; i < p_.constants.size(); ++i)
      at_[p_.constant_slots[i]] = const_cast<std::byte*>(p_.constants[i].bytes);
    for (const Leaf& leaf : p_.leaves) at_[leaf.slot] = scratch_ + leaf.scratch;
  }

  void run(std::size_t begin, std::size_t end) noexcept {
    std::size_t row = begin / p_.tiles_per_row;
    std::size_t column = begin % p_.tiles_per_row * p_.tile;
    enter_row(row);
    for (std::size_t i = begin; i < end; ++i) {
      if (column >= p_.row) {
        column = 0;
        enter_row(++row);
      }
      run_tile(row * p_.row + column, column, std::min(p_.tile, p_.row - column));
      column += p_.tile;
    }
    if (p_.streamed) tile_stream_fence();
  }

 private:
  void enter_row(std::size_t row) noexcept {
    std::array<std::int64_t, kMaxAxes> coordinates;
    auto rest = static_cast<std::int64_t>(row);
    for (std::size_t axis = p_.outer.size(); axis-- > 0; rest /= p_.outer[axis])
      coordinates[axis] = rest % p_.outer[axis];
    for (std::size_t i = 0; i < p_.leaves.size(); ++i) {
      const Leaf& leaf = p_.leaves[i];
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < leaf.row_strides.size(); ++axis)
        offset += coordinates[axis] * leaf.row_strides[axis];
      base_[i] = run_.at<std::byte>(leaf.at) + offset * static_cast<std::int64_t>(leaf.bits) / 8;
      if (leaf.kind == Leaf::Kind::splat) splat(leaf, base_[i]);
    }
  }

  void splat(const Leaf& leaf, const std::byte* element) noexcept {
    repeat_element(element, std::max<std::size_t>(leaf.bits / 8, 1), scratch_ + leaf.scratch);
  }

  void run_tile(std::size_t first, std::size_t column, std::size_t count) noexcept {
    for (std::size_t i = 0; i < p_.leaves.size(); ++i) {
      const Leaf& leaf = p_.leaves[i];
      if (leaf.kind == Leaf::Kind::direct) {
        at_[leaf.slot] = base_[i] + column * leaf.bits / 8;
      } else if (leaf.kind == Leaf::Kind::gather) {
        gather_strided(base_[i], leaf.bits, leaf.dims, leaf.strides, column, count,
                       scratch_ + leaf.scratch);
      }
    }
    for (const Written& out : p_.outputs)
      at_[out.slot] = run_.at<std::byte>(out.at) + first * out.bits / 8;
    for (std::size_t k = 0; k < p_.code.size(); ++k) {
      if (p_.fetches_ahead) prefetch_share(k);
      const Instruction& i = p_.code[k];
      i.function({at_[i.to],
                  {at_[i.in[0]], at_[i.in[1]], at_[i.in[2]]},
                  {p_.mask[i.in[0]], p_.mask[i.in[1]], p_.mask[i.in[2]]},
                  count,
                  &run_,
                  first});
    }
  }

  /// Fetches instruction k's share of a tile ahead. Beyond the end of a tensor that does nothing.
  void prefetch_share(std::size_t k) const noexcept {
    for (std::size_t i = 0; i < p_.leaves.size(); ++i) {
      const Share share(tile_bytes_of(p_.leaf_ahead[i], p_.leaves[i].bits), k, p_.code.size());
      for (std::size_t at = share.begin; at < share.end; at += kLine)
        __builtin_prefetch(at_[p_.leaves[i].slot] + p_.leaf_ahead[i] + at, 0, 3);
    }
    for (std::size_t i = 0; i < p_.outputs.size(); ++i) {
      const Share share(tile_bytes_of(p_.output_ahead[i], p_.outputs[i].bits), k, p_.code.size());
      for (std::size_t at = share.begin; at < share.end; at += kLine)
        __builtin_prefetch(at_[p_.outputs[i].slot] + p_.output_ahead[i] + at, 1, 3);
    }
  }

  std::size_t tile_bytes_of(std::size_t ahead, unsigned bits) const noexcept {
    return ahead == 0 ? 0 : p_.tile * bits / 8;
  }

  /// Whole lines of `bytes` for part k of n.
  struct Share {
    Share(std::size_t bytes, std::size_t k, std::size_t n) noexcept
        : begin(bytes / kLine * k / n * kLine), end(bytes / kLine * (k + 1) / n * kLine) {}
    std::size_t begin, end;
  };

  const TileProgram& p_;
  const Run& run_;
  std::array<std::byte*, kMaxSlots> at_;
  std::array<std::byte*, kMaxSlots> base_;  ///< of each leaf's row
  alignas(kLine) std::byte scratch_[kScratchBytes];
};

struct RegionParams {
  const TileProgram* program;
};

void run_region(const RegionParams& params, const Run& run) noexcept {
  const TileProgram& p = *params.program;
  parallel_for(run.pool, p.parts, [&](std::size_t part) noexcept {
    TileRunner(p, run).run(p.tiles * part / p.parts, p.tiles * (part + 1) / p.parts);
  });
}

}  // namespace

Match accepts_elementwise(const Node& node) {
  const Body body = body_of(node);
  if (body.operations.size() + body.values.size() > 2 * kMaxOperations)
    return Match::no(fmt::format("more than {} operators and inputs", kMaxOperations));
  if (node.type().shape.rank() > kMaxAxes)
    return Match::no(fmt::format("more than {} axes", kMaxAxes));
  for (const BodyValue& v : body.values) {
    if (v.constant != nullptr && v.constant->size() != 1)
      return Match::no("a constant that is no scalar");
  }
  for (const Operation& operation : body.operations) {
    if (Match match = accepts_operation(body, operation); !match.yes) return match;
  }
  return {};
}

void plan_elementwise(StepBuilder& step) {
  if (step.out().size() == 0) return;
  std::shared_ptr<const TileProgram> program = ProgramBuilder(step).build();
  const RegionParams params{program.get()};
  step.keep_alive(std::move(program));
  step.launch(run_region, params);
}

}  // namespace rlx::cpu
