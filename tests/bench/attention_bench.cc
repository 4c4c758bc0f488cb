// Time of a step's attention, all layers of a model, beside what the machine allows. Not a test.
//
//     attention_bench [threads [model [case [f16|f32|q8_0 [GFLOP/s GB/s]]]]]
//
// model: qwen05b, llama1b or gemma270m; case: decode, prefill or shared; "" for all. The last two
// are the machine's limits, of which the larger time is the floor.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/attention_plan.h"
#include "kernels/buffer.h"
#include "kernels/thread_team.h"

namespace hexad {
namespace {

constexpr int kBlock = 16;

struct ModelCase {
  const char* name;
  int heads;
  int kv_heads;
  int head_dim;
  int layers;
};

struct Settings {
  int threads = 2;
  std::string model, kind, type;
  double flops = 204e9;
  double bandwidth = 46.7e9;
};

// Sequences that share their first blocks, over as many pools as the model has layers.
class Step final {
 public:
  Step(const ModelCase& model, DType type, int streams, int shared, int64_t depth, int rows)
      : model_(model), layout_{type, model.kv_heads, model.head_dim, kBlock} {
    const int64_t own = (depth + rows - shared + kBlock - 1) / kBlock + 1;
    blocks_ = shared / kBlock + streams * own;
    memory_ = HugeBuffer(static_cast<size_t>(2 * blocks_ * layout_.BlockBytes() * model.layers));
    tables_.resize(static_cast<size_t>(streams));
    uint32_t next = 0;
    std::vector<uint32_t> prefix(static_cast<size_t>(shared / kBlock));
    for (uint32_t& block : prefix) block = next++;
    for (std::vector<uint32_t>& table : tables_) {
      table = prefix;
      for (int64_t i = 0; i < own; ++i) table.push_back(next++);
      sequences_.push_back({table.data(), depth, rows});
    }
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    q_.resize(static_cast<size_t>(int64_t{rows} * streams * model.heads * model.head_dim));
    for (float& value : q_) value = normal(engine);
    out_.resize(q_.size());
    Fill(engine);
  }

  KvPool Pool(int layer) {
    std::byte* const k = memory_.data() + 2 * layer * blocks_ * layout_.BlockBytes();
    return {layout_, k, k + blocks_ * layout_.BlockBytes()};
  }

  void Attend(bool share, ThreadTeam& team) {
    PlanAttention({sequences_, layout_, model_.heads, 0, team.threads(), share}, plan_);
    for (int layer = 0; layer < model_.layers; ++layer) {
      AttentionArgs args;
      args.q = q_.data();
      args.out = out_.data();
      args.heads = model_.heads;
      args.pool = Pool(layer);
      args.sequences = sequences_;
      args.scale = 1.0f / std::sqrt(static_cast<float>(model_.head_dim));
      args.plan = &plan_;
      Attention(args, team);
    }
  }

  double Flops() const {
    double keys = 0;
    for (const KvSequence& sequence : sequences_) {
      for (int row = 0; row < sequence.num_rows; ++row) {
        keys += static_cast<double>(sequence.first_position + row + 1);
      }
    }
    return 4.0 * keys * model_.heads * model_.head_dim * model_.layers;
  }
  double Bytes() const {
    return 2.0 * static_cast<double>(blocks_ * layout_.BlockBytes() * model_.layers);
  }

 private:
  // Keys and values of one layer, copied to the others: a token's are random, all in range.
  void Fill(std::mt19937& engine) {
    const int64_t width = int64_t{model_.kv_heads} * model_.head_dim;
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(width * kBlock));
    std::vector<uint32_t> all(static_cast<size_t>(blocks_));
    std::iota(all.begin(), all.end(), 0u);
    ThreadTeam one(1);
    for (int64_t block = 0; block < blocks_; ++block) {
      if (block < 64) {
        for (float& value : values) value = normal(engine);
      }
      const KvSequence sequence{all.data() + block, 0, kBlock};
      for (int layer = 0; layer < model_.layers; ++layer) {
        StoreKv(Pool(layer), {&sequence, 1}, values.data(), values.data(), one);
      }
    }
  }

