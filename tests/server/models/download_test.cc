#include "server/models/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "server/models/redirects.h"
#include "tests/server/models/fixtures.h"

namespace hexad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DownloadTest : public ::testing::Test {
 protected:
  DownloadRequest Request(const FakeHttpServer& server, const std::string& path = "/m.gguf") {
    DownloadRequest request;
    request.url = server.Url(path);
    request.destination = folder_ / "m.gguf";
    request.label = "m.gguf";
    return request;
  }
  absl::StatusOr<DownloadResult> Run(const DownloadRequest& request) {
    return Download(request, limits_, progress_.get());
  }

  ScratchFolder folder_;
  RecordedProgress progress_;
  DownloadLimits limits_ = TestLimits();
  const std::string body_ = FakeGguf(300000);
};

TEST_F(DownloadTest, FetchesVerifiesAndLeavesOnlyTheFile) {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    ServeRange(request, connection, body_, "\"v1\"");
  });
  DownloadRequest request = Request(server);
  request.sha256 = Sha256Of(body_);
  request.size = static_cast<int64_t>(body_.size());
  const auto result = Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->verified);
  EXPECT_EQ(result->sha256, Sha256Of(body_));
  EXPECT_EQ(ReadText(folder_ / "m.gguf"), body_);
  EXPECT_THAT(folder_.Names(), ElementsAre("m.gguf"));
}

TEST_F(DownloadTest, ACutTransferContinuesWhereItStopped) {
  std::atomic<int> calls{0};
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    if (calls++ == 0) {  // promises all, sends a third, hangs up
      connection.SendHead(200,
                          {{"ETag", "\"v1\""}, {"Content-Length", std::to_string(body_.size())}});
      connection.Send(std::string_view(body_).substr(0, 100000));
      return;
    }
    ServeRange(request, connection, body_, "\"v1\"");
  });
  const auto result = Run(Request(server));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(ReadText(folder_ / "m.gguf"), body_);
  const auto requests = server.Requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].Header("range"), "bytes=100000-");
  EXPECT_EQ(requests[1].Header("if-range"), "\"v1\"");
  EXPECT_THAT(progress_.Text(), HasSubstr("continuing at 100.0 kB"));
}

TEST_F(DownloadTest, AnotherProcessContinuesToo) {
  std::atomic<bool> broken{true};
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    if (!broken) return ServeRange(request, connection, body_, "\"v1\"");
    connection.SendHead(200,
                        {{"ETag", "\"v1\""}, {"Content-Length", std::to_string(body_.size())}});
    connection.Send(std::string_view(body_).substr(0, 1000));
  });
  limits_.max_attempts = 1;
  EXPECT_TRUE(absl::IsUnavailable(Run(Request(server)).status()));
  EXPECT_FALSE(Exists(folder_ / "m.gguf"));
  EXPECT_EQ(ReadText(folder_ / "m.gguf.part"), body_.substr(0, 1000));
  broken = false;
  ASSERT_TRUE(Run(Request(server)).ok());
  EXPECT_EQ(server.Requests().back().Header("range"), "bytes=1000-");
  EXPECT_EQ(ReadText(folder_ / "m.gguf"), body_);
}

TEST_F(DownloadTest, AChangedFileBeginsAgain) {
  WriteText(folder_ / "m.gguf.part", "old bytes");
  std::atomic<int> calls{0};
  const std::string newer = FakeGguf(200000, 2);
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    if (calls++ == 0) {
      connection.SendHead(200, {{"ETag", "\"v1\""}, {"Content-Length", "300000"}});
      connection.Send(std::string_view(body_).substr(0, 100000));
      return;
    }
    ServeRange(request, connection, newer, "\"v2\"");  // If-Range fails: 200 and all of it
  });
  ASSERT_TRUE(Run(Request(server)).ok());
  EXPECT_EQ(ReadText(folder_ / "m.gguf"), newer);
}

TEST_F(DownloadTest, AServerThatIgnoresIfRangeCannotJoinTwoFiles) {
  std::atomic<int> calls{0};
  const std::string newer = FakeGguf(300000, 2);
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    const int call = calls++;
    if (call == 0) {
      connection.SendHead(200, {{"ETag", "\"v1\""}, {"Content-Length", "300000"}});
      connection.Send(std::string_view(body_).substr(0, 100000));
    } else if (call == 1) {
      connection.Respond(206, {{"ETag", "\"v2\""}, {"Content-Range", "bytes 100000-299999/300000"}},
                         std::string_view(newer).substr(100000));
    } else {
      ServeRange(request, connection, newer, "\"v2\"");
    }
  });
  ASSERT_TRUE(Run(Request(server)).ok());
  EXPECT_EQ(ReadText(folder_ / "m.gguf"), newer);
  EXPECT_EQ(calls, 3);
}

