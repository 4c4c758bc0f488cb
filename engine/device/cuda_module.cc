#include "engine/device/cuda_module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "engine/device/elf_file.h"

namespace hexad {
namespace {

std::string LastDlError() {
  const char* error = dlerror();
  return error != nullptr ? error : "unknown reason";
}

absl::StatusOr<const HexadCudaTable*> OpenTable(const std::string& path) {
  // The dynamic loader trusts the file's own sizes: a cut-off file would be a bus error.
  if (const absl::Status complete = CheckSharedObject(path); !complete.ok()) return complete;

  // Without a slash dlopen would search the system's folders.
  const std::string exact = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(exact.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s cannot be loaded: %s", path, LastDlError()));
  }
  const auto entry = reinterpret_cast<HexadCudaEntry>(dlsym(library, HEXAD_CUDA_ENTRY_NAME));
  if (entry == nullptr) {
    dlclose(library);
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is no CUDA module of hexad: it has no %s", path, HEXAD_CUDA_ENTRY_NAME));
  }
  const HexadCudaTable* table = entry();
  if (table == nullptr || table->abi_version != HEXAD_CUDA_ABI_VERSION ||
      table->table_bytes != sizeof(HexadCudaTable)) {
    const std::string found =
        table == nullptr ? "none"
                         : absl::StrFormat("%u (%u bytes)", table->abi_version, table->table_bytes);
    dlclose(library);
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s speaks interface version %s, this program version %u (%u bytes): install the module of "
        "the same release",
        path, found, HEXAD_CUDA_ABI_VERSION, sizeof(HexadCudaTable)));
  }
  return table;
}

absl::Status TooLong(size_t asked, uint64_t bytes) {
  return absl::InvalidArgumentError(
      absl::StrFormat("copy of %d bytes with a device buffer of %d", asked, bytes));
}

}  // namespace

CudaBuffer::CudaBuffer(const CudaModule& module, int32_t device, void* memory, uint64_t bytes)
    : module_(&module), device_(device), memory_(memory), bytes_(bytes) {}

CudaBuffer::CudaBuffer(CudaBuffer&& other) noexcept
    : module_(other.module_),
      device_(other.device_),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

CudaBuffer::~CudaBuffer() {
  // A failure here means that the device is lost; the next call that has a result says so.
  if (memory_ != nullptr) module_->table().release(device_, memory_);
}

absl::Status CudaBuffer::Write(std::span<const std::byte> from) {
  if (from.size() > bytes_) return TooLong(from.size(), bytes_);
  return module_->ToStatus(
      module_->table().copy_to_device(device_, memory_, from.data(), from.size()));
}

absl::Status CudaBuffer::Read(std::span<std::byte> to) const {
  if (to.size() > bytes_) return TooLong(to.size(), bytes_);
  return module_->ToStatus(module_->table().copy_to_host(device_, to.data(), memory_, to.size()));
}

absl::StatusOr<std::unique_ptr<CudaModule>> CudaModule::Load(const std::string& path) {
  absl::StatusOr<const HexadCudaTable*> table = OpenTable(path);
  if (!table.ok()) return table.status();
  std::unique_ptr<CudaModule> module(new CudaModule(path, *table));
  int32_t count = 0;
  if (const absl::Status status = module->ToStatus((*table)->device_count(&count)); !status.ok()) {
    return status;
  }
  if (count < 1) return absl::UnavailableError("no CUDA device");
  for (int32_t device = 0; device < count; ++device) {
    HexadCudaDevice& properties = module->devices_.emplace_back();
    if (const absl::Status status = module->ToStatus((*table)->device(device, &properties));
        !status.ok()) {
      return status;
    }
    properties.name[sizeof(properties.name) - 1] = '\0';
  }
  return module;
}

absl::Status CudaModule::ToStatus(HexadCudaResult result) const {
  if (result == HEXAD_CUDA_OK) return absl::OkStatus();
  const char* text = table_->last_error();
  const std::string error = text != nullptr ? text : "unknown reason";
  switch (result) {
    case HEXAD_CUDA_NO_DRIVER:
      return absl::UnavailableError(
          absl::StrFormat("no NVIDIA driver, or one too old for the module: %s", error));
    case HEXAD_CUDA_NO_DEVICE:
      return absl::UnavailableError(absl::StrFormat("no CUDA device: %s", error));
    case HEXAD_CUDA_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(error);
    case HEXAD_CUDA_INVALID:
      return absl::InvalidArgumentError(error);
    default:
      return absl::InternalError(error);
  }
}

absl::StatusOr<CudaBuffer> CudaModule::Allocate(int32_t device, uint64_t bytes) const {
  void* memory = nullptr;
  if (const absl::Status status = ToStatus(table_->allocate(device, bytes, &memory));
      !status.ok()) {
    return status;
  }
  return CudaBuffer(*this, device, memory, bytes);
}

absl::Status CudaModule::RmsNorm(int32_t device, const HexadCudaRmsNorm& arguments) const {
  return ToStatus(table_->rms_norm(device, &arguments));
}

absl::Status CudaModule::Synchronize(int32_t device) const {
  return ToStatus(table_->synchronize(device));
}

GpuProbe ProbeGpu(std::span<const std::string> paths) {
  for (const std::string& path : paths) {
    if (access(path.c_str(), F_OK) != 0) continue;
    absl::StatusOr<std::unique_ptr<CudaModule>> module = CudaModule::Load(path);
    GpuProbe probe;
    if (module.ok()) {
      probe.outcome = GpuOutcome::kReady;
      probe.module = *std::move(module);
      const HexadCudaDevice& first = probe.module->devices().front();
      probe.reason =
          absl::StrFormat("%d device(s), the first %s (compute %d.%d, %.1f GiB), by %s",
                          probe.module->devices().size(), first.name, first.compute_major,
                          first.compute_minor, first.memory_bytes / 1073741824.0, path);
      return probe;
    }
    switch (module.status().code()) {
      case absl::StatusCode::kUnavailable:
        probe.outcome = GpuOutcome::kNoGpu;
        break;
      case absl::StatusCode::kFailedPrecondition:
        probe.outcome = GpuOutcome::kBadModule;
        break;
      case absl::StatusCode::kNotFound:
        continue;  // gone since access()
      default:
        probe.outcome = GpuOutcome::kFailed;
    }
    probe.reason = std::string(module.status().message());
    return probe;
  }
  GpuProbe probe;
  probe.reason = "the CUDA module is not installed";
  for (const std::string& path : paths) {
    probe.reason += (&path == paths.data() ? ": no " : ", ") + path;
  }
  return probe;
}

std::vector<std::string> CudaModulePaths(std::string_view executable_folder) {
  constexpr std::string_view kFile = "libhexad_cuda.so";
  std::vector<std::string> paths;
  for (const std::string_view folder : {"/", "/../lib/hexad/", "/../lib/"}) {
    paths.push_back(std::string(executable_folder).append(folder).append(kFile));
  }
  return paths;
}

}  // namespace hexad
