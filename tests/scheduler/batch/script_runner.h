#pragma once

// Plays a script against a Batcher and a CheckingExecutor, and checks after every line that
// everything holds: the batcher's invariants, the executor's, the tokens against an unbatched
// reference, one end per request; and at the end, that nothing is left and every block is back.
//
//   expect plan 1@0+32 2@48+1*?   rows of the last plan: request@position+tokens, * samples, ?
//   takes
//                                 a pending token; `expect plan none`: there was none
//   expect end 1 length output=4 cached=16      (stop | length | cancelled | failed)
//   expect tokens 1 3             so many were emitted
//   expect outcome queue_full     of the last event
//   expect stats running=1 waiting=0 following=0 preemptions=0 free=4,3

#include <deque>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/batch/batcher.h"
#include "tests/scheduler/batch/checking_executor.h"
#include "tests/scheduler/batch/script.h"

namespace hexad::testing {

class ScriptRunner final {
 public:
  // trace: what happens, line by line; may be null.
  ScriptRunner(Script script, std::ostream* trace);

  // What is wrong, or nullopt. After the last line everything that is alive runs to its end.
  std::optional<std::string> Run();

 private:
  struct Reference {
    std::vector<TokenId> emitted;
    int32_t output_tokens = 0;
    FinishReason reason{};
  };
  struct Seen {
    ScriptRequest line;
    Reference reference;
    bool submitted = false;
    int32_t resumed = 0;
    std::vector<TokenId> emitted;
    std::optional<TokenEvent> end;
    bool cancelled = false;
    std::optional<int32_t> stopped_at;
    bool refused = false;
  };

  Seen* Find(const std::string& id);
  RequestSpec MakeSpec(Seen& seen);
  Reference MakeReference(const RequestSpec& spec) const;
  TokenId Sample(RequestId request, const SlotOpen& open, std::span<const TokenId> history,
                 int32_t num_output) const;
  uint64_t Root(RequestId request) const;

  void Play(const ScriptOp& op);
  void PlaySubmit(Seen& seen);
  bool PlayPlan();
  void PlayStepEnd(bool fail);
  void RunToEnd();
  void PlayExpect(const std::vector<std::string>& words);
  void ExpectStats(const std::vector<std::string>& words);
  void ExpectEnd(const std::vector<std::string>& words);
  void On(ReplicaEvent event);
  void TakeEvents();
  void CheckEnd(const Seen& seen, const TokenEvent& end);
  void CheckAllOver();
  void Complain(std::string what);

  Script script_;
  std::ostream* trace_;
  Batcher batcher_;
  CheckingExecutor executor_;
  std::map<int64_t, Seen> seen_;
  Outcome outcome_ = Outcome::kDone;
  std::string last_plan_ = "none";
  bool a_step_failed_ = false;
  int64_t now_ms_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace hexad::testing
