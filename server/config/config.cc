#include "server/config/config.h"

#include <set>

#include "absl/strings/str_join.h"
#include "server/config/config_fields.h"
#include "server/config/field_text.h"
#include "server/config/yaml_reader.h"

namespace hexad {
namespace {

constexpr char kDefaultModel[] = "smollm2-135m-instruct";

// One CPU worker a model: what a file that names no workers means.
std::vector<WorkerConfig> DefaultWorkers(const std::vector<ModelConfig>& models) {
  std::vector<WorkerConfig> workers;
  for (const ModelConfig& model : models) {
    WorkerConfig worker;
    worker.name = "w" + std::to_string(workers.size());
    worker.model = model.name;
    workers.push_back(std::move(worker));
  }
  return workers;
}

struct Finding {
  std::string path;
  std::string message;
};

void CheckListen(const Config& config, std::vector<Finding>* findings) {
  const auto open = [&](const char* path, const ListenAddress& address) {
    if (config.auth.kind == AuthConfig::Kind::kUnset && !address.IsLoopback()) {
      findings->push_back({path, std::string(path) + " " + address.ToString() +
                                     " is beyond loopback and no keys are set: set "
                                     "auth.keys_file, or write auth: none to let everybody in"});
    }
  };
  open("listen.http", config.listen.http);
  if (!config.listen.grpc.has_value()) return;
  open("listen.grpc", *config.listen.grpc);
  if (*config.listen.grpc == config.listen.http && config.listen.http.port != 0) {
    findings->push_back({"listen.grpc", "listen.grpc and listen.http must differ"});
  }
}

void CheckWorkers(const Config& config, std::vector<Finding>* findings) {
  if (config.models.empty()) findings->push_back({"models", "models needs at least one"});
  std::set<std::string> models;
  for (size_t i = 0; i < config.models.size(); ++i) {
    if (!models.insert(config.models[i].name).second) {
      findings->push_back({"models[" + std::to_string(i) + "].name",
                           "model " + config.models[i].name + " is there twice"});
    }
  }
  std::set<std::string> names;
  std::set<std::string> served;
  for (size_t i = 0; i < config.workers.size(); ++i) {
    const WorkerConfig& worker = config.workers[i];
    const std::string path = "workers[" + std::to_string(i) + "]";
    if (!names.insert(worker.name).second) {
      findings->push_back({path + ".name", "worker " + worker.name + " is there twice"});
    }
    if (!models.contains(worker.model)) {
      findings->push_back({path + ".model", "worker " + worker.name + " serves model " +
                                                worker.model + ", which is not in models"});
    }
    served.insert(worker.model);
  }
  for (const std::string& model : models) {
    if (!served.contains(model))
      findings->push_back({"workers", "model " + model + " has no worker"});
  }
}

}  // namespace

Configuration DefaultConfiguration() {
  Configuration configuration;
  configuration.fixed.models.push_back(ModelConfig{.name = kDefaultModel});
  configuration.fixed.workers = DefaultWorkers(configuration.fixed.models);
  return configuration;
}

absl::StatusOr<Configuration> ParseConfiguration(std::string_view text, std::string_view name) {
  Configuration configuration = DefaultConfiguration();
  ReadResult result;
  {
    Field root = DescribeConfiguration(configuration);
    result = ReadYaml(text, name, root);
  }
  if (result.problems.empty()) {
    Config& config = configuration.fixed;
    if (!result.places.contains("workers")) config.workers = DefaultWorkers(config.models);
    std::vector<Finding> findings;
    CheckListen(config, &findings);
    CheckWorkers(config, &findings);
    for (const Finding& finding : findings) {
      result.problems.push_back(ProblemAt(result, name, finding.path, finding.message));
    }
  }
  if (!result.problems.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(result.problems, "\n"));
  }
  return configuration;
}

absl::StatusOr<Configuration> LoadConfiguration(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  return ParseConfiguration(*text, path);
}

std::string PrintConfiguration(const Configuration& configuration) {
  Configuration copy = configuration;  // fields bind to what they could change
  return PrintYaml(DescribeConfiguration(copy));
}

std::vector<std::string> FixedChanges(const Config& before, const Config& after) {
  Configuration old_copy{before, {}};
  Configuration new_copy{after, {}};
  auto old_values = FlatValues(DescribeConfiguration(old_copy), false);
  const auto new_values = FlatValues(DescribeConfiguration(new_copy), false);
  std::vector<std::string> changes;
  for (const auto& [path, value] : new_values) {
    const auto found = old_values.find(path);
    if (found == old_values.end() || found->second != value) changes.push_back(path);
    if (found != old_values.end()) old_values.erase(found);
  }
  for (const auto& [path, value] : old_values) changes.push_back(path);
  return changes;
}

absl::StatusOr<std::string> ExplainField(std::string_view path) {
  Configuration configuration = DefaultConfiguration();
  return Explain(DescribeConfiguration(configuration), path);
}

std::string ExplainAll() {
  Configuration configuration = DefaultConfiguration();
  return ExplainAllFields(DescribeConfiguration(configuration));
}

std::string ConfigSchema() {
  Configuration configuration = DefaultConfiguration();
  return PrintSchema(DescribeConfiguration(configuration), "hexad configuration");
}

}  // namespace hexad
