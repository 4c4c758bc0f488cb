#include "tests/scheduler/batch/script_runner.h"

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <sstream>
#include <utility>

#include "kvcache/core/keys.h"

namespace hexad::testing {
namespace {

constexpr TokenId kEndOfSequence{1};
constexpr TokenId kClientStop{2};
constexpr uint64_t kFirstWord = 3, kWords = 60;
constexpr int kEnoughSteps = 3000;  // of a small script; more of them is a hang

TokenId Word(uint64_t hash) { return TokenId{static_cast<int32_t>(kFirstWord + hash % kWords)}; }

std::string Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kFailed:
      return "failed";
  }
  return "?";
}

std::string Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return "done";
    case Outcome::kUnknownRequest:
      return "unknown_request";
    case Outcome::kStaleTerm:
      return "stale_term";
    case Outcome::kQueueFull:
      return "queue_full";
    case Outcome::kDraining:
      return "draining";
    case Outcome::kNeverFits:
      return "never_fits";
    case Outcome::kInvalid:
      return "invalid";
    case Outcome::kDuplicate:
      return "duplicate";
  }
  return "?";
}

BatcherConfig WithEndOfSequence(BatcherConfig config) {
  config.end_of_sequence = {kEndOfSequence};
  return config;
}

ContentKey TenantRoot(int64_t tenant) {
  return RootKey("model", "", DeriveTenantSalt("secret", std::to_string(tenant)));
}

std::string DescribePlan(const StepPlan& plan, const std::map<SlotId, RequestId>& slots) {
  std::ostringstream out;
  for (const Row& row : plan.rows) {
    out << (&row == &plan.rows[0] ? "" : " ") << static_cast<uint64_t>(slots.at(row.slot)) << '@'
        << row.position << '+' << row.num_tokens << (row.sample ? "*" : "")
        << (plan.tokens[row.first_token] == TokenId::kPending ? "?" : "");
  }
  return out.str();
}

}  // namespace

ScriptRunner::ScriptRunner(Script script, std::ostream* trace)
    : script_(std::move(script)),
      trace_(trace),
      batcher_(WithEndOfSequence(script_.config), script_.layout, script_.pools, CostModel()),
      executor_(
          script_.layout, script_.pools, std::max(1, script_.config.max_running),
          [this](RequestId request, const SlotOpen& open, std::span<const TokenId> history,
                 int32_t num_output) { return Sample(request, open, history, num_output); },
          [this](RequestId request) { return Root(request); }) {
  for (const auto& [id, line] : script_.requests) seen_[id].line = line;
}

void ScriptRunner::Complain(std::string what) {
  if (!failure_) failure_ = std::move(what);
}

ScriptRunner::Seen* ScriptRunner::Find(const std::string& id) {
  const auto found = seen_.find(std::atoll(id.c_str()));
  return found == seen_.end() ? nullptr : &found->second;
}

uint64_t ScriptRunner::Root(RequestId request) const {
  return TenantRoot(seen_.at(static_cast<int64_t>(request)).line.tenant).low;
}

TokenId ScriptRunner::Sample(RequestId request, const SlotOpen& open,
                             std::span<const TokenId> history, int32_t num_output) const {
  const ScriptRequest& line = seen_.at(static_cast<int64_t>(request)).line;
  uint64_t hash = Root(request);
  for (TokenId token : history) hash = MixHash(hash, static_cast<uint64_t>(token));
  hash = MixHash(hash, open.sampling.seed);
  TokenId token = Word(hash >> 8);
  if (line.eos == num_output || (line.eos == -2 && hash % 16 == 0)) token = kEndOfSequence;
  if (line.eos == -2 && hash % 32 == 1) token = kClientStop;
  const bool masked = num_output < open.min_new_tokens &&
                      std::find(open.masked_until_min.begin(), open.masked_until_min.end(),
                                token) != open.masked_until_min.end();
  return masked ? Word(hash >> 8) : token;
}

