#include "server/serve_command.h"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "server/auth/auth.h"
#include "server/command_line/flags.h"
#include "server/config/config.h"
#include "server/grpc/grpc_server.h"
#include "server/http/http_server.h"
#include "server/metrics/metrics.h"
#include "server/openai/openai_routes.h"
#include "server/serving/fallback_model.h"
#include "server/serving/load.h"
#include "server/serving/local_serving.h"
#include "server/version.h"

namespace hexad {
namespace {

constexpr char kExamples[] =
    R"(  hexad serve                             a small instruction-tuned model, fetched once
  hexad serve --model ~/models/my.gguf    a file of your own
  hexad serve --model hf:owner/repo       a GGUF repository of a hub
  hexad serve --config hexad.yaml         everything else; see: hexad config print)";

// Sent to ourselves when the engine is dead, so that the waiting main thread hears of it like of
// any other reason to stop.
constexpr int kEngineFailedSignal = SIGUSR1;

struct ServeFlags {
  std::string config, model, http;
  bool offline = false;
};

// The signals that Daemon::Wait() takes.
sigset_t DaemonSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, kEngineFailedSignal}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

// What the file says and the command line overrides.
absl::StatusOr<Configuration> MakeConfiguration(const ServeFlags& flags) {
  auto loaded = flags.config.empty() ? absl::StatusOr<Configuration>(DefaultConfiguration())
                                     : LoadConfiguration(flags.config);
  if (!loaded.ok()) return loaded;
  Configuration configuration = *std::move(loaded);
  Config& fixed = configuration.fixed;
  if (!flags.model.empty()) {
    ModelConfig model;
    model.source = flags.model;
    const std::string stem = std::filesystem::path(flags.model).stem().string();
    model.name = std::filesystem::exists(flags.model) ? stem : flags.model;
    if (IsFallbackModel(flags.model)) model.name = kFallbackModelName;
    for (WorkerConfig& worker : fixed.workers) worker.model = model.name;
    fixed.models = {model};
  }
  if (!flags.http.empty()) {
    auto parsed =
        ParseConfiguration(absl::StrFormat("listen: {http: \"%s\"}", flags.http), "--http");
    if (!parsed.ok()) return parsed.status();
    fixed.listen.http = parsed->fixed.listen.http;
  }
  return configuration;
}

// Fetches what is named; when the default model cannot be had, its place is taken by the tiny model
// inside the binary, under the tiny model's own name.
absl::Status ResolveModels(Config& config, ModelStore& store, bool may_pull, Progress& progress,
                           Logger& log) {
  for (ModelConfig& model : config.models) {
    if (IsFallbackModel(model.source)) continue;
    auto path = store.Resolve(model.source, may_pull, progress);
    if (path.ok()) {
      model.source = *std::move(path);
      continue;
    }
    if (model.source != "default") {
      return absl::Status(
          path.status().code(),
          absl::StrFormat("model %s: %s", model.name, std::string(path.status().message())));
    }
    log.Warn("the default model cannot be had; serving the tiny built-in one instead",
             {{"cause", path.status()}, {"model", kFallbackModelName}});
    for (WorkerConfig& worker : config.workers) {
      if (worker.model == model.name) worker.model = kFallbackModelName;
    }
    model = {.name = kFallbackModelName, .source = kFallbackModelSource};
  }
  return absl::OkStatus();
}

std::string RandomSecret() {
  std::string secret(32, '\0');
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) return {};
  return secret;
}

TenantQuotas::Limits QuotasOf(const ReloadableConfig& config) {
  TenantQuotas::Limits limits;
  for (const auto& [tenant, settings] : config.tenants) limits[tenant] = settings.tokens_per_minute;
  return limits;
}

