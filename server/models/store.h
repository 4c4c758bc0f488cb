#pragma once

// The model cache: one folder a model, a manifest that is written last. A model is there when its
// manifest is. Two pulls of one model, in two threads or two processes, are safe: the second waits
// for the first and then finds it done.
//
//   <folder>/<model>/model.manifest, <file>.gguf; <file>.gguf.part while under way
//   <folder>/<model>.lock

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/models/download.h"
#include "server/models/hub.h"
#include "server/models/model_lock.h"
#include "server/models/progress.h"

namespace hexad {

struct StoredModel {
  std::string name;
  std::string source;
  std::string licence;
  std::string path;  // of the file, absolute
  std::string sha256;
  int64_t size = 0;     // bytes
  int64_t context = 0;  // tokens; 0: as the file says
  std::string notes;
};

class ModelStore final {
 public:
  ModelStore(std::string folder, ModelLock lock, HubAccess hub, DownloadLimits limits);

  // Complete models, by name. An absent folder is an empty cache.
  absl::StatusOr<std::vector<StoredModel>> List() const;
  // NotFound when it is not in the cache. Takes a name or a source.
  absl::StatusOr<StoredModel> Find(const std::string& reference) const;
  // Fetches what is not there, checks it, and says where it is. A local path is only checked.
  absl::StatusOr<StoredModel> Pull(const std::string& reference, Progress& progress);
  // Gives the file of a name, a source, a path, or (empty or "default") the lock's default model.
  // What is absent is pulled when `may_pull`; else NotFound says how to pull it.
  absl::StatusOr<std::string> Resolve(const std::string& reference, bool may_pull,
                                      Progress& progress);
  // FailedPrecondition while it is being pulled.
  absl::Status Remove(const std::string& reference);

  const ModelLock& lock() const { return lock_; }
  const std::string& folder() const { return folder_; }

 private:
  // What a reference means: a lock entry, or one made for a source.
  absl::StatusOr<ModelEntry> EntryOf(const std::string& reference) const;
  absl::StatusOr<StoredModel> ReadManifest(const std::string& model_folder) const;
  absl::StatusOr<StoredModel> Fetch(ModelEntry entry, const std::string& model_folder,
                                    Progress& progress);
  absl::Status FetchDownload(ModelEntry& entry, const std::string& model_folder,
                             Progress& progress);
  absl::Status FetchPieces(ModelEntry& entry, const std::string& model_folder, Progress& progress);

  std::string folder_;
  ModelLock lock_;
  HubAccess hub_;
  DownloadLimits limits_;
};

}  // namespace hexad
