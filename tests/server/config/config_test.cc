#include "server/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "server/config/config_fields.h"

namespace hexad {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The problems of a text, one a line; "" when it is read.
std::string Problems(const std::string& text) {
  const auto parsed = ParseConfiguration(text, "t.yaml");
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

Configuration Parse(const std::string& text) {
  auto parsed = ParseConfiguration(text, "t.yaml");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *std::move(parsed) : DefaultConfiguration();
}

TEST(ConfigTest, EmptyIsTheDefault) {
  for (const char* text : {"", "\n", "# nothing\n", "---\n", "{}"}) {
    EXPECT_EQ(PrintConfiguration(Parse(text)), PrintConfiguration(DefaultConfiguration())) << text;
  }
  const Configuration config = DefaultConfiguration();
  EXPECT_EQ(config.fixed.listen.http.ToString(), "127.0.0.1:8000");
  ASSERT_EQ(config.fixed.workers.size(), 1u);
  EXPECT_EQ(config.fixed.workers[0].model, config.fixed.models.at(0).name);
}

TEST(ConfigTest, EveryFieldIsRead) {
  const Configuration config = Parse(R"(
listen: {http: "[::1]:9000", grpc: off}
auth: {keys_file: keys.yaml}
models:
  - {name: a, source: /m/a.gguf, context: 4096}
  - {name: org/b}
workers:
  - {name: w0, model: a, role: both, device: {kind: reference, threads: 3}, kv: 2GiB}
  - {name: w1, model: a, device: {kind: emulated}}
  - {name: w2, model: org/b, device: {activations: f32}}
policy:
  planner: {kind: call_fcfs}
  batch: {step_target: 50ms, max_running: 7, max_waiting: 0}
  tenants: {acme: {tokens_per_minute: 1000}, b: {}}
kvcache: {block_tokens: 32, type: f32, host: 3GiB}
limits:
  max_body: 1MiB
  max_buffered_body: 2MiB
  max_header: 8KiB
  max_pending: 64KiB
  max_connections: 5
  max_calls: 6
  header_timeout: 1s
  body_timeout: 2s
  idle_timeout: 3s
  write_timeout: 4s
  request_timeout: 5s
log: {level: debug, format: json}
shutdown: {drain_deadline: 7s}
registry: {kind: embedded}
)");
  const Config& c = config.fixed;
  EXPECT_EQ(c.listen.http, (ListenAddress{"::1", 9000}));
  EXPECT_EQ(c.listen.grpc, std::nullopt);
  EXPECT_EQ(c.auth.kind, AuthConfig::Kind::kKeys);
  EXPECT_EQ(c.auth.keys_file, "keys.yaml");
  ASSERT_EQ(c.models.size(), 2u);
  EXPECT_EQ(c.models[0].source, "/m/a.gguf");
  EXPECT_EQ(c.models[0].context, 4096);
  EXPECT_EQ(c.models[1].name, "org/b");
  EXPECT_EQ(c.models[1].source, "default");
  EXPECT_EQ(c.models[1].context, std::nullopt);
  ASSERT_EQ(c.workers.size(), 3u);
  EXPECT_EQ(c.workers[0].device.kind, DeviceKind::kReference);
  EXPECT_EQ(c.workers[0].device.threads, 3);
  EXPECT_EQ(c.workers[0].kv_bytes, int64_t{2} << 30);
  EXPECT_EQ(c.workers[1].device.kind, DeviceKind::kEmulated);
  EXPECT_EQ(c.workers[2].device.threads, std::nullopt);
  EXPECT_EQ(c.workers[1].device.activations, ActivationKind::kInt8);
  EXPECT_EQ(c.workers[2].device.activations, ActivationKind::kF32);
  EXPECT_EQ(c.workers[2].kv_bytes, std::nullopt);
  EXPECT_EQ(c.planner, "call_fcfs");
  EXPECT_EQ(c.batch.step_target, absl::Milliseconds(50));
  EXPECT_EQ(c.batch.max_running, 7);
  EXPECT_EQ(c.batch.max_waiting, 0);
  EXPECT_EQ(c.kvcache.block_tokens, 32);
  EXPECT_EQ(c.kvcache.type, KvType::kF32);
  EXPECT_EQ(c.kvcache.host_bytes, int64_t{3} << 30);
  EXPECT_EQ(c.limits.max_body_bytes, 1 << 20);
  EXPECT_EQ(c.limits.max_buffered_body_bytes, 2 << 20);
  EXPECT_EQ(c.limits.max_header_bytes, 8 << 10);
  EXPECT_EQ(c.limits.max_pending_bytes, 64 << 10);
  EXPECT_EQ(c.limits.max_connections, 5);
  EXPECT_EQ(c.limits.max_calls, 6);
  EXPECT_EQ(c.limits.header_timeout, absl::Seconds(1));
  EXPECT_EQ(c.limits.body_timeout, absl::Seconds(2));
  EXPECT_EQ(c.limits.idle_timeout, absl::Seconds(3));
  EXPECT_EQ(c.limits.write_timeout, absl::Seconds(4));
  EXPECT_EQ(c.limits.request_timeout, absl::Seconds(5));
  EXPECT_EQ(c.log_format, LogFormat::kJson);
  EXPECT_EQ(c.drain_deadline, absl::Seconds(7));
  EXPECT_EQ(config.reloadable.log_level, LogLevel::kDebug);
  ASSERT_EQ(config.reloadable.tenants.size(), 2u);
  EXPECT_EQ(config.reloadable.tenants.at("acme").tokens_per_minute, 1000);
  EXPECT_EQ(config.reloadable.tenants.at("b").tokens_per_minute, std::nullopt);

  const std::string printed = PrintConfiguration(config);
  EXPECT_EQ(PrintConfiguration(Parse(printed)), printed);
  EXPECT_TRUE(FixedChanges(c, Parse(printed).fixed).empty());
}

TEST(ConfigTest, WorkersFollowModels) {
  const Configuration config = Parse("models: [{name: a}, {name: b}]");
  ASSERT_EQ(config.fixed.workers.size(), 2u);
  EXPECT_EQ(config.fixed.workers[1].name, "w1");
  EXPECT_EQ(config.fixed.workers[1].model, "b");
}

TEST(ConfigTest, ProblemsHavePlaceAndRemedy) {
  const struct {
    const char* text;
    const char* problem;
  } kCases[] = {
      {"lisen: {}", "t.yaml:1:1: unknown field \"lisen\" in this file; did you mean listen?"},
      {"policy:\n  batch:\n    max_runing: 3",
       "t.yaml:3:5: unknown field \"max_runing\" in policy.batch; did you mean "
       "policy.batch.max_running?"},
      {"max_running: 3",
       "t.yaml:1:1: unknown field \"max_running\" in this file; it belongs at "
       "policy.batch.max_running"},
      {"listen: {http: 127.0.0.1:80, http: 127.0.0.1:81}",
       "t.yaml:1:30: \"http\" is written twice in listen"},
      {"log: {level: info}\nlog: {level: info}",
       "t.yaml:2:1: \"log\" is written twice in this file"},
      {"policy: {batch: {step_target: 100}}",
       "t.yaml:1:31: policy.batch.step_target must be a time with its unit, such as 100ms, 30s or "
       "1h30m, not \"100\""},
      {"policy: {batch: {step_target: 2h}}",
       "t.yaml:1:31: policy.batch.step_target must be from 1ms to 1m, not \"2h\""},
      {"policy: {batch: {max_running: many}}",
       "t.yaml:1:31: policy.batch.max_running must be an integer from 1 to 65536, not \"many\""},
      {"policy: {planner: {kind: wffcfs}}", "t.yaml:1:26: policy.planner.kind must be "},
      {"policy: {planner: {horizon: {include_tools: true}}}",
       "t.yaml:1:29: policy.planner.horizon is not supported in this version"},
      {"kvcache: {ssd: {path: /x}}", "t.yaml:1:16: kvcache.ssd is not supported in this version"},
      {"kvcache: {block_tokens: 24}",
       "t.yaml:1:25: kvcache.block_tokens must be a multiple of 16, from 16 to 256, not \"24\""},
      {"kvcache: {host: 4Gib}",
       "t.yaml:1:17: kvcache.host must be a number of bytes such as 64KiB, 16MiB or 4GiB, not "
       "\"4Gib\""},
      {"registry: {kind: etcd}", "t.yaml:1:18: registry.kind must be embedded, not \"etcd\""},
      {"listen: {http: here}",
       "t.yaml:1:16: listen.http must be an IP address and a port, such as 127.0.0.1:8000 or "
       "[::1]:8000, not \"here\""},
      {"listen:", "t.yaml:1:1: listen has no value"},
      {"listen: []", "t.yaml:1:9: listen must be a mapping of names"},
      {"models: {}", "t.yaml:1:9: models must be a list"},
      {"models: []", "t.yaml:1:9: models needs at least one"},
      {"models: [{source: x}]", "t.yaml:1:10: models[0] needs name"},
      {"models: [{name: \"a b\"}]",
       "t.yaml:1:17: models[0].name must be 1 to 128 letters, digits and ._/-, not \"a b\""},
      {"models: [{name: a}, {name: a}]", "t.yaml:1:28: model a is there twice"},
      {"models: [{name: a}]\nworkers: [{name: w, model: b}]",
       "t.yaml:2:28: worker w serves model b, which is not in models"},
      {"models: [{name: a}]\nworkers: [{name: w, model: a, role: prefill}]",
       "t.yaml:2:37: workers[0].role must be both: a worker of one phase is not supported in this "
       "version, not \"prefill\""},
      {"models: [{name: a}, {name: b}]\nworkers: [{name: w, model: a}]",
       "t.yaml:2:10: model b has no worker"},
      {"listen: {admin: /x}", "t.yaml:1:17: listen.admin is not supported in this version"},
      {"auth: nobody", "t.yaml:1:7: auth must be none, or {keys_file: PATH}, not \"nobody\""},
      {"auth: {}", "t.yaml:1:7: auth needs keys_file"},
      {"listen: {http: 0.0.0.0:8000}",
       "t.yaml:1:16: listen.http 0.0.0.0:8000 is beyond loopback and no keys are set: set "
       "auth.keys_file, or write auth: none to let everybody in"},
      {"listen: {grpc: \"[::]:8001\"}", "t.yaml:1:16: listen.grpc [::]:8001 is beyond loopback"},
      {"listen: {http: 127.0.0.1:8001}", "t.yaml:1:9: listen.grpc and listen.http must differ"},
      {"a: b\n---\nc: d", "there must be one YAML document"},
      {"listen: {http: ", "t.yaml:1:"},
      {"{a: 1}: 2", "names in this file must be plain text"},
      {"just words", "t.yaml:1:1: this file must be a mapping of names"},
      {"policy: {tenants: {\"a b\": {}}}", "t.yaml:1:20: \"a b\" must be 1 to 128 letters"},
  };
  for (const auto& each : kCases) {
    const std::string problems = Problems(each.text);
    EXPECT_THAT(problems, HasSubstr(each.problem)) << each.text;
    EXPECT_EQ(problems.rfind("t.yaml:", 0), 0u) << problems;
  }
}

TEST(ConfigTest, AllProblemsAreToldUpToALimit) {
  const std::string problems = Problems("lisen: 1\nlog: {level: loud}\nshutdown: 3\n");
  EXPECT_THAT(problems, HasSubstr("t.yaml:1:1"));
  EXPECT_THAT(problems, HasSubstr("t.yaml:2:14"));
  EXPECT_THAT(problems, HasSubstr("t.yaml:3:11"));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "x" + std::to_string(i) + ": 1\n";
  const std::string capped = Problems(many);
  EXPECT_EQ(std::count(capped.begin(), capped.end(), '\n'), 19);
}

TEST(ConfigTest, OpenBeyondLoopbackMustBeWritten) {
  EXPECT_EQ(Problems("listen: {http: 0.0.0.0:8000}\nauth: none"), "");
  EXPECT_EQ(Problems("listen: {http: 0.0.0.0:8000}\nauth: {keys_file: k}"), "");
  EXPECT_EQ(Problems("listen: {http: 127.0.0.2:8000, grpc: off}"), "");
  const std::string printed = PrintConfiguration(Parse("auth: none"));
  EXPECT_THAT(printed, HasSubstr("\nauth: none\n"));
  EXPECT_EQ(Parse(printed).fixed.auth.kind, AuthConfig::Kind::kNone);
}

// Malice and accidents: an answer, never a crash.
TEST(ConfigTest, HostileTextIsRefused) {
  EXPECT_THAT(Problems(std::string(100'000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(Problems(std::string(2 << 20, ' ')), HasSubstr("longer than 1 MiB"));
  std::string dashes;
  for (int i = 0; i < 20'000; ++i) dashes += "- ";
  EXPECT_NE(Problems(dashes), "");
  std::string stairs;
  for (int i = 0; i < 900; ++i) stairs += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_NE(Problems(stairs), "");
  EXPECT_NE(Problems(std::string("listen: {http: \"\0\"}", 19)), "");
  EXPECT_NE(Problems("\xff\xfe\xfd"), "");
  EXPECT_NE(Problems(", a\nb: 1\n"), "");  // documents without end, to yaml-cpp 0.7
  EXPECT_NE(Problems("] }"), "");
  EXPECT_NE(Problems("a: &a [*a]"), "");
  EXPECT_NE(Problems("a: &x {b: 1}\nc: {<<: *x}"), "");
  EXPECT_NE(Problems("models: &m [{name: a}, *m]"), "");
  const std::string lines = Problems("log: {level: \"a\\nb\\u001b\"}");
  EXPECT_EQ(lines.find('\n'), std::string::npos);
}

TEST(ConfigTest, FixedChangesAreNamed) {
  const Configuration before = Parse("policy: {tenants: {a: {}}}");
  EXPECT_TRUE(FixedChanges(before.fixed, Parse("log: {level: debug}").fixed).empty());
  EXPECT_THAT(FixedChanges(before.fixed, Parse("listen: {http: 127.0.0.1:1}\nauth: none\nmodels: "
                                               "[{name: z}]\nlog: {format: json}")
                                             .fixed),
              ElementsAre("auth", "listen.http", "log.format", "models", "workers"));
  EXPECT_THAT(FixedChanges(Parse("auth: none").fixed, before.fixed), ElementsAre("auth"));
}

TEST(ConfigTest, ExplainNamesTypeDefaultAndReload) {
  const auto explain = [](const char* path) {
    const auto text = ExplainField(path);
    return text.ok() ? *text : std::string(text.status().message());
  };
  EXPECT_EQ(explain("policy.batch.step_target"),
            "policy.batch.step_target: duration, 1ms to 1m\n"
            "  Time one step should take; prompts are cut to fit.\n"
            "  Default: 100ms\n"
            "  Fixed until a restart.\n");
  EXPECT_THAT(explain("log.level"), HasSubstr("A reload may change it."));
  EXPECT_THAT(explain("models.name"), HasSubstr("models[].name: name\n"));
  EXPECT_EQ(explain("models[].name"), explain("models.name"));
  EXPECT_EQ(explain("models[3].name"), explain("models.name"));
  EXPECT_EQ(explain("workers.device.kind"), explain("workers[].device.kind"));
  EXPECT_THAT(explain("policy.tenants.acme.tokens_per_minute"),
              HasSubstr("policy.tenants.NAME.tokens_per_minute"));
  EXPECT_THAT(explain("kvcache.ssd"), HasSubstr("not supported in this version"));
  EXPECT_THAT(explain("policy.bach"), HasSubstr("did you mean policy.batch?"));
  EXPECT_THAT(explain("nothing.here"), HasSubstr("no field nothing"));
  EXPECT_THAT(explain("policy"), HasSubstr("policy.batch.max_running (integer"));
  EXPECT_EQ(explain(""), ExplainAll());
}

// The table itself: everything has a name and words, and every default is in its own range.
void CheckField(const Field& field, const std::string& path, int* count) {
  if (field.kind == Field::Kind::kUnsupported) return;
  if (!path.empty()) {
    ++*count;
    EXPECT_FALSE(field.doc.empty()) << path;
  }
  if (field.kind == Field::Kind::kScalar) {
    EXPECT_FALSE(field.type.empty()) << path;
    if (!field.required) {
      EXPECT_EQ(field.parse(field.print()), "") << path;
    }
    return;
  }
  std::set<std::string> names;
  for (const Field& child : field.children) {
    EXPECT_TRUE(names.insert(child.name).second) << path << "." << child.name;
    CheckField(child, path + "." + child.name, count);
  }
  if (field.example != nullptr) {
    const Field example = field.example();
    for (const Field& child : example.children) {
      CheckField(child, path + "[]." + child.name, count);
    }
  }
}

TEST(ConfigTest, EveryFieldIsDescribed) {
  Configuration configuration = DefaultConfiguration();
  int count = 0;
  CheckField(DescribeConfiguration(configuration), "", &count);
  EXPECT_GT(count, 40);
  const std::string all = ExplainAll();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), count);
}

TEST(ConfigTest, SchemaIsJson) {
  const auto schema = nlohmann::json::parse(ConfigSchema());
  EXPECT_EQ(schema["additionalProperties"], false);
  const auto& batch = schema["properties"]["policy"]["properties"]["batch"];
  EXPECT_EQ(batch["properties"]["max_running"]["maximum"], 65536);
  EXPECT_EQ(schema["properties"]["models"]["items"]["required"], nlohmann::json({"name"}));
  EXPECT_FALSE(schema["properties"]["kvcache"]["properties"].contains("ssd"));
}

TEST(ConfigTest, CommittedFilesLoad) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(HEXAD_SOURCE_DIR) + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const auto loaded = LoadConfiguration(entry.path());
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(PrintConfiguration(Parse(PrintConfiguration(*loaded))), PrintConfiguration(*loaded));
    if (entry.path().filename() == "laptop.yaml") {
      EXPECT_EQ(PrintConfiguration(*loaded), PrintConfiguration(DefaultConfiguration()));
    }
  }
  EXPECT_GE(files, 3);
  EXPECT_EQ(LoadConfiguration("/nonexistent/x.yaml").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(LoadConfiguration("/").ok());
}

}  // namespace
}  // namespace hexad