  const ModelCase model_;
  const KvBlockShape layout_;
  int64_t blocks_ = 0;
  HugeBuffer memory_;
  std::vector<std::vector<uint32_t>> tables_;
  std::vector<KvSequence> sequences_;
  std::vector<float> q_, out_;
  AttentionPlan plan_;
};

// Best and median milliseconds.
void Report(const Settings& settings, const std::string& name, Step& step, bool share,
            ThreadTeam& team) {
  std::vector<double> times;
  double total = 0;
  step.Attend(share, team);
  while (times.size() < 3 || (total < 0.2 && times.size() < 100)) {
    const auto start = std::chrono::steady_clock::now();
    step.Attend(share, team);
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  const double floor = std::max(step.Flops() / settings.flops, step.Bytes() / settings.bandwidth);
  std::printf(
      "%-44s best %8.3f ms, median %8.3f ms; %6.1f GFLOP/s; floor %8.3f ms, share %2.0f %%\n",
      name.c_str(), times.front() * 1e3, times[times.size() / 2] * 1e3,
      step.Flops() / times.front() / 1e9, floor * 1e3, 100 * floor / times.front());
  std::fflush(stdout);
}

void BenchModel(const Settings& settings, const ModelCase& model, DType type, ThreadTeam& team) {
  const std::string prefix = std::string(model.name) + " " + Info(type).name;
  const auto wanted = [&](const char* kind) {
    return settings.kind.empty() || settings.kind == kind;
  };
  if (wanted("decode")) {
    for (const int depth : {128, 1024, 4096}) {
      Step step(model, type, 1, 0, depth, 1);
      Report(settings, prefix + " decode at " + std::to_string(depth), step, true, team);
    }
  }
  if (wanted("prefill")) {
    for (const int depth : {0, 1024, 4096}) {
      for (const int rows : {16, 64, 512}) {
        Step step(model, type, 1, 0, depth, rows);
        Report(settings, prefix + " " + std::to_string(rows) + " rows at " + std::to_string(depth),
               step, true, team);
      }
    }
  }
  if (wanted("shared")) {
    for (const int streams : {8, 32}) {
      Step step(model, type, streams, 2000, 2100, 1);
      const std::string name = prefix + " " + std::to_string(streams) + " streams, 2000 shared";
      Report(settings, name + ", apart", step, false, team);
      Report(settings, name, step, true, team);
    }
  }
}

int Main(int argc, char** argv) {
  const auto text = [&](int i) { return std::string(argc > i ? argv[i] : ""); };
  Settings settings;
  if (argc > 1) settings.threads = std::atoi(argv[1]);
  settings.model = text(2);
  settings.kind = text(3);
  settings.type = text(4);
  if (argc > 6) {
    settings.flops = std::atof(argv[5]) * 1e9;
    settings.bandwidth = std::atof(argv[6]) * 1e9;
  }
  ThreadTeam team(settings.threads);
  std::printf("%s, %d threads\n", std::string(AttentionKernelsName()).c_str(), team.threads());
  for (const ModelCase& model :
       {ModelCase{"qwen05b", 14, 2, 64, 24}, ModelCase{"llama1b", 32, 8, 64, 16},
        ModelCase{"gemma270m", 4, 1, 256, 18}}) {
    if (!settings.model.empty() && settings.model != model.name) continue;
    for (const auto& [name, type] : {std::pair{"f16", DType::kF16}, std::pair{"f32", DType::kF32},
                                     std::pair{"q8_0", DType::kQ8_0}}) {
      if (settings.type.empty() || settings.type == name) BenchModel(settings, model, type, team);
    }
  }
  return 0;
}

}  // namespace
}  // namespace hexad

int main(int argc, char** argv) { return hexad::Main(argc, argv); }