TEST_F(DownloadTest, WithoutAStrongTagNothingIsContinued) {
  std::atomic<int> calls{0};
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    if (calls++ == 0) {
      connection.SendHead(200, {{"ETag", "W/\"v1\""}, {"Content-Length", "300000"}});
      connection.Send(std::string_view(body_).substr(0, 100000));
      return;
    }
    connection.Respond(200, {}, body_);
  });
  ASSERT_TRUE(Run(Request(server)).ok());
  EXPECT_EQ(server.Requests()[1].Header("range"), "");
  EXPECT_EQ(ReadText(folder_ / "m.gguf"), body_);
}

TEST_F(DownloadTest, AnAnswerThatNoRangeIsLeftBeginsAgain) {
  std::atomic<int> calls{0};
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    const int call = calls++;
    if (call == 0) {
      connection.SendHead(200, {{"ETag", "\"v1\""}, {"Content-Length", "300000"}});
      connection.Send(std::string_view(body_).substr(0, 100000));
    } else if (call == 1) {
      connection.Respond(416, {}, "");
    } else {
      ServeRange(request, connection, body_, "\"v1\"");
    }
  });
  ASSERT_TRUE(Run(Request(server)).ok());
  EXPECT_EQ(ReadText(folder_ / "m.gguf"), body_);
}

TEST_F(DownloadTest, AStallIsCutAndContinued) {
  std::atomic<int> calls{0};
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    if (calls++ == 0) {
      connection.SendHead(200, {{"ETag", "\"v1\""}, {"Content-Length", "300000"}});
      connection.Send(std::string_view(body_).substr(0, 5000));
      connection.WaitForPeerToLeave();
      return;
    }
    ServeRange(request, connection, body_, "\"v1\"");
  });
  ASSERT_TRUE(Run(Request(server)).ok());
  EXPECT_EQ(server.Requests().back().Header("range"), "bytes=5000-");
}

TEST_F(DownloadTest, AWrongSumNamesBothAndDeletesWhatCame) {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    ServeRange(request, connection, body_, "\"v1\"");
  });
  DownloadRequest request = Request(server);
  request.sha256 = std::string(64, '0');
  const auto result = Run(request);
  EXPECT_TRUE(absl::IsDataLoss(result.status()));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr(request.sha256));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr(Sha256Of(body_)));
  EXPECT_THAT(folder_.Names(), IsEmpty());
  EXPECT_EQ(server.Requests().size(), 1u);
}

TEST_F(DownloadTest, TheHubsSumIsTakenFromTheFirstOriginAndWeakQuotesToo) {
  FakeHttpServer cdn([&](const FakeRequest& request, FakeConnection& connection) {
    connection.Respond(200, {{"ETag", "\"cdn\""}, {"X-Linked-Etag", std::string(64, 'f')}}, body_);
  });
  std::string linked = Sha256Of(body_);
  FakeHttpServer hub([&](const FakeRequest& request, FakeConnection& connection) {
    connection.Respond(302,
                       {{"Location", cdn.Url("/blob?sig=1")},
                        {"X-Linked-Etag", "\"" + linked + "\""},
                        {"X-Linked-Size", "300000"}},
                       "moved");
  });
  auto result = Run(Request(hub));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->verified);
  linked = std::string(64, 'e');
  EXPECT_TRUE(absl::IsDataLoss(Run(Request(hub)).status()));
}

TEST_F(DownloadTest, ATokenNeverReachesAnotherOrigin) {
  FakeHttpServer other([&](const FakeRequest& request, FakeConnection& connection) {
    ServeRange(request, connection, body_, "\"v1\"");
  });
  FakeHttpServer hub([&](const FakeRequest& request, FakeConnection& connection) {
    if (request.target == "/m.gguf") {
      connection.Respond(307, {{"Location", "/renamed/m.gguf"}}, "");
    } else {
      connection.Respond(302, {{"Location", other.Url("/blob")}}, "");
    }
  });
  DownloadRequest request = Request(hub);
  request.token = "secret";
  ASSERT_TRUE(Run(request).ok());
  ASSERT_EQ(hub.Requests().size(), 2u);
  EXPECT_EQ(hub.Requests()[0].Header("authorization"), "Bearer secret");
  EXPECT_EQ(hub.Requests()[1].Header("authorization"), "Bearer secret");
  ASSERT_EQ(other.Requests().size(), 1u);
  EXPECT_EQ(other.Requests()[0].Header("authorization"), "");
}

TEST_F(DownloadTest, RedirectsAreBoundedAndStayEncrypted) {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    if (request.target == "/plain") {
      connection.Respond(302, {{"Location", "http://example.org/x"}}, "");
    } else if (request.target == "/file") {
      connection.Respond(302, {{"Location", "file:///etc/passwd"}}, "");
    } else {
      connection.Respond(302, {{"Location", request.target + "x"}}, "");
    }
  });
  EXPECT_THAT(std::string(Run(Request(server)).status().message()), HasSubstr("8 redirects"));
  EXPECT_THAT(std::string(Run(Request(server, "/plain")).status().message()),
              HasSubstr("refused to follow a redirect"));
  EXPECT_FALSE(Run(Request(server, "/file")).ok());
  EXPECT_FALSE(Exists(folder_ / "m.gguf"));
}

