#include "server/bench/machine_limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "kernels/buffer.h"
#include "server/bench/peak_loops.h"

namespace hexad {
namespace {

constexpr double kSecondsEach = 0.6;
constexpr int64_t kPieceBytes = int64_t{8} << 20;  // four streams of 2 MiB
constexpr int64_t kPieces = 64;
constexpr int64_t kPeakRounds = 200000;  // about 2 ms

double Now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// The best rate of many passes: what disturbs a pass only ever makes it slower.
double BestRate(double amount, absl::FunctionRef<void()> pass) {
  double best = 0;
  pass();
  for (const double begin = Now(); Now() - begin < kSecondsEach;) {
    const double start = Now();
    pass();
    best = std::max(best, amount / (Now() - start));
  }
  return best;
}

double MeasureRead(ThreadTeam& team) {
  HugeBuffer buffer(static_cast<size_t>(kPieceBytes * kPieces));
  // Touched by the threads that will read it, and not zero pages.
  team.ParallelFor(kPieces, 1, [&](int64_t begin, int64_t end, int) {
    std::memset(buffer.data() + begin * kPieceBytes, 1,
                static_cast<size_t>((end - begin) * kPieceBytes));
  });
  return BestRate(static_cast<double>(kPieceBytes * kPieces), [&] {
    team.ParallelFor(kPieces, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        ReadFourStreams(buffer.data() + i * kPieceBytes, kPieceBytes);
      }
    });
  });
}

double MeasurePeak(const PeakLoop& loop, ThreadTeam& team) {
  if (loop.run == nullptr) return 0;
  const int64_t pieces = int64_t{8} * team.threads();
  return BestRate(static_cast<double>(pieces * kPeakRounds) * loop.ops_per_round, [&] {
    team.ParallelFor(pieces, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) loop.run(kPeakRounds);
    });
  });
}

double Over(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

double MemorySeconds(const Work& work, const MachineLimits& limits) {
  return Over(work.bytes, limits.read_bytes);
}

double ComputeSeconds(const Work& work, const MachineLimits& limits) {
  return Over(work.fp32_ops, limits.fp32_ops) + Over(work.int8_ops, limits.int8_ops) +
         Over(work.int4_ops, limits.int4_ops);
}

// Whose weights, less their offsets, take four bits or fewer.
bool FourBits(DType type) {
  switch (type) {
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ2_K:
    case DType::kQ3_K:
    case DType::kQ4_K:
      return true;
    default:
      return false;
  }
}

}  // namespace

MachineLimits MeasureLimits(ThreadTeam& team) {
  const PeakLoops loops = BestPeakLoops();
  MachineLimits limits;
  limits.threads = team.threads();
  limits.read_bytes = MeasureRead(team);
  limits.fp32_ops = MeasurePeak(loops.fp32, team);
  limits.int8_ops = MeasurePeak(loops.int8, team);
  limits.int4_ops = MeasurePeak(loops.int4, team);
  return limits;
}

void AddProduct(DType type, Activations activations, double values, double tokens, Work& work) {
  const DTypeInfo& info = Info(type);
  work.bytes += values / info.block_values * info.block_bytes;
  const double ops = 2 * values * tokens;
  const bool floats = type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
  if (floats || activations == Activations::kF32) {
    work.fp32_ops += ops;
  } else if (FourBits(type)) {
    work.int4_ops += ops;
  } else {
    work.int8_ops += ops;
  }
}

double LimitSeconds(const Work& work, const MachineLimits& limits) {
  return std::max(MemorySeconds(work, limits), ComputeSeconds(work, limits));
}

const char* LimitName(const Work& work, const MachineLimits& limits) {
  return MemorySeconds(work, limits) >= ComputeSeconds(work, limits) ? "memory" : "compute";
}

std::string LimitsTable(const MachineLimits& limits) {
  const auto rate = [](double value) {
    return value > 0 ? absl::StrFormat("%.1f", value / 1e9) : std::string("not measured");
  };
  return absl::StrFormat(
      "limits of this machine, %d threads: memory %s GB/s; G op/s: fp32 %s, int8 dot %s, 4-bit dot "
      "%s\n",
      limits.threads, rate(limits.read_bytes), rate(limits.fp32_ops), rate(limits.int8_ops),
      rate(limits.int4_ops));
}

std::string LimitsJson(const MachineLimits& limits) {
  return absl::StrFormat(
      "{\"threads\":%d,\"read_bytes_per_second\":%.4g,\"fp32_ops_per_second\":%.4g,"
      "\"int8_ops_per_second\":%.4g,\"int4_ops_per_second\":%.4g}",
      limits.threads, limits.read_bytes, limits.fp32_ops, limits.int8_ops, limits.int4_ops);
}

}  // namespace hexad
