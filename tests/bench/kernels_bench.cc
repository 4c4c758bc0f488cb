// Speed of the CPU kernels, against which the limits of the machine (memory bandwidth, FMA rate)
// can be held. Not a test.
//
//     kernels_bench [threads] [filter [rows]]
//
// filter: a weight format, "team" or "attention"; rows: only matrices with so many.

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/buffer.h"
#include "kernels/dequantize.h"
#include "kernels/matmul.h"
#include "kernels/thread_team.h"

namespace hexad {
namespace {

// With one thread its CPU time, which neighbours disturb less, else wall time.
double Now(bool cpu_time) {
  timespec time;
  clock_gettime(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Best and median seconds of one call, over about 0.4 s.
struct Timing {
  double best;
  double median;
};

Timing Measure(const ThreadTeam& team, const std::function<void()>& body) {
  const bool cpu_time = team.threads() == 1;
  body();
  std::vector<double> times;
  double total = 0;
  while (times.size() < 5 || (total < 0.4 && times.size() < 10000)) {
    const double start = Now(cpu_time);
    body();
    times.push_back(Now(cpu_time) - start);
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

std::vector<uint8_t> RandomRows(DType type, int64_t rows, int64_t in) {
  std::mt19937 engine(1);
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * RowBytes(type, in)));
  // Bytes below 0x3c keep every half finite and small wherever it stands.
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(engine() % 0x3c);
  return bytes;
}

struct Shape {
  int64_t out;
  int64_t in;
};

// Enough copies of the matrix that the caches hold no part of the next one.
void BenchMatMul(DType type, Activations activations, Shape shape, ThreadTeam& team) {
  const std::vector<uint8_t> rows = RandomRows(type, shape.out, shape.in);
  std::vector<PackedMatrix> copies;
  size_t bytes = 0;
  do {
    copies.push_back(PackedMatrix::Pack(type, rows.data(), shape.out, shape.in, team, activations));
    bytes += copies.back().bytes();
  } while (bytes < (size_t{256} << 20) && copies.size() < 512);
  const double matrix_bytes = static_cast<double>(copies[0].bytes());
  for (const int64_t tokens : {1, 2, 4, 6, 8, 12, 16, 32, 64, 512}) {
    if (tokens > 64 && shape.out * shape.in > (int64_t{1} << 24)) continue;
    std::vector<float> x(static_cast<size_t>(tokens * shape.in), 0.5f);
    std::vector<float> y(static_cast<size_t>(tokens * shape.out));
    size_t next = 0;
    const Timing time = Measure(
        team, [&] { MatMul(x.data(), tokens, copies[next++ % copies.size()], y.data(), team); });
    const double flop = 2.0 * static_cast<double>(tokens * shape.out * shape.in);
    std::printf(
        "%-5s %s %6lld x %-5lld tokens %4lld  %9.1f us  %6.1f GB/s  %6.1f GFLOP/s  (best %.1f "
        "us)\n",
        Info(type).name, activations == Activations::kInt8 ? "int8" : "f32 ",
        static_cast<long long>(shape.out), static_cast<long long>(shape.in),
        static_cast<long long>(tokens), time.median * 1e6, matrix_bytes / time.median / 1e9,
        flop / time.median / 1e9, time.best * 1e6);
    std::fflush(stdout);
  }
}

struct AttentionShape {
  int heads;
  int kv_heads;
  int head_dim;
  int rows;
  int sequences;
};

void BenchAttention(DType type, AttentionShape shape, ThreadTeam& team) {
  constexpr int kContext = 4096, kBlock = 32;
  const KvBlockShape layout{type, shape.kv_heads, shape.head_dim, kBlock};
  const int64_t blocks = int64_t{kContext} / kBlock * shape.sequences;
  HugeBuffer memory(static_cast<size_t>(2 * blocks * layout.BlockBytes()));
  const KvPool pool{layout, memory.data(), memory.data() + blocks * layout.BlockBytes()};
  std::vector<uint32_t> table(static_cast<size_t>(blocks));
  std::iota(table.begin(), table.end(), 0u);
  std::vector<KvSequence> sequences;
  for (int s = 0; s < shape.sequences; ++s) {
    sequences.push_back(
        {table.data() + int64_t{s} * kContext / kBlock, kContext - shape.rows, shape.rows});
  }
  const int64_t q_values = int64_t{shape.rows} * shape.sequences * shape.heads * shape.head_dim;
  std::vector<float> q(static_cast<size_t>(q_values), 0.01f), out(q.size());
  AttentionArgs args;
  args.q = q.data();
  args.out = out.data();
  args.heads = shape.heads;
  args.pool = pool;
  args.sequences = sequences;
  args.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  const Timing time = Measure(team, [&] { Attention(args, team); });
  const double flop = 4.0 * static_cast<double>(q_values) * kContext;
  const double bytes = 2.0 * static_cast<double>(blocks * layout.BlockBytes());
  std::printf(
      "attention %-4s heads %2d/%d dim %3d context %d rows %3d x %d  %9.1f us  %5.1f GB/s of KV  "
      "%6.1f GFLOP/s  (best %.1f us)\n",
      Info(type).name, shape.heads, shape.kv_heads, shape.head_dim, kContext, shape.rows,
      shape.sequences, time.median * 1e6, bytes / time.median / 1e9, flop / time.median / 1e9,
      time.best * 1e6);
  std::fflush(stdout);
}

void BenchTeam(ThreadTeam& team) {
  const Timing time = Measure(team, [&] { team.ParallelFor(64, 1, [](int64_t, int64_t, int) {}); });
  std::printf("empty job of 64 pieces: median %.2f us, best %.2f us\n", time.median * 1e6,
              time.best * 1e6);
}

int Main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::string filter = argc > 2 ? argv[2] : "";
  ThreadTeam team(threads);
  std::printf("%s, %d threads\n", std::string(KernelSetName()).c_str(), team.threads());
  if (filter.empty() || filter == "team") BenchTeam(team);
  const int64_t only_rows = argc > 3 ? std::atoi(argv[3]) : 0;
  for (const DType type : {DType::kF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                           DType::kQ4_K, DType::kQ6_K}) {
    if (!filter.empty() && filter != Info(type).name) continue;
    for (const Shape shape :
         {Shape{1536, 576}, Shape{4864, 896}, Shape{8192, 2048}, Shape{49152, 576}}) {
      if (shape.in % Info(type).block_values != 0) continue;
      if (only_rows > 0 && shape.out != only_rows) continue;
      BenchMatMul(type, Activations::kF32, shape, team);
      if (type != DType::kF16) BenchMatMul(type, Activations::kInt8, shape, team);
    }
  }
  if (filter.empty() || filter == "attention") {
    for (const DType type : {DType::kF16, DType::kF32}) {
      for (const AttentionShape& shape :
           {AttentionShape{9, 3, 64, 1, 1}, AttentionShape{14, 2, 64, 1, 1},
            AttentionShape{32, 8, 64, 1, 1}, AttentionShape{4, 1, 256, 1, 1},
            AttentionShape{14, 2, 64, 1, 8}, AttentionShape{14, 2, 64, 16, 1},
            AttentionShape{9, 3, 64, 256, 1}}) {
        BenchAttention(type, shape, team);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace hexad

int main(int argc, char** argv) { return hexad::Main(argc, argv); }
