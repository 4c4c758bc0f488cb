// Runs every kernel of libhexad_cuda.so on every GPU of this machine and compares it with the same
// source run on the CPU by kernels/shim (bit for bit) and with plain loops.
//
//   hexad_device_check [libhexad_cuda.so]
//
// Exit status: 0 all is well, 1 a check failed, 77 no GPU (and why), 2 the module cannot be used.

#include <unistd.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/cuda_module.h"
#include "kernels/cuda/rms_norm.cuh"

namespace hexad {
namespace {

constexpr int kExitNoGpu = 77;
constexpr int kExitBadModule = 2;

std::vector<float> RandomValues(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Each check gives what is wrong, or nothing.
using Fault = std::string;

Fault Describe(const absl::Status& status) { return std::string(status.message()); }

absl::StatusOr<CudaBuffer> Upload(const CudaModule& module, int32_t device,
                                  std::span<const float> values) {
  absl::StatusOr<CudaBuffer> buffer = module.Allocate(device, values.size_bytes());
  if (!buffer.ok()) return buffer;
  if (const absl::Status status = buffer->Write(std::as_bytes(values)); !status.ok()) return status;
  return buffer;
}

absl::StatusOr<std::vector<float>> RmsNormOnDevice(const CudaModule& module, int32_t device,
                                                   const std::vector<float>& x,
                                                   const std::vector<float>& weight) {
  auto device_x = Upload(module, device, x);
  if (!device_x.ok()) return device_x.status();
  auto device_weight = Upload(module, device, weight);
  if (!device_weight.ok()) return device_weight.status();
  const HexadCudaRmsNorm arguments = {.x = device_x->as<float>(),
                                      .weight = device_weight->as<float>(),
                                      .out = device_x->as<float>(),
                                      .rows = static_cast<int32_t>(x.size() / weight.size()),
                                      .size = static_cast<int32_t>(weight.size()),
                                      .epsilon = 1e-5f};
  if (const absl::Status status = module.RmsNorm(device, arguments); !status.ok()) return status;
  std::vector<float> out(x.size());
  if (const absl::Status status = device_x->Read(std::as_writable_bytes(std::span(out)));
      !status.ok()) {
    return status;
  }
  return out;
}

Fault CheckRmsNorm(const CudaModule& module, int32_t device, int32_t rows, int32_t size) {
  const std::vector<float> x = RandomValues(size_t{1} * rows * size, 1 + size);
  const std::vector<float> weight = RandomValues(size, 2 + size);
  const auto got = RmsNormOnDevice(module, device, x, weight);
  if (!got.ok()) return Describe(got.status());

  shim::Stream stream(shim::ThreadOrder::kRandom, 3);
  std::vector<float> twin(x.size());
  cuda::RmsNorm(&stream, x.data(), weight.data(), twin.data(), rows, size, 1e-5f);
  if (!stream.error().empty()) return "on the CPU: " + stream.error();
  for (size_t i = 0; i < twin.size(); ++i) {
    if (std::bit_cast<uint32_t>(twin[i]) != std::bit_cast<uint32_t>((*got)[i])) {
      char text[128];
      std::snprintf(text, sizeof(text), "value %zu is %.9g on the device, %.9g on the CPU", i,
                    (*got)[i], twin[i]);
      return text;
    }
  }
  for (int32_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (int32_t i = 0; i < size; ++i) squares += double{x[row * size + i]} * x[row * size + i];
    const double scale = 1 / std::sqrt(squares / size + 1e-5);
    for (int32_t i = 0; i < size; ++i) {
      const double want = x[row * size + i] * scale * weight[i];
      if (!(std::abs((*got)[row * size + i] - want) <= 2e-6 * std::abs(want) + 1e-12)) {
        return "row " + std::to_string(row) + " differs from plain loops";
      }
    }
  }
  return "";
}

Fault CheckMemory(const CudaModule& module, int32_t device) {
  std::vector<float> values = RandomValues(size_t{4} << 20, 5);
  auto buffer = Upload(module, device, values);
  if (!buffer.ok()) return Describe(buffer.status());
  std::vector<float> back(values.size());
  const absl::Status status = buffer->Read(std::as_writable_bytes(std::span(back)));
  if (!status.ok()) return Describe(status);
  return back == values ? "" : "16 MiB came back changed";
}

Fault CheckErrors(const CudaModule& module, int32_t device) {
  const absl::Status huge = module.Allocate(device, uint64_t{1} << 50).status();
  if (huge.code() != absl::StatusCode::kResourceExhausted) {
    return "a petabyte was not refused as out of memory: " + huge.ToString();
  }
  const absl::Status empty = module.RmsNorm(device, {});
  if (empty.code() != absl::StatusCode::kInvalidArgument) {
    return "an empty row was not refused: " + empty.ToString();
  }
  return CheckRmsNorm(module, device, 2, 640);  // the device must have taken no harm
}

Fault CheckThreads(const CudaModule& module, int32_t device) {
  std::vector<Fault> faults(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { faults[i] = CheckRmsNorm(module, device, 8, 512 + 64 * i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Fault& fault : faults) {
    if (!fault.empty()) return fault;
  }
  return "";
}

bool Run(const char* name, const std::function<Fault()>& check) {
  const auto start = std::chrono::steady_clock::now();
  const Fault fault = check();
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::printf("  %-28s %s (%.0f ms)%s%s\n", name, fault.empty() ? "ok" : "FAILED", ms,
              fault.empty() ? "" : ": ", fault.c_str());
  return fault.empty();
}

bool CheckDevice(const CudaModule& module, int32_t device) {
  const HexadCudaDevice& info = module.devices()[device];
  std::printf("device %d: %s, compute %d.%d, %d multiprocessors, %.1f GiB\n", device, info.name,
              info.compute_major, info.compute_minor, info.multiprocessors,
              info.memory_bytes / 1073741824.0);
  bool good = Run("memory", [&] { return CheckMemory(module, device); });
  for (const int32_t size : {1, 31, 256, 257, 640, 2048, 4097, 16384}) {
    const std::string name = "rms_norm [33, " + std::to_string(size) + "]";
    good &= Run(name.c_str(), [&] { return CheckRmsNorm(module, device, 33, size); });
  }
  good &= Run("errors", [&] { return CheckErrors(module, device); });
  good &= Run("four threads", [&] { return CheckThreads(module, device); });
  return good;
}

std::string FolderOfThisProgram() {
  char path[4096];
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path));
  const std::string program(path, bytes > 0 ? bytes : 0);
  return program.substr(0, program.rfind('/'));
}

int Main(int argc, char** argv) {
  const std::vector<std::string> paths =
      argc > 1 ? std::vector<std::string>{argv[1]} : CudaModulePaths(FolderOfThisProgram());
  const GpuProbe probe = ProbeGpu(paths);
  std::printf("%s\n", probe.reason.c_str());
  if (probe.outcome == GpuOutcome::kNoModule || probe.outcome == GpuOutcome::kNoGpu) {
    return kExitNoGpu;
  }
  if (probe.outcome != GpuOutcome::kReady) return kExitBadModule;
  std::printf("module: %s\n", std::string(probe.module->build()).c_str());
  bool good = true;
  for (size_t device = 0; device < probe.module->devices().size(); ++device) {
    good &= CheckDevice(*probe.module, static_cast<int32_t>(device));
  }
  std::printf("%s\n", good ? "all checks passed" : "some checks FAILED");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace hexad

int main(int argc, char** argv) { return hexad::Main(argc, argv); }
