#pragma once

// What one YAML file says. Every field is named, typed, defaulted and documented once, in
// config_fields.cc. Config is fixed while the process lives; ReloadableConfig may be exchanged,
// whole.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/log/log.h"

namespace hexad {

// A TCP address to listen on; port 0 takes a free one.
struct ListenAddress {
  std::string host;  // without the brackets of an IPv6 literal
  uint16_t port = 0;

  std::string ToString() const;  // "127.0.0.1:8000", "[::1]:8000"
  bool IsLoopback() const;
  bool operator==(const ListenAddress&) const = default;
};

struct ListenConfig {
  ListenAddress http{"127.0.0.1", 8000};
  std::optional<ListenAddress> grpc = ListenAddress{"127.0.0.1", 8001};  // nullopt: off
};

struct AuthConfig {
  enum class Kind : uint8_t {
    kUnset,  // nothing written: open, and only on loopback
    kNone,   // written: open, on any address
    kKeys,
  };
  Kind kind = Kind::kUnset;
  std::string keys_file;  // kKeys
};

struct ModelConfig {
  std::string name;                // what clients ask for
  std::string source = "default";  // path of a GGUF file, or the word default
  std::optional<int64_t> context;  // tokens; nullopt: what the model was trained for
};

enum class DeviceKind : uint8_t { kCpu, kReference, kEmulated };

enum class ActivationKind : uint8_t { kF32, kInt8 };

struct DeviceConfig {
  DeviceKind kind = DeviceKind::kCpu;
  std::optional<int64_t> threads;  // nullopt: one per usable core
  ActivationKind activations = ActivationKind::kInt8;
};

struct WorkerConfig {
  std::string name;
  std::string model;
  DeviceConfig device;
  std::optional<int64_t> kv_bytes;  // nullopt: an equal share of kvcache.host
};

enum class KvType : uint8_t { kF16, kF32, kQ8_0 };

struct BatchConfig {
  absl::Duration step_target = absl::Milliseconds(100);
  int64_t max_running = 64;
  int64_t max_waiting = 1024;
};

struct KvCacheConfig {
  int64_t block_tokens = 16;
  KvType type = KvType::kF16;
  int64_t host_bytes = int64_t{1} << 30;
};

// Of the HTTP front end (HttpLimits) and, where they apply, the gRPC one.
struct LimitsConfig {
  int64_t max_body_bytes = int64_t{32} << 20;
  int64_t max_buffered_body_bytes = int64_t{512} << 20;  // of all connections together
  int64_t max_header_bytes = 64 << 10;
  int64_t max_pending_bytes = 1 << 20;  // unread answer of one stream; above: a slow reader, closed
  int64_t max_connections = 10000;
  int64_t max_calls = 2048;  // live at once; more are refused as overload
  absl::Duration header_timeout = absl::Seconds(15);
  absl::Duration body_timeout = absl::Seconds(120);
  absl::Duration idle_timeout = absl::Seconds(75);
  absl::Duration write_timeout = absl::Seconds(60);
  absl::Duration request_timeout = absl::Minutes(10);
};

// Fixed while the process lives.
struct Config {
  ListenConfig listen;
  AuthConfig auth;
  std::vector<ModelConfig> models;
  std::vector<WorkerConfig> workers;
  std::string planner = "wf_fcfs";  // policy.planner.kind
  BatchConfig batch;
  KvCacheConfig kvcache;
  LimitsConfig limits;
  LogFormat log_format = LogFormat::kText;
  absl::Duration drain_deadline = absl::Seconds(30);
  // workers.role and registry.kind have one value each, both and embedded, and need no member.
};

struct TenantConfig {
  std::optional<int64_t> tokens_per_minute;  // uncached tokens; nullopt: unlimited
};

// May change while the process runs.
struct ReloadableConfig {
  LogLevel log_level = LogLevel::kInfo;
  std::map<std::string, TenantConfig> tenants;
};

struct Configuration {
  Config fixed;
  ReloadableConfig reloadable;
};

// What holds when nothing is written: one small model on one CPU worker, on loopback.
Configuration DefaultConfiguration();

// Every problem of the text, a line each: "name:line:column: message". Never throws.
// `name` stands for the text in messages.
absl::StatusOr<Configuration> ParseConfiguration(std::string_view text, std::string_view name);
absl::StatusOr<Configuration> LoadConfiguration(const std::string& path);

// All fields with their values as YAML, which parses to the same configuration.
std::string PrintConfiguration(const Configuration& configuration);

// Names of fixed fields ("listen.http") that differ: a reload that needs a restart is refused
// whole.
std::vector<std::string> FixedChanges(const Config& before, const Config& after);

// Type, default, range, meaning, and whether a reload may change it. NotFound with a suggestion.
absl::StatusOr<std::string> ExplainField(std::string_view path);
// One line a field, all of them.
std::string ExplainAll();
// JSON Schema 2020-12 of the file.
std::string ConfigSchema();

}  // namespace hexad
