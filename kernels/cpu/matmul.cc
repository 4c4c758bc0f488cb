#include "kernels/matmul.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/kernel_set.h"
#include "kernels/cpu/panels.h"

namespace hexad {
namespace {

using cpu::kPanelRows;
using cpu::PanelCount;

// Some panels of one matrix.
struct Piece {
  const MatMulOutput* output;
  int64_t first;
  int64_t last;
};

void Divide(std::span<const MatMulOutput> outputs, const ThreadTeam& team,
            std::vector<Piece>& pieces) {
  pieces.clear();
  for (const MatMulOutput& output : outputs) {
    const int64_t panels = PanelCount(*output.weights);
    if (panels == 0) continue;
    const int64_t size = cpu::PanelsPerPiece(*output.weights, 1, team);
    for (int64_t first = 0; first < panels; first += size) {
      pieces.push_back({&output, first, std::min(panels, first + size)});
    }
  }
}

int64_t Pieces(int64_t panels, int64_t size) { return (panels + size - 1) / size; }

// Of this thread, for `count` floats; valid until the next call.
float* Scratch(int64_t count) {
  thread_local AlignedVector<float> storage;
  if (storage.size() < static_cast<size_t>(count)) {
    storage.clear();
    storage.resize(static_cast<size_t>(count));
  }
  return storage.data();
}

// The greatest logit so far of one row.
struct Best {
  float logit = -std::numeric_limits<float>::infinity();
  int32_t id = 0;

  void Take(float other_logit, int32_t other_id) {
    if (!(other_logit > logit || (other_logit == logit && other_id < id))) return;
    logit = other_logit;
    id = other_id;
  }
};

// Takes in the logits of ids first..first+width-1.
void TakeGreatest(const float* logits, int64_t first, int64_t width, Best& best) {
  const float max = cpu::Kernels().max(logits, width);
  if (!(max >= best.logit) || max == -std::numeric_limits<float>::infinity()) return;
  const float* const at = std::find(logits, logits + width, max);
  best.Take(max, static_cast<int32_t>(first + (at - logits)));
}

}  // namespace

void MatMul(const MatMulInput& x, std::span<const MatMulOutput> outputs, ThreadTeam& team) {
  if (x.rows() <= 0) return;
  thread_local std::vector<Piece> storage;
  Divide(outputs, team, storage);
  const std::vector<Piece>& pieces = storage;  // of the calling thread
  team.ParallelFor(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const auto [output, first, last] = pieces[static_cast<size_t>(i)];
      cpu::ComputePanels(x, *output->weights, first, last, output->y + first * kPanelRows,
                         output->weights->out());
    }
  });
}

void MatMul(const float* x, int64_t rows, std::span<const MatMulOutput> outputs, ThreadTeam& team) {
  if (rows <= 0 || outputs.empty()) return;
  thread_local MatMulInput input;
  std::vector<const PackedMatrix*> weights;
  for (const MatMulOutput& output : outputs) weights.push_back(output.weights);
  input.Reset(rows, weights);
  input.PutAll(x, team);
  MatMul(input, outputs, team);
}

void GatedMatMul(const MatMulInput& x, const PackedMatrix& gate, const PackedMatrix& up, Gate kind,
                 MatMulInput& out, ThreadTeam& team) {
  assert(gate.out() == up.out() && out.rows() == x.rows() && out.dim() == gate.out());
  const int64_t rows = x.rows();
  if (rows <= 0) return;
  const int64_t panels = PanelCount(gate);
  const int64_t size = cpu::PanelsPerPiece(gate, 2, team);
  const auto activate = kind == Gate::kSilu ? cpu::Kernels().silu_gate : cpu::Kernels().gelu_gate;
  team.ParallelFor(Pieces(panels, size), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * size, last = std::min(panels, first + size);
      const int64_t width = std::min(gate.out(), last * kPanelRows) - first * kPanelRows;
      float* const gates = Scratch(2 * rows * width);
      float* const ups = gates + rows * width;
      cpu::ComputePanels(x, gate, first, last, gates, width);
      cpu::ComputePanels(x, up, first, last, ups, width);
      activate(gates, ups, rows * width, gates);
      out.Put(gates, 0, rows, first * kPanelRows, width);
    }
  });
}

void MatMulLogits(const MatMulInput& x, const PackedMatrix& head, float cap,
                  std::span<LogitRow> rows, ThreadTeam& team) {
  assert(static_cast<int64_t>(rows.size()) == x.rows());
  const int64_t count = x.rows();
  if (count <= 0) return;
  const int64_t panels = PanelCount(head);
  const int64_t size = cpu::PanelsPerPiece(head, 1, team);
  // Of each thread, on cache lines of its own.
  constexpr int64_t kBestsPerLine = kCacheLine / sizeof(Best);
  const int64_t stride = (count + kBestsPerLine - 1) / kBestsPerLine * kBestsPerLine;
  thread_local AlignedVector<Best> storage;
  storage.assign(static_cast<size_t>(stride * team.threads()), Best{});
  Best* const bests = storage.data();
  team.ParallelFor(Pieces(panels, size), 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * size, last = std::min(panels, first + size);
      const int64_t id = first * kPanelRows;
      const int64_t width = std::min(head.out(), last * kPanelRows) - id;
      float* const logits = Scratch(count * width);
      cpu::ComputePanels(x, head, first, last, logits, width);
      if (cap > 0) cpu::Kernels().softcap(logits, cap, count * width);
      for (int64_t r = 0; r < count; ++r) {
        const float* const own = logits + r * width;
        TakeGreatest(own, id, width, bests[thread * stride + r]);
        float* const kept = rows[static_cast<size_t>(r)].logits;
        if (kept != nullptr)
          std::memcpy(kept + id, own, sizeof(float) * static_cast<size_t>(width));
      }
    }
  });
  for (int64_t r = 0; r < count; ++r) {
    Best best;
    for (int t = 0; t < team.threads(); ++t) {
      const Best& other = bests[t * stride + r];
      best.Take(other.logit, other.id);
    }
    rows[static_cast<size_t>(r)].best = best.id;
  }
}

}  // namespace hexad
