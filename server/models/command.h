#pragma once

// `hexad models pull|list|inspect|rm`.

#include <ostream>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "server/models/store.h"

namespace hexad {

// What main reads from the environment; empty: not set.
struct ModelsEnvironment {
  std::string home;            // HOME
  std::string xdg_cache_home;  // XDG_CACHE_HOME
  std::string hexad_cache;     // HEXAD_CACHE: stands for $XDG_CACHE_HOME/hexad
  std::string hf_endpoint;     // HF_ENDPOINT
  std::string hf_token;        // HF_TOKEN
  bool terminal = false;       // `err` of the command is a terminal
};

// $HEXAD_CACHE/models, $XDG_CACHE_HOME/hexad/models or $HOME/.cache/hexad/models.
absl::StatusOr<std::string> ModelsFolder(const ModelsEnvironment& environment);

// The store that `hexad serve` and `hexad models` share. lock_path empty: the built-in lock.
absl::StatusOr<ModelStore> OpenModelStore(const ModelsEnvironment& environment,
                                          const std::string& lock_path,
                                          const DownloadLimits& limits);

// Results go to `out`, progress and errors to `err`. Exit codes: 0, 1 (failed), 2 (misused).
int ModelsCommand(std::span<const std::string> args, const ModelsEnvironment& environment,
                  std::ostream& out, std::ostream& err);

}  // namespace hexad