ScriptRunner::Reference ScriptRunner::MakeReference(const RequestSpec& spec) const {
  Reference reference;
  SlotOpen open;
  open.sampling = spec.sampling;
  open.min_new_tokens = spec.stop.min_new_tokens;
  for (TokenId stop : spec.stop.stop_tokens) {
    if (spec.stop.ignore_end_of_sequence && stop == kEndOfSequence) continue;
    open.masked_until_min.push_back(stop);
  }
  std::vector<TokenId> history = spec.prompt;
  reference.reason = FinishReason::kLength;
  while (reference.output_tokens < spec.stop.max_new_tokens &&
         static_cast<int32_t>(history.size()) < batcher_.max_sequence_tokens()) {
    const TokenId token = Sample(spec.id, open, history, reference.output_tokens);
    const bool stops = reference.output_tokens >= spec.stop.min_new_tokens &&
                       std::find(open.masked_until_min.begin(), open.masked_until_min.end(),
                                 token) != open.masked_until_min.end();
    ++reference.output_tokens;
    if (stops) {
      reference.reason = FinishReason::kStop;
      break;
    }
    history.push_back(token);
    reference.emitted.push_back(token);
  }
  return reference;
}

RequestSpec ScriptRunner::MakeSpec(Seen& seen) {
  const ScriptRequest& line = seen.line;
  RequestSpec spec;
  spec.id = RequestId{static_cast<uint64_t>(line.id)};
  for (int64_t i = 0; i < line.shared; ++i) spec.prompt.push_back(Word(MixHash(line.family, i)));
  for (int64_t i = 0; i < line.unique; ++i) {
    spec.prompt.push_back(Word(MixHash(1000 + line.id, i)));
  }
  spec.root_key = TenantRoot(line.tenant);
  spec.stop.max_new_tokens = static_cast<int32_t>(line.max_new);
  spec.stop.min_new_tokens = static_cast<int32_t>(line.min_new);
  spec.stop.ignore_end_of_sequence = line.ignore_eos != 0;
  spec.stop.stop_tokens = {kEndOfSequence, kClientStop};
  spec.sampling.seed = static_cast<uint64_t>(line.id);
  spec.rank = static_cast<double>(line.rank);
  spec.arrival = absl::UnixEpoch() + absl::Milliseconds(line.arrival);
  seen.reference = MakeReference(spec);
  seen.resumed = static_cast<int32_t>(
      std::min<int64_t>(line.resumed, static_cast<int64_t>(seen.reference.emitted.size())));
  spec.resumed_output.assign(seen.reference.emitted.begin(),
                             seen.reference.emitted.begin() + seen.resumed);
  if (line.keyed) {
    std::vector<TokenId> all = spec.prompt;
    all.insert(all.end(), spec.resumed_output.begin(), spec.resumed_output.end());
    spec.unit_keys = UnitKeys(spec.root_key, all);
  }
  return spec;
}

void ScriptRunner::On(ReplicaEvent event) {
  outcome_ = batcher_.On(std::move(event), absl::UnixEpoch() + absl::Milliseconds(now_ms_));
  if (trace_ && outcome_ != Outcome::kDone) *trace_ << "  outcome " << Name(outcome_) << '\n';
}

void ScriptRunner::PlaySubmit(Seen& seen) {
  if (seen.submitted) return;  // a request is submitted once; ids are not used again
  seen.submitted = true;
  On(Submit{MakeSpec(seen)});
  seen.refused = outcome_ != Outcome::kDone;
}

bool ScriptRunner::PlayPlan() {
  std::optional<StepPlan> plan = batcher_.Plan(absl::UnixEpoch() + absl::Milliseconds(now_ms_));
  if (!plan) {
    last_plan_ = "none";
    return false;
  }
  executor_.Submit(*plan);
  last_plan_ = DescribePlan(*plan, executor_.requests());
  if (trace_)
    *trace_ << "  step " << static_cast<uint64_t>(plan->step) << ": " << last_plan_ << std::endl;
  return true;
}

void ScriptRunner::PlayStepEnd(bool fail) {
  if (executor_.in_flight() == 0) return;
  const StepId step = executor_.oldest();
  StepResult result = executor_.Finish(fail);
  a_step_failed_ |= fail;
  if (fail) {
    On(StepFailed{step});
  } else {
    On(StepDone{std::move(result)});
  }
}

