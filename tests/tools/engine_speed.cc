// engine_speed MODEL.gguf [THREADS [PROMPT [NEW [STREAMS [f32|int8]]]]]: prefill and decode tokens
// a second through the CPU executor, without a scheduler. Best and median of a few runs, by the
// wall clock and, for busy machines, a second of CPU time times the threads.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "engine/cpu_executor.h"
#include "engine/models/model_file.h"
#include "tests/engine/testing/step_driver.h"

namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Rates {
 public:
  void Start() {
    wall_start_ = Clock::now();
    cpu_start_ = CpuSeconds();
  }
  void Stop(double tokens, int threads) {
    wall_.push_back(tokens / Seconds(wall_start_));
    cpu_.push_back(tokens / (CpuSeconds() - cpu_start_) * threads);
  }
  void Print(const char* name) {
    std::sort(wall_.begin(), wall_.end());
    std::sort(cpu_.begin(), cpu_.end());
    std::printf("%s tokens/s: wall best %.1f, median %.1f; by CPU time best %.1f, median %.1f\n",
                name, wall_.back(), wall_[wall_.size() / 2], cpu_.back(), cpu_[cpu_.size() / 2]);
  }

 private:
  Clock::time_point wall_start_;
  double cpu_start_ = 0;
  std::vector<double> wall_, cpu_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: engine_speed MODEL.gguf [THREADS [PROMPT [NEW [STREAMS [f32|int8]]]]]\n");
    return 2;
  }
  const int prompt = argument(3, 512);
  const int fresh = argument(4, 64);
  const int streams = argument(5, 1);
  const auto start = Clock::now();
  const auto model = hexad::OpenModelFile(argv[1]);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  hexad::CpuExecutorOptions options;
  options.threads = argument(2, 2);
  if (argc > 6 && std::string(argv[6]) == "int8") options.activations = hexad::Activations::kInt8;
  options.pool_blocks.assign((*model)->spec.groups.size(),
                             static_cast<uint32_t>((prompt + fresh + 32) / 16 * streams * 5));
  const auto executor = hexad::MakeCpuExecutor(*model, options);
  if (!executor.ok()) {
    std::fprintf(stderr, "%s\n", executor.status().ToString().c_str());
    return 1;
  }
  std::printf("%s, %d threads, loaded in %.2f s\n", (*executor)->shape().numerics_id.c_str(),
              options.threads, Seconds(start));
  Rates prefill;
  Rates decode;
  for (int run = 0; run < 4; ++run) {
    hexad::StepDriver driver(**executor);
    hexad::SamplingParams greedy;
    greedy.temperature = 0;
    std::vector<std::pair<size_t, int32_t>> work;
    for (int s = 0; s < streams; ++s) {
      std::vector<hexad::TokenId> ids;
      for (int i = 0; i < prompt; ++i) ids.push_back(hexad::TokenId{(i * 37 + s * 11) % 1000});
      work.push_back({driver.Add(ids, greedy), prompt});
    }
    prefill.Start();
    for (const auto& one : work) {
      if (!driver.Step({one}).ok()) return 1;
    }
    prefill.Stop(static_cast<double>(prompt) * streams, options.threads);
    decode.Start();
    for (int i = 0; i < fresh; ++i) {
      if (!driver.Step(work).ok()) return 1;
    }
    decode.Stop(static_cast<double>(fresh) * streams, options.threads);
    for (const auto& [sequence, tokens] : work) driver.Preempt(sequence);
    if (!driver.Step({}).ok()) return 1;
    // The next run's driver starts its blocks and slots anew.
  }
  prefill.Print("prefill");
  decode.Print("decode");
  return 0;
}
