#include "engine/models/model_file.h"

#include <openssl/evp.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "engine/models/families/families.h"
#include "kvcache/core/check.h"

namespace hexad {
namespace {

constexpr size_t kEdgeBytes = 4096;
constexpr size_t kSampleBytes = 256;
constexpr size_t kLeastStride = 1 << 20;
constexpr size_t kMostSamples = 4096;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    HEXAD_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1,
                "OpenSSL has SHA-256");
  }
  ~Sha256() { EVP_MD_CTX_free(context_); }
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(std::span<const std::byte> bytes) {
    HEXAD_CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1, "SHA-256 goes on");
  }
  std::string Finish() {
    unsigned char digest[32];
    HEXAD_CHECK(EVP_DigestFinal_ex(context_, digest, nullptr) == 1, "SHA-256 ends");
    return absl::BytesToHexString({reinterpret_cast<const char*>(digest), sizeof(digest)});
  }

 private:
  EVP_MD_CTX* context_;
};

}  // namespace

std::string ModelDigest(const GgufFile& file) {
  Sha256 hash;
  constexpr std::string_view kDomain = "hexad model digest 1";
  hash.Add(std::as_bytes(std::span(kDomain)));
  hash.Add(file.header());
  for (const GgufTensor& tensor : file.tensors()) {
    const std::span<const std::byte> data = tensor.data;
    hash.Add(data.first(std::min(kEdgeBytes, data.size())));
    const size_t stride = std::max(kLeastStride, data.size() / kMostSamples);
    for (size_t at = stride; at + kSampleBytes <= data.size(); at += stride) {
      hash.Add(data.subspan(at, kSampleBytes));
    }
    hash.Add(data.last(std::min(kEdgeBytes, data.size())));
  }
  return hash.Finish();
}

absl::StatusOr<std::shared_ptr<const ModelFile>> MakeModelFile(std::unique_ptr<GgufFile> gguf) {
  auto model = std::make_shared<ModelFile>();
  absl::StatusOr<TransformerSpec> spec = ReadSpec(*gguf);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<ModelTensors> tensors = BindTensors(*gguf, *spec);
  if (!tensors.ok()) return tensors.status();
  model->digest = ModelDigest(*gguf);
  model->spec = *std::move(spec);
  model->tensors = *std::move(tensors);
  model->gguf = std::move(gguf);
  return std::shared_ptr<const ModelFile>(std::move(model));
}

absl::StatusOr<std::shared_ptr<const ModelFile>> OpenModelFile(const std::string& path) {
  absl::StatusOr<std::unique_ptr<GgufFile>> gguf = GgufFile::Open(path);
  if (!gguf.ok()) return gguf.status();
  return MakeModelFile(*std::move(gguf));
}

}  // namespace hexad
