#include "server/grpc/grpc_server.h"

#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hexad/v1/inference.grpc.pb.h"
#include "tests/server/grpc/fake_serving.h"

namespace hexad {
namespace {

using testing::HasSubstr;

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  for (const grpc::Slice& each : slices) {
    bytes.append(reinterpret_cast<const char*>(each.begin()), each.size());
  }
  return bytes;
}

// Of grpc.health.v1: one field, so that the test needs no copy of the proto. 1 is SERVING.
int HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service);

class GrpcServerTest : public testing::Test {
 protected:
  void Start(GrpcServerOptions options = {}, std::unique_ptr<Authenticator> auth = nullptr) {
    options.address = "127.0.0.1:0";
    auth_ = auth == nullptr ? Authenticator::Open() : std::move(auth);
    auto server = GrpcServer::Start(options, serving_, *auth_, log_, metrics_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = Connect();
  }

  std::unique_ptr<v1::Inference::Stub> Connect() {
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(server_->port()),
                                         grpc::InsecureChannelCredentials(), args);
    return v1::Inference::NewStub(channel_);
  }

  static v1::GenerateRequest Request(const std::string& model) {
    v1::GenerateRequest request;
    request.set_model(model);
    request.set_text("hello");
    return request;
  }

  struct Answer {
    grpc::Status status;
    std::string text;
    int accepted = 0;
    int finishes = 0;
    int tokens = 0;
    int logprobs = 0;
    v1::Usage usage;
    std::string request_id;
    std::string param;  // of the trailing metadata
  };

  Answer Generate(v1::Inference::Stub& stub, const v1::GenerateRequest& request,
                  grpc::ClientContext& context) {
    Answer answer;
    const auto reader = stub.Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
      if (response.has_accepted()) {
        ++answer.accepted;
        answer.request_id = response.accepted().request_id();
      }
      answer.text += response.delta().text();
      answer.tokens += response.delta().token_ids_size();
      answer.logprobs += response.delta().logprobs_size();
      if (response.has_finish()) ++answer.finishes;
      if (response.has_usage()) answer.usage = response.usage();
    }
    answer.status = reader->Finish();
    const auto& trailers = context.GetServerTrailingMetadata();
    if (const auto found = trailers.find("hexad-param"); found != trailers.end()) {
      answer.param = std::string(found->second.data(), found->second.size());
    }
    return answer;
  }
  Answer Generate(const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    return Generate(*stub_, request, context);
  }

  FakeServing serving_;
  Logger log_{{.level = LogLevel::kError}};
  Metrics metrics_{{"test", ""}};
  std::unique_ptr<Authenticator> auth_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

TEST_F(GrpcServerTest, StreamsAnswers) {
  Start();
  for (const auto& [model, deltas] : {std::pair("now", 3), std::pair("thread", 40)}) {
    v1::GenerateRequest request = Request(model);
    request.set_request_id("r-1");
    const Answer answer = Generate(request);
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.text.size(), 4u * static_cast<size_t>(deltas));
    EXPECT_EQ(answer.tokens, deltas);
    EXPECT_EQ(answer.logprobs, deltas);
    EXPECT_EQ(answer.accepted, 1);
    EXPECT_EQ(answer.request_id, "r-1");
    EXPECT_EQ(answer.finishes, 1);
    EXPECT_EQ(answer.usage.prompt_tokens(), 7);
    EXPECT_EQ(answer.usage.cached_tokens(), 4);
    EXPECT_EQ(answer.usage.completion_tokens(), deltas);
  }
  EXPECT_EQ(serving_.calls().at(0).tenant, "default");
  server_->Shutdown(absl::Now() + absl::Minutes(1));  // every stream has reported
  EXPECT_THAT(metrics_.Render(),
              HasSubstr("route=\"/hexad.v1.Inference/Generate\",status=\"200\"} 2"));
}

TEST_F(GrpcServerTest, ListsModels) {
  Start();
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  ASSERT_TRUE(stub_->ListModels(&context, {}, &response).ok());
  ASSERT_EQ(response.models_size(), 2);
  EXPECT_EQ(response.models(0).name(), "now");
  EXPECT_EQ(response.models(0).max_context_tokens(), 2048);
}

