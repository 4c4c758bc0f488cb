#pragma once

// What happens to a batcher, as lines of text: written by hand for scenarios, by a generator for
// the property test, and by its shrinker for replay.
//
//   config block_tokens=16 groups=full,window:32 pools=8,6 max_running=2 ...
//   request 1 family=0 shared=40 unique=5 max_new=4 ...   (who; does nothing yet)
//   submit 1 | cancel 1 | stop 1 BACK | reorder 1 RANK TERM | drain
//   plan | done | fail | run                               (run: plan and done until idle)
//   expect ...                                             (see script_runner.h)
//
// A prompt is `shared` tokens of its family, then `unique` ones of its own.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvcache/core/groups.h"
#include "scheduler/batch/batcher_types.h"

namespace hexad::testing {

struct ScriptRequest {
  int64_t id = 0;
  int64_t tenant = 0, family = 0, shared = 0, unique = 1;
  int64_t resumed = 0;  // output tokens it comes with
  int64_t max_new = 4, min_new = 0;
  int64_t eos = -1;  // the output token that is the end of sequence; -1: never, -2: by chance
  int64_t ignore_eos = 0;
  int64_t rank = 0, arrival = 0;
  int64_t keyed = 1;  // 0: the batcher has to make the unit keys
};

struct ScriptOp {
  std::string verb;
  std::vector<std::string> arguments;
};

// A target is a target, whatever is known of the times.
inline BatcherConfig ScriptConfig() {
  BatcherConfig config;
  config.idle_step_factor = 1;
  config.first_chunk_tokens = 0;
  return config;
}

struct Script {
  KvLayout layout;
  std::vector<uint32_t> pools;
  BatcherConfig config = ScriptConfig();
  std::map<int64_t, ScriptRequest> requests;
  std::vector<ScriptOp> ops;
};

// nullopt and `error` with the line when it is no script.
std::optional<Script> ParseScript(std::string_view text, std::string& error);
std::string PrintScript(const Script& script);

}  // namespace hexad::testing
