#pragma once

// Opens libhexad_cuda.so. A machine without the module, without a driver or without a device is
// the ordinary "no GPU", with a reason to print; so is a module that cannot be used, but that one
// deserves a warning.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/device/cuda_abi.h"

namespace hexad {

class CudaModule;

// Memory on a device; freed with this object, which must not outlive its module.
class CudaBuffer final {
 public:
  CudaBuffer(const CudaModule& module, int32_t device, void* memory, uint64_t bytes);
  ~CudaBuffer();
  CudaBuffer(CudaBuffer&& other) noexcept;
  CudaBuffer& operator=(CudaBuffer&&) = delete;

  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }
  uint64_t bytes() const { return bytes_; }
  int32_t device() const { return device_; }

  // The first bytes of the buffer. InvalidArgument: more than bytes().
  absl::Status Write(std::span<const std::byte> from);
  absl::Status Read(std::span<std::byte> to) const;

 private:
  const CudaModule* module_;
  int32_t device_;
  void* memory_;
  uint64_t bytes_;
};

class CudaModule final {
 public:
  // NotFound: no such file. FailedPrecondition: the file is no module, or of another version.
  // Unavailable: the module is fine, but there is no driver or no device. Internal: CUDA failed.
  static absl::StatusOr<std::unique_ptr<CudaModule>> Load(const std::string& path);
  // The library stays mapped: the CUDA runtime inside it has threads and exit handlers of its own.
  ~CudaModule() = default;
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  const std::string& path() const { return path_; }
  std::string_view build() const { return table_->build; }
  const std::vector<HexadCudaDevice>& devices() const { return devices_; }  // at least one

  // Thread-safe all. `device` indexes devices(). ResourceExhausted: no memory on the device.
  absl::StatusOr<CudaBuffer> Allocate(int32_t device, uint64_t bytes) const;
  absl::Status RmsNorm(int32_t device, const HexadCudaRmsNorm& arguments) const;
  absl::Status Synchronize(int32_t device) const;

  // OK, or the module's words for its last error on this thread.
  absl::Status ToStatus(HexadCudaResult result) const;
  const HexadCudaTable& table() const { return *table_; }

 private:
  CudaModule(std::string path, const HexadCudaTable* table)
      : path_(std::move(path)), table_(table) {}

  std::string path_;
  const HexadCudaTable* table_;
  std::vector<HexadCudaDevice> devices_;
};

enum class GpuOutcome : uint8_t {
  kReady,
  kNoModule,   // no file at any of the paths
  kBadModule,  // a file that is no module of this version
  kNoGpu,      // no driver or no device
  kFailed,     // CUDA reported something else
};

struct GpuProbe {
  GpuOutcome outcome = GpuOutcome::kNoModule;
  std::string reason;                  // one line; for kReady what was found
  std::unique_ptr<CudaModule> module;  // for kReady only
};

// Takes the first of `paths` that exists. Never fails: see the outcome.
GpuProbe ProbeGpu(std::span<const std::string> paths);

// Where the module lies for a program in `executable_folder`: beside it, in ../lib/hexad, or in
// ../lib, the build tree's.
std::vector<std::string> CudaModulePaths(std::string_view executable_folder);

}  // namespace hexad