TEST_F(GrpcServerTest, ErrorsHaveCodesAndFields) {
  Start();
  v1::GenerateRequest request = Request("now");
  request.mutable_sampling()->set_temperature(9);
  Answer answer = Generate(request);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("sampling.temperature"));
  EXPECT_EQ(answer.param, "sampling.temperature");
  EXPECT_TRUE(serving_.calls().empty());

  answer = Generate(Request("missing"));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(answer.status.error_message(), "no model missing");
  EXPECT_EQ(Generate(Request("full")).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  answer = Generate(Request("broken"));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(answer.status.error_message().find("secret"), std::string::npos);
  answer = Generate(Request("late"));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(answer.text, "partial");
}

TEST_F(GrpcServerTest, TooLargeMessagesAreRefused) {
  GrpcServerOptions options;
  options.max_message_bytes = 4096;
  Start(options);
  v1::GenerateRequest request = Request("now");
  request.set_text(std::string(8192, 'x'));
  EXPECT_EQ(Generate(request).status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Generate(Request("now")).status.ok());
}

TEST_F(GrpcServerTest, CancelReachesServing) {
  Start();
  grpc::ClientContext context;
  const auto reader = stub_->Generate(&context, Request("held"));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  context.TryCancel();
  serving_.WaitForCancels(1);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(serving_.live(), 0u);
  server_->Shutdown(absl::Now() + absl::Minutes(1));
  EXPECT_THAT(metrics_.Render(), HasSubstr("hexad_disconnected_clients_total 1\n"));
}

TEST_F(GrpcServerTest, DeadlineReachesServing) {
  Start();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  const Answer answer = Generate(*stub_, Request("held"), context);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  if (!serving_.calls().empty()) serving_.WaitForCancels(1);
}

TEST_F(GrpcServerTest, VanishedConnectionsReachServing) {
  Start();
  auto context = std::make_unique<grpc::ClientContext>();
  auto reader = stub_->Generate(context.get(), Request("held"));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  reader.reset();  // gone without a word to the server
  context.reset();
  stub_.reset();
  channel_.reset();
  serving_.WaitForCancels(1);
}

