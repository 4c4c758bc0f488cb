#include "server/models/file_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "server/models/digest.h"
#include "tests/server/models/fixtures.h"

namespace hexad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FileIo, AFileIsUnderItsFinalNameOnlyWhenPublished) {
  ScratchFolder folder;
  auto file = WritableFile::Open(folder / "a.part", false);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Append(std::string_view("one")).ok());
  EXPECT_THAT(folder.Names(), ElementsAre("a.part"));
  ASSERT_TRUE(file->Publish(folder / "a").ok());
  EXPECT_THAT(folder.Names(), ElementsAre("a"));
  EXPECT_EQ(ReadText(folder / "a"), "one");
}

TEST(FileIo, AppendsAndTruncates) {
  ScratchFolder folder;
  WriteText(folder / "a", "one");
  auto file = WritableFile::Open(folder / "a", true);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 3);
  ASSERT_TRUE(file->Append(std::string_view("two")).ok());
  EXPECT_EQ(ReadText(folder / "a"), "onetwo");
  ASSERT_TRUE(file->Truncate().ok());
  ASSERT_TRUE(file->Append(std::string_view("3")).ok());
  EXPECT_EQ(ReadText(folder / "a"), "3");
}

TEST(FileIo, APlantedLinkIsNotFollowed) {
  ScratchFolder folder;
  WriteText(folder / "victim", "safe");
  ASSERT_EQ(::symlink((folder / "victim").c_str(), (folder / "a.part").c_str()), 0);
  EXPECT_FALSE(WritableFile::Open(folder / "a.part", false).ok());
  EXPECT_EQ(ReadText(folder / "victim"), "safe");
}

TEST(FileIo, AFullDiskSaysWhereAndWhatToDo) {
  auto file = WritableFile::Open("/dev/full", true);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status status = file->Append(std::string_view("x"));
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full: the disk is full"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("HEXAD_CACHE"));
}

TEST(FileIo, SpaceIsCheckedBefore) {
  ScratchFolder folder;
  EXPECT_TRUE(CheckFreeSpace(folder.path(), 0).ok());
  const absl::Status status = CheckFreeSpace(folder.path(), int64_t{1} << 60);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1.2 EB wanted"));
}

TEST(FileIo, ALockIsHeldUntilDropped) {
  ScratchFolder folder;
  auto first = LockFile(folder / "l", false);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(LockFile(folder / "l", false).status()));
  first->Close();
  EXPECT_TRUE(LockFile(folder / "l", false).ok());
}

TEST(FileIo, SmallFilesAndMagic) {
  ScratchFolder folder;
  WriteText(folder / "a", "12345");
  EXPECT_EQ(ReadSmallFile(folder / "a", 5).value(), "12345");
  EXPECT_FALSE(ReadSmallFile(folder / "a", 4).ok());
  WriteText(folder / "page", "<html>\nlogin");
  EXPECT_THAT(std::string(CheckGgufMagic(folder / "page").message()),
              HasSubstr("begins with \"<html>.login"));
  WriteText(folder / "m", FakeGguf(100));
  EXPECT_TRUE(CheckGgufMagic(folder / "m").ok());
}

TEST(FileIo, Sizes) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(98362432), "98.4 MB");
  EXPECT_EQ(HumanBytes(999950), "1.0 MB");
}

TEST(Digest, KnownVectorsAndComparison) {
  EXPECT_EQ(Sha256Of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(IsSha256(Sha256Of("x")));
  EXPECT_FALSE(IsSha256("ba78"));
  EXPECT_FALSE(IsSha256(std::string(64, 'g')));
  EXPECT_TRUE(CompareSha256("f", "AB", "ab").ok());
  const absl::Status status = CompareSha256("f", "ab", "cd");
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected sha256 ab, got cd"));
}

TEST(ProgressLines, TenthsWithoutATerminalAndABarOnOne) {
  RecordedProgress lines;
  lines.get().Begin("f", 1000, 0);
  for (int64_t done = 0; done <= 1000; done += 10) lines.get().Update(done);
  lines.get().End();
  const std::string text = lines.Text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_THAT(text, HasSubstr("f: 500 B of 1.0 kB"));
  RecordedProgress bar(true);
  bar.get().Line("pulling");
  bar.get().Begin("f", 1000, 0);
  bar.get().End();
  EXPECT_EQ(bar.Text(), "pulling\n");  // nothing drawn, nothing to clear
}

}  // namespace
}  // namespace hexad
