// Logits of tiny models of each family, against PyTorch transformers (tests/tools/
// make_model_goldens.py): at every position, by chunks of any size, on both host models.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/models/cpu_transformer.h"
#include "engine/models/model_file.h"
#include "engine/models/reference_transformer.h"
#include "gtest/gtest.h"

namespace hexad {
namespace {

struct Golden {
  std::vector<TokenId> tokens;
  size_t vocabulary = 0;
  std::vector<float> logits;  // [tokens, vocabulary]
};

const std::string kFolder = std::string(HEXAD_SOURCE_DIR) + "/tests/golden/models/";

Golden ReadGolden(const std::string& name) {
  std::ifstream in(kFolder + name + ".logits", std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in),
                                std::istreambuf_iterator<char>()};
  Golden golden;
  int32_t sizes[2] = {0, 0};
  if (bytes.size() < sizeof(sizes)) return golden;
  std::memcpy(sizes, bytes.data(), sizeof(sizes));
  golden.tokens.resize(static_cast<size_t>(sizes[0]));
  golden.vocabulary = static_cast<size_t>(sizes[1]);
  golden.logits.resize(golden.tokens.size() * golden.vocabulary);
  const size_t ids = golden.tokens.size() * sizeof(int32_t);
  EXPECT_EQ(bytes.size(), sizeof(sizes) + ids + golden.logits.size() * sizeof(float));
  std::memcpy(golden.tokens.data(), bytes.data() + sizeof(sizes), ids);
  std::memcpy(golden.logits.data(), bytes.data() + sizeof(sizes) + ids,
              golden.logits.size() * sizeof(float));
  return golden;
}

// The greatest difference to the golden logits, computing `chunk` tokens at a time.
float WorstError(Model& model, const Golden& golden, size_t num_groups, size_t chunk) {
  std::vector<uint32_t> table(8);
  std::iota(table.rbegin(), table.rend(), 0);  // blocks in no particular order
  const std::vector<std::vector<uint32_t>> tables(num_groups, table);
  float worst = 0;
  for (size_t at = 0; at < golden.tokens.size(); at += chunk) {
    const size_t count = std::min(chunk, golden.tokens.size() - at);
    const ForwardSequence sequence{static_cast<int64_t>(at), static_cast<int32_t>(count), 1,
                                   tables};
    const auto forward =
        model.Forward({std::span(golden.tokens).subspan(at, count), std::span(&sequence, 1)});
    EXPECT_TRUE(forward.ok());
    const std::span<const float> logits = forward->logits;
    EXPECT_EQ(logits.size(), golden.vocabulary);
    const float* expected = golden.logits.data() + (at + count - 1) * golden.vocabulary;
    for (size_t i = 0; i < logits.size(); ++i) {
      const float error = std::abs(logits[i] - expected[i]);
      worst = std::isfinite(error) ? std::max(worst, error) : 1e9f;
    }
  }
  return worst;
}

class ModelGoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto file = OpenModelFile(kFolder + GetParam() + ".gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *file;
    golden_ = ReadGolden(GetParam());
    ASSERT_EQ(golden_.vocabulary, static_cast<size_t>(file_->spec.vocab_size));
  }
  KvStorageOptions Kv(DType type) const {
    return {type, 16, std::vector<uint32_t>(file_->spec.groups.size(), 8)};
  }

  std::shared_ptr<const ModelFile> file_;
  Golden golden_;
};

TEST_P(ModelGoldenTest, ReferenceTransformer) {
  for (const size_t chunk : {1, 7, 48}) {
    auto model = MakeReferenceTransformer(file_, Kv(DType::kF32));
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_LT(WorstError(**model, golden_, file_->spec.groups.size(), chunk), 2e-3f);
  }
}

TEST_P(ModelGoldenTest, CpuTransformer) {
  ThreadTeam team(2);
  const auto weights = PackCpuWeights(*file_, team, Activations::kF32);
  for (const size_t chunk : {1, 7, 48}) {
    auto model = MakeCpuTransformer(file_, weights, Kv(DType::kF32), team);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_LT(WorstError(**model, golden_, file_->spec.groups.size(), chunk), 2e-3f);
    model = MakeCpuTransformer(file_, weights, Kv(DType::kF16), team);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_LT(WorstError(**model, golden_, file_->spec.groups.size(), chunk), 5e-2f);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ModelGoldenTest, ::testing::Values("llama", "qwen2", "gemma3"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hexad