HttpServerOptions HttpOptionsOf(const Config& config, Metrics& metrics, Logger& log) {
  HttpServerOptions options;
  options.address = config.listen.http.host;
  options.port = config.listen.http.port;
  const LimitsConfig& limits = config.limits;
  options.limits.max_header_bytes = limits.max_header_bytes;
  options.limits.max_body_bytes = limits.max_body_bytes;
  options.limits.max_buffered_body_bytes = limits.max_buffered_body_bytes;
  options.limits.header_timeout = limits.header_timeout;
  options.limits.body_timeout = limits.body_timeout;
  options.limits.idle_timeout = limits.idle_timeout;
  options.limits.write_timeout = limits.write_timeout;
  options.limits.max_connections = static_cast<int>(limits.max_connections);
  options.limits.max_pending_bytes = limits.max_pending_bytes;
  options.on_access = [&metrics, &log](const HttpAccess& access) {
    metrics.OnHttpRequest(access.route.empty() ? "none" : access.route, access.status);
    if (access.status == 499) metrics.OnClientDisconnected();
    // Probes and scrapes come every few seconds: they are not news.
    const bool call = access.route.starts_with("/v1/") && access.method == "POST";
    log.Log(call ? LogLevel::kInfo : LogLevel::kDebug, "http request",
            {{"request", access.request_id},
             {"method", access.method},
             {"path", access.path},
             {"status", access.status},
             {"seconds", absl::ToDoubleSeconds(access.duration)},
             {"bytes", access.response_bytes},
             {"peer", access.peer}});
  };
  return options;
}

class Daemon final {
 public:
  Daemon(Configuration configuration, ServeFlags flags, std::ostream& out)
      : written_(configuration.fixed),
        configuration_(std::move(configuration)),
        flags_(std::move(flags)),
        out_(out),
        log_({.level = configuration_.reloadable.log_level,
              .format = configuration_.fixed.log_format}),
        metrics_({.version = kVersion}) {}
  ~Daemon() { DropGrpcLog(); }  // gRPC has threads that outlive the server and the log

  absl::Status Start(const ModelsEnvironment& environment, std::ostream& err);
  // Until a signal; the exit status.
  int Wait();

 private:
  absl::Status StartServing(const ModelsEnvironment& environment, std::ostream& err);
  absl::Status StartFrontEnds();
  void SayReady();
  void Reload();
  void Drain(const sigset_t& signals);
  void Stop(const sigset_t& signals);
  [[noreturn]] void ExitForDeadEngine();

  const Config written_;         // as file and flags say, to tell what a reload would change
  Configuration configuration_;  // with the models' sources resolved
  const ServeFlags flags_;
  bool first_model_chats_ = false;
  std::ostream& out_;
  Logger log_;
  Metrics metrics_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<LocalServing> serving_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<GrpcServer> grpc_;
};

absl::Status Daemon::Start(const ModelsEnvironment& environment, std::ostream& err) {
  const AuthConfig& auth = configuration_.fixed.auth;
  if (auth.kind == AuthConfig::Kind::kKeys) {
    auto authenticator = Authenticator::FromFile(auth.keys_file);
    if (!authenticator.ok()) return authenticator.status();
    authenticator_ = *std::move(authenticator);
    for (const std::string& warning : authenticator_->warnings()) log_.Warn(warning);
  } else {
    authenticator_ = Authenticator::Open();
  }
  absl::Status status = StartServing(environment, err);
  if (status.ok()) status = StartFrontEnds();
  if (status.ok()) SayReady();
  return status;
}

