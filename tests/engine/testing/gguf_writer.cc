#include "tests/engine/testing/gguf_writer.h"

#include <fstream>
#include <utility>

#include "gtest/gtest.h"

namespace hexad {

uint32_t GgufTypeId(DType type) {
  switch (type) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ5_0:
      return 6;
    case DType::kQ5_1:
      return 7;
    case DType::kQ8_0:
      return 8;
    case DType::kQ2_K:
      return 10;
    case DType::kQ3_K:
      return 11;
    case DType::kQ4_K:
      return 12;
    case DType::kQ5_K:
      return 13;
    case DType::kQ6_K:
      return 14;
    case DType::kIQ4_NL:
      return 20;
    case DType::kBF16:
      return 30;
  }
  return 0xffff;
}

void AppendText(std::vector<std::byte>& out, std::string_view text) {
  AppendBytes(out, static_cast<uint64_t>(text.size()));
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), bytes, bytes + text.size());
}

void GgufWriter::SetRaw(std::string_view key, uint32_t type, std::span<const std::byte> value) {
  AppendText(metadata_, key);
  AppendBytes(metadata_, type);
  metadata_.insert(metadata_.end(), value.begin(), value.end());
  ++entries_;
}

namespace {

template <typename T>
std::vector<std::byte> Bytes(T value) {
  std::vector<std::byte> bytes;
  AppendBytes(bytes, value);
  return bytes;
}

std::vector<std::byte> ArrayHead(uint32_t type, size_t count) {
  std::vector<std::byte> bytes;
  AppendBytes(bytes, type);
  AppendBytes(bytes, static_cast<uint64_t>(count));
  return bytes;
}

}  // namespace

void GgufWriter::Set(std::string_view key, uint32_t value) { SetRaw(key, 4, Bytes(value)); }
void GgufWriter::Set(std::string_view key, int32_t value) { SetRaw(key, 5, Bytes(value)); }
void GgufWriter::Set(std::string_view key, float value) { SetRaw(key, 6, Bytes(value)); }
void GgufWriter::Set(std::string_view key, bool value) {
  SetRaw(key, 7, Bytes(static_cast<uint8_t>(value)));
}
void GgufWriter::Set(std::string_view key, std::string_view value) {
  std::vector<std::byte> bytes;
  AppendText(bytes, value);
  SetRaw(key, 8, bytes);
}
void GgufWriter::Set(std::string_view key, const std::vector<std::string>& values) {
  std::vector<std::byte> bytes = ArrayHead(8, values.size());
  for (const std::string& value : values) AppendText(bytes, value);
  SetRaw(key, 9, bytes);
}
void GgufWriter::Set(std::string_view key, const std::vector<int32_t>& values) {
  std::vector<std::byte> bytes = ArrayHead(5, values.size());
  for (const int32_t value : values) AppendBytes(bytes, value);
  SetRaw(key, 9, bytes);
}
void GgufWriter::Set(std::string_view key, const std::vector<float>& values) {
  std::vector<std::byte> bytes = ArrayHead(6, values.size());
  for (const float value : values) AppendBytes(bytes, value);
  SetRaw(key, 9, bytes);
}
void GgufWriter::Set(std::string_view key, const std::vector<bool>& values) {
  std::vector<std::byte> bytes = ArrayHead(7, values.size());
  for (const bool value : values) AppendBytes(bytes, static_cast<uint8_t>(value));
  SetRaw(key, 9, bytes);
}

void GgufWriter::Tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type,
                        std::span<const std::byte> data) {
  tensors_.push_back({std::string(name), std::move(dims), type, {data.begin(), data.end()}});
}
void GgufWriter::Tensor(std::string_view name, std::vector<uint64_t> dims,
                        std::span<const float> values) {
  Tensor(name, std::move(dims), GgufTypeId(DType::kF32), std::as_bytes(values));
}

std::vector<std::byte> GgufWriter::Build(uint32_t alignment) const {
  std::vector<std::byte> out;
  AppendBytes(out, uint32_t{0x46554747});
  AppendBytes(out, version_);
  AppendBytes(out, static_cast<uint64_t>(tensors_.size()));
  AppendBytes(out, entries_ + (alignment == 32 ? 0 : 1));
  out.insert(out.end(), metadata_.begin(), metadata_.end());
  if (alignment != 32) {
    AppendText(out, "general.alignment");
    AppendBytes(out, uint32_t{4});
    AppendBytes(out, alignment);
  }
  const auto padded = [&](uint64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  uint64_t offset = 0;
  for (const Info& tensor : tensors_) {
    AppendText(out, tensor.name);
    AppendBytes(out, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) AppendBytes(out, dim);
    AppendBytes(out, tensor.type);
    AppendBytes(out, offset);
    offset += padded(tensor.data.size());
  }
  for (const Info& tensor : tensors_) {
    out.resize(padded(out.size()));
    out.insert(out.end(), tensor.data.begin(), tensor.data.end());
  }
  return out;
}

std::string WriteTemporaryFile(std::string_view name, std::span<const std::byte> bytes) {
  const std::string path = ::testing::TempDir() + std::string(name);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace hexad