void ScriptRunner::Play(const ScriptOp& op) {
  ++now_ms_;
  Seen* seen = op.arguments.empty() ? nullptr : Find(op.arguments[0]);
  if (op.verb == "plan") {
    PlayPlan();
  } else if (op.verb == "done" || op.verb == "fail") {
    PlayStepEnd(op.verb == "fail");
  } else if (op.verb == "run") {
    RunToEnd();
  } else if (op.verb == "drain") {
    On(Drain{});
  } else if (op.verb == "expect") {
    PlayExpect(op.arguments);
  } else if (!seen) {
    Complain("no such line or request: " + op.verb);
  } else if (op.verb == "submit") {
    PlaySubmit(*seen);
  } else if (op.verb == "cancel") {
    seen->cancelled |= seen->submitted;
    On(Cancel{RequestId{static_cast<uint64_t>(seen->line.id)}});
  } else if (op.verb == "stop") {
    // The emitter stops at a token that it has got.
    const int32_t emitted = static_cast<int32_t>(seen->emitted.size());
    const int32_t back = op.arguments.size() > 1 ? std::atoi(op.arguments[1].c_str()) : 0;
    const int32_t at = seen->resumed + std::max(0, emitted - back);
    On(StopAt{RequestId{static_cast<uint64_t>(seen->line.id)}, at});
    if (outcome_ == Outcome::kDone) seen->stopped_at = at;
  } else if (op.verb == "reorder" && op.arguments.size() == 3) {
    On(Reorder{RequestId{static_cast<uint64_t>(seen->line.id)}, std::atof(op.arguments[1].c_str()),
               static_cast<uint64_t>(std::atoll(op.arguments[2].c_str()))});
  } else {
    Complain("no such line: " + op.verb);
  }
}

void ScriptRunner::RunToEnd() {
  for (int i = 0; i < kEnoughSteps && !failure_; ++i) {
    while (PlayPlan()) {
    }
    batcher_.CheckInvariants();
    if (executor_.in_flight() == 0) return;
    PlayStepEnd(false);
    TakeEvents();
    batcher_.CheckInvariants();
    if (executor_.failure()) return Complain(*executor_.failure());
  }
  Complain("it never ends");
}

void ScriptRunner::TakeEvents() {
  for (TokenEvent& event : batcher_.TakeEvents()) {
    const auto found = seen_.find(static_cast<int64_t>(event.request));
    if (found == seen_.end() || !found->second.submitted) {
      Complain("an event of nobody");
      continue;
    }
    Seen& seen = found->second;
    if (seen.end) Complain("an event after the end of request " + std::to_string(found->first));
    if (event.kind == TokenEvent::Kind::kFinished) {
      if (trace_) {
        *trace_ << "  end " << found->first << ' ' << Name(event.reason)
                << " output=" << event.output_tokens << " cached=" << event.cached_tokens
                << std::endl;
      }
      CheckEnd(seen, event);
      seen.end = std::move(event);
      continue;
    }
    for (const SampledToken& token : event.tokens) {
      const size_t index = seen.resumed + seen.emitted.size();
      seen.emitted.push_back(token.token);
      if (index >= seen.reference.emitted.size() || seen.reference.emitted[index] != token.token) {
        Complain("request " + std::to_string(found->first) + " got a wrong token");
      }
    }
  }
}

void ScriptRunner::CheckEnd(const Seen& seen, const TokenEvent& end) {
  const std::string name = "request " + std::to_string(seen.line.id);
  const int32_t emitted = seen.resumed + static_cast<int32_t>(seen.emitted.size());
  if (end.prompt_tokens != seen.line.shared + seen.line.unique) Complain(name + ": prompt_tokens");
  if (end.cached_tokens < 0 || end.cached_tokens > end.prompt_tokens) {
    Complain(name + ": cached_tokens");
  }
  if (seen.refused) {
    if (end.reason != FinishReason::kFailed) Complain(name + " was refused, but did not fail");
    return;
  }
  switch (end.reason) {
    case FinishReason::kFailed:
      if (!a_step_failed_) Complain(name + " failed without a failed step");
      return;
    case FinishReason::kCancelled:
      if (!seen.cancelled) Complain(name + " was not cancelled");
      if (end.output_tokens != emitted) Complain(name + ": output_tokens when cancelled");
      return;
    case FinishReason::kStop:
    case FinishReason::kLength:
      break;
  }
  if (seen.stopped_at) {
    if (end.output_tokens != *seen.stopped_at) Complain(name + " counts past its stop string");
    return;
  }
  if (end.reason != seen.reference.reason) Complain(name + " ended for a wrong reason");
  if (end.output_tokens != seen.reference.output_tokens ||
      emitted != static_cast<int32_t>(seen.reference.emitted.size())) {
    Complain(name + " has a wrong number of tokens");
  }
}