TEST_F(GrpcServerTest, SlowReadersAreBoundedAndCancelled) {
  GrpcServerOptions options;
  options.max_pending_bytes = 64 << 10;
  Start(options);
  grpc::ClientContext context;
  const auto reader = stub_->Generate(&context, Request("flood"));
  serving_.WaitForCancels(1);  // nothing is read meanwhile
  v1::GenerateResponse response;
  while (reader->Read(&response)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_TRUE(Generate(Request("now")).status.ok());
}

TEST_F(GrpcServerTest, KeysGuardBothMethods) {
  const auto made = MakeKey("acme", "");
  const std::string path = testing::TempDir() + "grpc-keys.yaml";
  std::ofstream(path) << made->line;
  ::chmod(path.c_str(), 0600);
  auto auth = Authenticator::FromFile(path);
  ASSERT_TRUE(auth.ok()) << auth.status();
  Start({}, *std::move(auth));
  const Answer missing = Generate(Request("now"));
  EXPECT_EQ(missing.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  grpc::ClientContext wrong;
  wrong.AddMetadata("authorization", "Bearer hxd_wrong");
  EXPECT_EQ(Generate(*stub_, Request("now"), wrong).status.error_message(),
            missing.status.error_message());
  grpc::ClientContext list;
  v1::ListModelsResponse models;
  EXPECT_EQ(stub_->ListModels(&list, {}, &models).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(models.models_size(), 0);
  EXPECT_TRUE(serving_.calls().empty());
  grpc::ClientContext right;
  right.AddMetadata("authorization", "Bearer " + made->key);
  right.AddMetadata("x-hexad-workflow", "wf");
  EXPECT_TRUE(Generate(*stub_, Request("now"), right).status.ok());
  EXPECT_EQ(serving_.calls().at(0).tenant, "acme");
  EXPECT_EQ(serving_.calls().at(0).workflow.workflow, "wf");
}

TEST_F(GrpcServerTest, FiftyAtOnce) {
  Start();
  constexpr int kClients = 50;
  std::vector<Answer> answers(kClients);
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([this, i, &answers] {
      grpc::ClientContext context;
      if (i % 5 != 4) {
        answers[i] = Generate(*stub_, Request("thread"), context);
        return;
      }
      const auto reader = stub_->Generate(&context, Request("held"));
      v1::GenerateResponse response;
      reader->Read(&response);
      context.TryCancel();
      answers[i].status = reader->Finish();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kClients; ++i) {
    if (i % 5 == 4) {
      EXPECT_EQ(answers[i].status.error_code(), grpc::StatusCode::CANCELLED);
    } else {
      EXPECT_TRUE(answers[i].status.ok()) << answers[i].status.error_message();
      EXPECT_EQ(answers[i].text.size(), 160u);
    }
  }
  serving_.WaitForCancels(kClients / 5);
  EXPECT_EQ(serving_.live(), 0u);
}

TEST_F(GrpcServerTest, ShutdownCancelsWhatOutlivesTheDeadline) {
  Start();
  grpc::ClientContext context;
  const auto reader = stub_->Generate(&context, Request("held"));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server_->Shutdown(absl::Now() + absl::Milliseconds(50));
  EXPECT_FALSE(reader->Finish().ok());
  serving_.WaitForCancels(1);
  server_->Shutdown(absl::Now());  // once more does nothing
}

TEST_F(GrpcServerTest, HealthFollowsSetServing) {
  Start();
  EXPECT_EQ(HealthOf(channel_, ""), 2);
  server_->SetServing(true);
  EXPECT_EQ(HealthOf(channel_, ""), 1);
  EXPECT_EQ(HealthOf(channel_, "hexad.v1.Inference"), 1);
  EXPECT_EQ(HealthOf(channel_, "no.such.Service"), -static_cast<int>(grpc::StatusCode::NOT_FOUND));
  server_->SetServing(false);
  EXPECT_EQ(HealthOf(channel_, ""), 2);
}

// list_services of grpc.reflection.v1alpha, as bytes.
TEST_F(GrpcServerTest, ReflectionNamesTheService) {
  Start();
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  ASSERT_TRUE(next());
  grpc::Slice slice(std::string("\x3a\x00", 2));
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  ASSERT_TRUE(next());
  grpc::ByteBuffer response;
  call->Read(&response, nullptr);
  ASSERT_TRUE(next());
  EXPECT_THAT(Bytes(response), HasSubstr("hexad.v1.Inference"));
  call->WritesDone(nullptr);
  ASSERT_TRUE(next());
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(next());
  EXPECT_TRUE(status.ok());
}

TEST_F(GrpcServerTest, TakenAddressesAreRefused) {
  Start();
  GrpcServerOptions options;
  options.address = "127.0.0.1:" + std::to_string(server_->port());
  const auto second = GrpcServer::Start(options, serving_, *auth_, log_, metrics_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("listen.grpc"));
}

TEST(GrpcLogTest, GoesToTheLogger) {
  std::string lines;
  std::mutex mutex;
  Logger log({.level = LogLevel::kDebug, .sink = [&](std::string_view line) {
                const std::lock_guard<std::mutex> lock(mutex);
                lines += line;
              }});
  RedirectGrpcLog(log);
  gpr_log("here.cc", 7, GPR_LOG_SEVERITY_ERROR, "something %d", 42);
  DropGrpcLog();
  gpr_log("here.cc", 8, GPR_LOG_SEVERITY_ERROR, "unheard");
  const std::lock_guard<std::mutex> lock(mutex);
  EXPECT_THAT(lines, HasSubstr("warn grpc text=\"something 42\" at=here.cc line=7"));
  EXPECT_EQ(lines.find("unheard"), std::string::npos);
}

// HealthCheckRequest and -Response have one field each, number 1: a text, an enum.
int HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  const std::string body =
      service.empty() ? "" : std::string("\x0a") + static_cast<char>(service.size()) + service;
  grpc::Slice slice(body);
  grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  std::promise<grpc::Status> done;
  grpc::GenericStub stub(channel);
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  const grpc::Status status = done.get_future().get();
  if (!status.ok()) return -static_cast<int>(status.error_code());
  const std::string bytes = Bytes(response);
  return bytes.size() == 2 && bytes[0] == 0x08 ? bytes[1] : 0;
}

}  // namespace
}  // namespace hexad