TEST_F(DownloadTest, StatusesAreToldApartAndOnlySomeRetried) {
  std::atomic<int> status{404};
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    connection.Respond(status, {}, "{\"error\":\"why\x1b\"}");
  });
  const absl::Status not_found = Run(Request(server)).status();
  EXPECT_TRUE(absl::IsNotFound(not_found));
  EXPECT_THAT(std::string(not_found.message()), HasSubstr("answered 404: {\"error\":\"why \"}"));
  status = 401;
  EXPECT_TRUE(absl::IsUnauthenticated(Run(Request(server)).status()));
  status = 403;
  EXPECT_TRUE(absl::IsPermissionDenied(Run(Request(server)).status()));
  EXPECT_EQ(server.Requests().size(), 3u);
  status = 503;
  EXPECT_TRUE(absl::IsUnavailable(Run(Request(server)).status()));
  EXPECT_EQ(server.Requests().size(), 6u);  // three tries
}

TEST_F(DownloadTest, NoServerIsAnErrorAfterBoundedTries) {
  DownloadRequest request;
  request.url = "http://127.0.0.1:" + std::to_string(ClosedPort()) + "/x";
  request.destination = folder_ / "m.gguf";
  const absl::Status status = Run(request).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(progress_.Text(), HasSubstr("try 3 of 3"));
}

TEST_F(DownloadTest, LimitsHoldAgainstWhatTheServerSaysAndAgainstWhatItSends) {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    if (request.target == "/said") return connection.Respond(200, {}, body_);
    connection.SendHead(200, {});  // until the connection closes
    connection.Send(body_);
  });
  limits_.max_bytes = 1000;
  EXPECT_TRUE(absl::IsOutOfRange(Run(Request(server, "/said")).status()));
  EXPECT_TRUE(absl::IsOutOfRange(Run(Request(server, "/unsaid")).status()));
  limits_ = TestLimits();
  DownloadRequest pinned = Request(server, "/unsaid");
  pinned.size = 1000;
  EXPECT_FALSE(Run(pinned).ok());
  pinned.url = server.Url("/said");
  EXPECT_THAT(std::string(Run(pinned).status().message()), HasSubstr("pinned are 1000"));
  EXPECT_THAT(folder_.Names(), IsEmpty());
}

TEST_F(DownloadTest, TooLittleSpaceIsSeenBeforeTheFirstByte) {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    connection.SendHead(200, {{"Content-Length", "1000000000000000000"}});
    connection.WaitForPeerToLeave();
  });
  limits_.max_bytes = INT64_MAX;
  const absl::Status status = Run(Request(server)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("not enough disk space in " + folder_.path()));
  EXPECT_THAT(folder_.Names(), IsEmpty());
}

// In a child of its own, for the mount is seen by it alone. Exit codes: 77 where mounting is not
// allowed.
int FillSmallDisk(const std::string& folder, const DownloadRequest& request,
                  const DownloadLimits& limits) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=128k") != 0) {
    return 77;
  }
  RecordedProgress progress;
  const absl::Status status = Download(request, limits, progress.get()).status();
  if (!absl::IsResourceExhausted(status)) return 1;
  const std::string message(status.message());
  if (message.find("m.gguf.part: the disk is full") == std::string::npos) return 2;
  if (message.find("hexad models rm") == std::string::npos) return 3;
  return Exists(folder + "/m.gguf.part") || Exists(folder + "/m.gguf") ? 4 : 0;
}

TEST_F(DownloadTest, ADiskThatFillsUpIsReportedAndLeftEmpty) {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    connection.SendHead(200, {});  // no length, so that nothing can be checked before
    connection.Send(body_);
  });
  const DownloadRequest request = Request(server);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(FillSmallDisk(folder_.path(), request, limits_));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no right to mount a small file system";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Redirects, Origins) {
  EXPECT_EQ(OriginOf("https://Example.org/a"), "https://example.org:443");
  EXPECT_EQ(OriginOf("http://127.0.0.1:80/"), OriginOf("http://127.0.0.1"));
  EXPECT_NE(OriginOf("https://a.org"), OriginOf("https://a.org:444"));
  EXPECT_EQ(OriginOf("::"), "");
  EXPECT_EQ(ShownUrl("https://u:p@a.org/x?sig=1"), "https://a.org/x");
}

TEST_F(DownloadTest, SmallDocumentsAreBounded) {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    connection.Respond(200, {}, std::string(5000, 'x'));
  });
  EXPECT_EQ(FetchText(server.Url("/"), "", 5000, limits_).value().size(), 5000u);
  EXPECT_TRUE(absl::IsOutOfRange(FetchText(server.Url("/"), "", 4999, limits_).status()));
}

}  // namespace
}  // namespace hexad