absl::Status Daemon::StartServing(const ModelsEnvironment& environment, std::ostream& err) {
  Config& config = configuration_.fixed;
  auto store = OpenModelStore(environment, /*lock_path=*/"", DownloadLimits{});
  if (!store.ok()) return store.status();
  Progress progress(err, environment.terminal);
  absl::Status resolved = ResolveModels(config, *store, !flags_.offline, progress, log_);
  if (!resolved.ok()) return resolved;
  // Before the first thread that stays, so that all inherit the mask and only Wait() takes the
  // signals; after the downloads, which a signal ends like any program.
  const sigset_t signals = DaemonSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  auto parts = LoadServing(config, log_);
  if (!parts.ok()) return parts.status();
  first_model_chats_ = parts->models.front()->chat_template != nullptr;

  LocalServingOptions options;
  options.planner = config.planner;
  options.max_live_calls = static_cast<int32_t>(config.limits.max_calls);
  options.request_timeout = config.limits.request_timeout;
  options.server_secret = RandomSecret();
  if (options.server_secret.empty()) return absl::InternalError("no random bytes from the kernel");
  options.quotas = QuotasOf(configuration_.reloadable);
  options.on_failed = [](const std::string&) { kill(getpid(), kEngineFailedSignal); };
  auto serving = LocalServing::Create(std::move(parts->models), std::move(parts->replicas),
                                      std::move(options), log_, metrics_);
  if (!serving.ok()) return serving.status();
  serving_ = *std::move(serving);
  return absl::OkStatus();
}

absl::Status Daemon::StartFrontEnds() {
  const Config& config = configuration_.fixed;
  Router router;
  OpenAiOptions openai;
  openai.authenticate = [this](std::string_view header) {
    return authenticator_->Authenticate(header);
  };
  openai.metrics = [this] { return metrics_.Render(); };
  openai.version = kVersion;
  AddOpenAiRoutes(serving_.get(), std::move(openai), &router);
  auto http = HttpServer::Start(HttpOptionsOf(config, metrics_, log_), std::move(router));
  if (!http.ok()) return http.status();
  http_ = *std::move(http);

  if (!config.listen.grpc.has_value()) return absl::OkStatus();
  RedirectGrpcLog(log_);
  GrpcServerOptions grpc_options;
  grpc_options.address = config.listen.grpc->ToString();
  grpc_options.max_message_bytes = config.limits.max_body_bytes;
  grpc_options.max_pending_bytes = config.limits.max_pending_bytes;
  auto grpc = GrpcServer::Start(grpc_options, *serving_, *authenticator_, log_, metrics_);
  if (!grpc.ok()) return grpc.status();
  grpc_ = *std::move(grpc);
  grpc_->SetServing(true);
  return absl::OkStatus();
}

void Daemon::SayReady() {
  const Config& config = configuration_.fixed;
  ListenAddress http = config.listen.http;
  http.port = http_->port();
  const std::string url = "http://" + http.ToString();
  out_ << "hexad is ready at " << url << "  (model " << config.models.front().name << ")\n";
  if (grpc_ != nullptr) {
    ListenAddress grpc = *config.listen.grpc;
    grpc.port = static_cast<uint16_t>(grpc_->port());
    out_ << "gRPC at " << grpc.ToString() << "\n";
  }
  const char* path = first_model_chats_ ? "/v1/chat/completions" : "/v1/completions";
  const char* input = first_model_chats_
                          ? R"("messages":[{"role":"user","content":"Tell me a short story."}])"
                          : R"("prompt":"Once upon a time")";
  out_ << "Try:\n  curl " << url << path << " -H 'content-type: application/json' "
       << (authenticator_->open() ? "" : "-H \"authorization: Bearer $HEXAD_API_KEY\" ")
       << "-d '{\"model\":\"" << config.models.front().name << "\"," << input
       << ",\"max_tokens\":100,\"temperature\":0.2}'\n"
       << std::flush;
}

int Daemon::Wait() {
  const sigset_t signals = DaemonSignals();
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal == SIGHUP) {
      Reload();
      continue;
    }
    if (signal == kEngineFailedSignal) ExitForDeadEngine();
    log_.Info("stopping",
              {{"drain_deadline", absl::FormatDuration(configuration_.fixed.drain_deadline)}});
    Stop(signals);
    return 0;
  }
}

void Daemon::ExitForDeadEngine() {
  log_.Error("the engine is dead; exiting so that a supervisor can start it again");
  // Its threads may be stuck in the engine: nothing can be joined.
  _exit(1);
}

