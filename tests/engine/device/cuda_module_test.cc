#include "engine/device/cuda_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/device/elf_file.h"

namespace hexad {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Fake(const std::string& kind) {
  return std::string(HEXAD_FAKE_MODULES) + "/hexad_fake_cuda_" + kind + ".so";
}

std::string Scratch(const std::string& name, const std::string& content) {
  const std::string path = ::testing::TempDir() + "hexad_cuda_module_" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

GpuProbe ProbeOne(const std::string& path) {
  const std::array<std::string, 1> paths = {path};
  return ProbeGpu(paths);
}

TEST(CudaModuleTest, MissingFileIsNotFound) {
  const auto module = CudaModule::Load("/nonexistent/libhexad_cuda.so");
  EXPECT_EQ(module.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(module.status().message()), HasSubstr("/nonexistent/libhexad_cuda.so"));
}

TEST(CudaModuleTest, NameWithoutFolderIsNotSearchedInTheSystem) {
  EXPECT_EQ(CudaModule::Load("libc.so.6").status().code(), absl::StatusCode::kNotFound);
}

TEST(CudaModuleTest, GarbageIsNoModule) {
  for (const std::string& content :
       {std::string(), std::string("garbage"), std::string(4096, 'x'), std::string("\177ELF"),
        "\177ELF\2\1\1" + std::string(4096, '\0'), "\177ELF" + std::string(4096, '\377')}) {
    const auto module = CudaModule::Load(Scratch("garbage.so", content));
    EXPECT_EQ(module.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(module.status().message()), HasSubstr("no usable shared library"));
  }
}

TEST(CudaModuleTest, AModuleCutOffAnywhereIsAnError) {
  const std::string whole = Content(Fake("good"));
  ASSERT_GT(whole.size(), 4096u);
  // What lies past the last segment (section headers, debug information) is not needed to load.
  size_t refused = 0;
  for (size_t bytes = 0; bytes < whole.size(); bytes += whole.size() / 40) {
    const std::string path = Scratch("cut.so", whole.substr(0, bytes));
    if (!CheckSharedObject(path).ok()) {
      ++refused;
      EXPECT_EQ(CudaModule::Load(path).status().code(), absl::StatusCode::kFailedPrecondition);
    }
  }
  EXPECT_GT(refused, 5u);
}

TEST(CudaModuleTest, FolderIsNoModule) {
  EXPECT_EQ(CudaModule::Load(::testing::TempDir()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(CudaModuleTest, OtherVersionIsRefusedWithBothNumbers) {
  const auto module = CudaModule::Load(Fake("old_version"));
  EXPECT_EQ(module.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(module.status().message()), HasSubstr("interface version 42"));
  EXPECT_THAT(std::string(module.status().message()), HasSubstr("this program version 1"));
}

TEST(CudaModuleTest, LibraryWithoutTheEntryIsRefused) {
  const auto module = CudaModule::Load(Fake("no_entry"));
  EXPECT_EQ(module.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(module.status().message()), HasSubstr("hexad_cuda_module"));
}

TEST(CudaModuleTest, RunsWhatTheModuleOffers) {
  const auto module = CudaModule::Load(Fake("good"));
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_EQ((*module)->devices().size(), 2u);
  EXPECT_EQ((*module)->devices()[1].multiprocessors, 101);
  EXPECT_EQ(std::string((*module)->devices()[0].name), std::string(255, 'x'));

  std::array<float, 4> x = {1, -1, 2, -2};
  std::array<float, 2> weight = {1, 10};
  auto device_x = (*module)->Allocate(0, sizeof(x));
  auto device_weight = (*module)->Allocate(0, sizeof(weight));
  ASSERT_TRUE(device_x.ok() && device_weight.ok());
  ASSERT_TRUE(device_x->Write(std::as_bytes(std::span(x))).ok());
  ASSERT_TRUE(device_weight->Write(std::as_bytes(std::span(weight))).ok());
  ASSERT_TRUE((*module)
                  ->RmsNorm(0, {.x = device_x->as<float>(),
                                .weight = device_weight->as<float>(),
                                .out = device_x->as<float>(),
                                .rows = 2,
                                .size = 2,
                                .epsilon = 0})
                  .ok());
  ASSERT_TRUE((*module)->Synchronize(0).ok());
  ASSERT_TRUE(device_x->Read(std::as_writable_bytes(std::span(x))).ok());
  EXPECT_THAT(x, ElementsAre(FloatNear(1, 1e-6f), FloatNear(-10, 1e-5f), FloatNear(1, 1e-6f),
                             FloatNear(-10, 1e-5f)));
}

TEST(CudaModuleTest, ErrorsKeepTheirKindAndWords) {
  const auto module = CudaModule::Load(Fake("good"));
  ASSERT_TRUE(module.ok()) << module.status();
  const auto huge = (*module)->Allocate(0, uint64_t{1} << 40);
  EXPECT_EQ(huge.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(huge.status().message(), "fake memory is full");
  EXPECT_EQ((*module)->RmsNorm(0, {}).code(), absl::StatusCode::kInvalidArgument);
  auto small = (*module)->Allocate(0, 4);
  ASSERT_TRUE(small.ok());
  std::array<std::byte, 5> bytes = {};
  EXPECT_EQ(small->Write(bytes).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(small->Read(bytes).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ProbeGpuTest, SaysWhyThereIsNoGpu) {
  const GpuProbe none = ProbeOne("/nonexistent/libhexad_cuda.so");
  EXPECT_EQ(none.outcome, GpuOutcome::kNoModule);
  EXPECT_THAT(none.reason, HasSubstr("not installed: no /nonexistent/libhexad_cuda.so"));

  const GpuProbe driver = ProbeOne(Fake("no_driver"));
  EXPECT_EQ(driver.outcome, GpuOutcome::kNoGpu);
  EXPECT_THAT(driver.reason, HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(driver.reason, HasSubstr("fake error 35"));

  const GpuProbe device = ProbeOne(Fake("no_device"));
  EXPECT_EQ(device.outcome, GpuOutcome::kNoGpu);
  EXPECT_THAT(device.reason, HasSubstr("no CUDA device"));

  const GpuProbe failing = ProbeOne(Fake("failing"));
  EXPECT_EQ(failing.outcome, GpuOutcome::kFailed);
  EXPECT_THAT(failing.reason, HasSubstr("fake error 999"));

  EXPECT_EQ(ProbeOne(Fake("old_version")).outcome, GpuOutcome::kBadModule);
  EXPECT_EQ(ProbeOne(Scratch("text.so", "text")).outcome, GpuOutcome::kBadModule);
  for (const GpuProbe* probe : {&none, &driver, &device, &failing}) {
    EXPECT_EQ(probe->module, nullptr);
  }
}

TEST(ProbeGpuTest, TakesTheFirstPathThatExists) {
  const std::vector<std::string> paths = {"/nonexistent/a.so", Fake("good"), Fake("no_driver")};
  const GpuProbe probe = ProbeGpu(paths);
  EXPECT_EQ(probe.outcome, GpuOutcome::kReady) << probe.reason;
  ASSERT_NE(probe.module, nullptr);
  EXPECT_THAT(probe.reason, HasSubstr("2 device(s)"));
}

TEST(ProbeGpuTest, LooksBesideTheProgramFirst) {
  EXPECT_THAT(
      CudaModulePaths("/opt/hexad/bin"),
      ElementsAre("/opt/hexad/bin/libhexad_cuda.so", "/opt/hexad/bin/../lib/hexad/libhexad_cuda.so",
                  "/opt/hexad/bin/../lib/libhexad_cuda.so"));
}

// The real module, where this build has one: loads on a machine without a driver too.
TEST(ProbeGpuTest, RealModuleGivesAGpuOrTheReasonWhyNot) {
#if defined(HEXAD_CUDA_MODULE)
  const GpuProbe probe = ProbeOne(HEXAD_CUDA_MODULE);
  std::cout << "probe: " << probe.reason << "\n";
  EXPECT_THAT(probe.reason, Not(testing::IsEmpty()));
  EXPECT_THAT(probe.outcome, testing::AnyOf(GpuOutcome::kReady, GpuOutcome::kNoGpu));
#else
  GTEST_SKIP() << "this build has no CUDA module: no toolkit was found, or HEXAD_CUDA=OFF";
#endif
}

}  // namespace
}  // namespace hexad