void ScriptRunner::CheckAllOver() {
  for (const auto& [id, seen] : seen_) {
    if (seen.submitted && !seen.end) Complain("request " + std::to_string(id) + " never ended");
  }
  if (!batcher_.idle()) Complain("the batcher is not idle at the end");
  for (uint32_t g = 0; g < script_.pools.size(); ++g) {
    if (batcher_.kv().pool(g).available() != script_.pools[g]) Complain("a block is lost");
  }
}

std::optional<std::string> ScriptRunner::Run() {
  const auto play = [&](const ScriptOp& op) {
    if (trace_) {
      *trace_ << op.verb;
      for (const std::string& argument : op.arguments) *trace_ << ' ' << argument;
      *trace_ << std::endl;
    }
    Play(op);
    TakeEvents();
    batcher_.CheckInvariants();
    if (executor_.failure()) Complain(*executor_.failure());
  };
  for (const ScriptOp& op : script_.ops) {
    play(op);
    if (failure_) return failure_;
  }
  play({"run", {}});
  if (!failure_) CheckAllOver();
  return failure_;
}

void ScriptRunner::PlayExpect(const std::vector<std::string>& words) {
  if (words.empty()) return Complain("an empty expectation");
  std::string got, wanted;
  for (size_t i = 1; i < words.size(); ++i) wanted += (i > 1 ? " " : "") + words[i];
  if (words[0] == "end" || words[0] == "stats") {
    TakeEvents();
    return words[0] == "end" ? ExpectEnd(words) : ExpectStats(words);
  }
  if (words[0] == "plan") got = last_plan_;
  if (words[0] == "outcome") got = Name(outcome_);
  if (words[0] == "tokens" && words.size() == 3 && Find(words[1])) {
    got = words[1] + " " + std::to_string(Find(words[1])->emitted.size());
  }
  if (got != wanted) Complain("expected " + words[0] + " '" + wanted + "', got '" + got + "'");
}

void ScriptRunner::ExpectEnd(const std::vector<std::string>& words) {
  const Seen* seen = words.size() > 2 ? Find(words[1]) : nullptr;
  if (!seen) return Complain("expect end REQUEST REASON");
  if (!seen->end) return Complain("request " + words[1] + " has not ended");
  std::vector<std::string> got = {"end", words[1], Name(seen->end->reason)};
  got.push_back("output=" + std::to_string(seen->end->output_tokens));
  got.push_back("cached=" + std::to_string(seen->end->cached_tokens));
  for (const std::string& word : words) {
    if (std::find(got.begin(), got.end(), word) != got.end()) continue;
    Complain("expected " + word + ", got " + got[2] + ' ' + got[3] + ' ' + got[4]);
  }
}

void ScriptRunner::ExpectStats(const std::vector<std::string>& words) {
  const BatcherStats stats = batcher_.stats();
  std::string free;
  for (uint32_t blocks : stats.free_blocks)
    free += (free.empty() ? "" : ",") + std::to_string(blocks);
  const std::map<std::string, std::string> got = {
      {"running", std::to_string(stats.running)},
      {"waiting", std::to_string(stats.waiting)},
      {"following", std::to_string(stats.following)},
      {"in_flight", std::to_string(stats.steps_in_flight)},
      {"preemptions", std::to_string(stats.preemptions)},
      {"cached", std::to_string(stats.cached_tokens)},
      {"free", free},
  };
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const auto found = got.find(words[i].substr(0, equals));
    if (equals == std::string::npos || found == got.end()) return Complain("no such statistic");
    if (found->second == words[i].substr(equals + 1)) continue;
    Complain("expected " + words[i] + ", got " + found->second);
  }
}

}  // namespace hexad::testing