void Daemon::Reload() {
  auto loaded = MakeConfiguration(flags_);
  if (!loaded.ok()) {
    log_.Error("reload refused: everything stays as it was", {{"cause", loaded.status()}});
    return;
  }
  if (const auto changes = FixedChanges(written_, loaded->fixed); !changes.empty()) {
    log_.Error("reload refused: these fields need a restart",
               {{"fields", absl::StrJoin(changes, ", ")}});
    return;
  }
  if (absl::Status keys = authenticator_->Reload(); !keys.ok()) {
    log_.Error("reload refused: everything stays as it was", {{"cause", keys}});
    return;
  }
  for (const std::string& warning : authenticator_->warnings()) log_.Warn(warning);
  configuration_.reloadable = loaded->reloadable;
  log_.SetLevel(configuration_.reloadable.log_level);
  serving_->SetQuotas(QuotasOf(configuration_.reloadable));
  log_.Info("reloaded", {{"file", flags_.config.empty() ? "(none)" : flags_.config}});
}

// Waits for the running calls. A second signal ends them at once; a dead engine, whose calls would
// never end, ends the process.
void Daemon::Drain(const sigset_t& signals) {
  std::atomic<bool> drained = false;
  std::thread listener([&] {
    while (true) {
      int signal = 0;
      if (sigwait(&signals, &signal) != 0) continue;
      if (drained) return;
      if (signal == kEngineFailedSignal) ExitForDeadEngine();
      if (signal == SIGHUP) continue;
      log_.Info("ending the running requests at once");
      serving_->Drain(absl::InfinitePast());
    }
  });
  serving_->Drain(absl::Now() + configuration_.fixed.drain_deadline);
  drained = true;
  pthread_kill(listener.native_handle(), SIGHUP);  // wakes it; means nothing in a drain
  listener.join();
}

// Unready first, then what runs may end, then the doors close.
void Daemon::Stop(const sigset_t& signals) {
  if (grpc_ != nullptr) grpc_->SetServing(false);
  Drain(signals);
  // The answers are complete; clients may need a moment to take them.
  constexpr absl::Duration kFlush = absl::Seconds(5);
  http_->Stop(kFlush);
  if (grpc_ != nullptr) grpc_->Shutdown(absl::Now() + kFlush);
  grpc_.reset();
  http_.reset();
  serving_.reset();
  log_.Info("stopped");
}

}  // namespace

int ServeCommand(std::span<const std::string> args, const ModelsEnvironment& environment,
                 std::ostream& out, std::ostream& err) {
  ServeFlags flags;
  FlagSet set("hexad serve [options]",
              "Serves models over the OpenAI HTTP API and gRPC until SIGTERM or Ctrl-C, which let "
              "running\nrequests finish (a second one ends them). SIGHUP reads keys and the "
              "reloadable settings again.",
              kExamples);
  set.Add("config", &flags.config, "FILE", "YAML configuration; every field: hexad config explain");
  set.Add("model", &flags.model, "MODEL", "serve only this: a file, a known name, or a source");
  set.Add("http", &flags.http, "HOST:PORT", "where HTTP listens, instead of the configuration's");
  set.Add("offline", &flags.offline, "fetch nothing: only models that are here already");
  const auto parsed = set.Parse(args);
  if (!parsed.ok() || !parsed->positional.empty()) {
    err << "hexad serve: "
        << (parsed.ok() ? "unexpected argument '" + parsed->positional.front() + "'"
                        : std::string(parsed.status().message()))
        << "\n";
    return 2;
  }
  if (parsed->help) {
    out << set.Help();
    return 0;
  }
  auto configuration = MakeConfiguration(flags);
  if (!configuration.ok()) {
    err << "hexad serve: " << std::string(configuration.status().message()) << "\n";
    return 1;
  }
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);

  Daemon daemon(*std::move(configuration), flags, out);
  if (absl::Status status = daemon.Start(environment, err); !status.ok()) {
    err << "hexad serve: " << std::string(status.message()) << "\n";
    return 1;
  }
  return daemon.Wait();
}

}  // namespace hexad
