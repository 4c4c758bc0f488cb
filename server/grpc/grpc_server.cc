#include "server/grpc/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "hexad/v1/inference.grpc.pb.h"
#include "server/grpc/generate_request.h"
#include "server/grpc/generate_stream.h"
#include "server/status.h"

namespace hexad {
namespace {

constexpr char kServiceName[] = "hexad.v1.Inference";
// Of one connection; a client that opens more waits.
constexpr int kMaxStreams = 1024;
constexpr int kMaxMetadataBytes = 32 << 10;

std::string Metadata(const grpc::ServerContextBase& context, const char* key) {
  const auto& all = context.client_metadata();
  const auto found = all.find(key);
  return found == all.end() ? std::string()
                            : std::string(found->second.data(), found->second.size());
}

class InferenceService final : public v1::Inference::CallbackService {
 public:
  InferenceService(StreamContext shared, const Authenticator& authenticator)
      : shared_(shared), authenticator_(authenticator), id_salt_(std::random_device()()) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override {
    const std::shared_ptr<GenerateStream> stream = GenerateStream::Create(shared_, context);
    absl::StatusOr<GenerateCall> call = Parse(*context, *request);
    if (call.ok()) {
      stream->Run(*std::move(call));
    } else {
      stream->Refuse(call.status());
    }
    // Alive: gRPC calls OnDone, which lets go of it, only after this has returned.
    return stream.get();
  }

  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override {
    const absl::Status status =
        authenticator_.Authenticate(Metadata(*context, "authorization")).status();
    if (status.ok()) {
      for (const ModelInfo& info : shared_.serving.ListModels()) {
        v1::Model& model = *response->add_models();
        model.set_name(info.name);
        model.set_created_unix(info.created_unix);
        model.set_max_context_tokens(info.max_context_tokens);
      }
    }
    shared_.metrics.OnHttpRequest("/hexad.v1.Inference/ListModels",
                                  status.ok() ? 200 : ToHttpError(status).status);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(status, context));
    return reactor;
  }

 private:
  absl::StatusOr<GenerateCall> Parse(const grpc::ServerContextBase& context,
                                     const v1::GenerateRequest& request) {
    absl::StatusOr<std::string> tenant =
        authenticator_.Authenticate(Metadata(context, "authorization"));
    if (!tenant.ok()) return tenant.status();
    CallMetadata metadata;
    metadata.request_id = Metadata(context, "x-request-id");
    metadata.workflow = Metadata(context, "x-hexad-workflow");
    metadata.call = Metadata(context, "x-hexad-call");
    metadata.agent = Metadata(context, "x-hexad-agent");
    metadata.parents = Metadata(context, "x-hexad-parents");
    absl::StatusOr<GenerateCall> call = ParseGenerateRequest(request, metadata);
    if (!call.ok()) return call.status();
    call->tenant = *std::move(tenant);
    if (call->request_id.empty()) {
      call->request_id = absl::StrFormat("grpc-%08x-%d", id_salt_, next_id_.fetch_add(1));
    }
    return call;
  }

  const StreamContext shared_;
  const Authenticator& authenticator_;
  const uint32_t id_salt_;  // tells this process' ids from an earlier one's in the logs
  std::atomic<uint64_t> next_id_ = 1;
};

class GrpcServerImpl final : public GrpcServer {
 public:
  GrpcServerImpl(StreamContext shared, const Authenticator& authenticator)
      : service_(shared, authenticator) {}
  ~GrpcServerImpl() override { Shutdown(absl::InfinitePast()); }

  absl::Status Listen(const GrpcServerOptions& options) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(
        std::clamp<int64_t>(options.max_message_bytes, 1024, std::numeric_limits<int>::max())));
    // Two servers on one port would share its connections without a word.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
    // Health and reflection are served by a few polling threads of their own.
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ <= 0) {
      return absl::UnavailableError(
          absl::StrFormat("cannot listen for gRPC on %s: the address is taken or not this "
                          "machine's; see listen.grpc",
                          options.address));
    }
    SetServing(false);
    return absl::OkStatus();
  }

  int port() const override { return port_; }

  void SetServing(bool serving) override {
    grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
    if (health == nullptr) return;
    health->SetServingStatus("", serving);
    health->SetServingStatus(kServiceName, serving);
  }

  void Shutdown(absl::Time deadline) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (server_ == nullptr || down_) return;
    down_ = true;
    SetServing(false);
    server_->Shutdown(absl::ToChronoTime(deadline));
    server_->Wait();
  }

 private:
  InferenceService service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::mutex mutex_;
  bool down_ = false;
};

// gRPC takes a plain function, so what it writes to cannot be an argument.
std::mutex grpc_log_mutex;
Logger* grpc_log_target = nullptr;

void WriteGrpcLog(gpr_log_func_args* args) {
  const std::lock_guard<std::mutex> lock(grpc_log_mutex);
  Logger* log = grpc_log_target;
  if (log == nullptr) return;
  // What gRPC calls info is debugging to everybody else.
  const LogLevel level =
      args->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarn : LogLevel::kDebug;
  log->Log(level, "grpc", {{"text", args->message}, {"at", args->file}, {"line", args->line}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              Serving& serving,
                                                              const Authenticator& authenticator,
                                                              Logger& log, Metrics& metrics) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  const StreamContext shared{
      serving, log, metrics,
      static_cast<size_t>(std::max<int64_t>(options.max_pending_bytes, 4096))};
  auto server = std::make_unique<GrpcServerImpl>(shared, authenticator);
  absl::Status status = server->Listen(options);
  if (!status.ok()) return status;
  log.Info("grpc listening", {{"address", options.address}, {"port", server->port()}});
  return server;
}

void RedirectGrpcLog(Logger& log) {
  const std::lock_guard<std::mutex> lock(grpc_log_mutex);
  grpc_log_target = &log;
  gpr_set_log_function(WriteGrpcLog);
}

void DropGrpcLog() {
  const std::lock_guard<std::mutex> lock(grpc_log_mutex);
  grpc_log_target = nullptr;
}

}  // namespace hexad
