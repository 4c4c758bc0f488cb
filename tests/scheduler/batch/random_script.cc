#include "tests/scheduler/batch/random_script.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "tests/scheduler/batch/script_runner.h"

namespace hexad::testing {
namespace {

// A script takes milliseconds; a child that hangs is ended by the kernel.
constexpr unsigned kHangSeconds = 5;

class Dice final {
 public:
  explicit Dice(uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15 + 1) {}
  // In [low, high]. Not std::uniform_int_distribution, which differs between libraries.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int64_t percent) { return Between(1, 100) <= percent; }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + Between(0, static_cast<int64_t>(values.size()) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

void RollConfig(Dice& dice, Script& script) {
  script.layout.block_tokens = dice.OneOf({16, 16, 16, 32, 48});
  const int64_t kinds = dice.Between(0, 5);
  const auto add = [&](GroupKind kind) {
    KvGroup group;
    group.kind = kind;
    group.bytes_per_token = 1;
    if (kind == GroupKind::kWindow) {
      group.window_tokens = dice.OneOf({1, 2, 8, 15, 16, 17, 33, 40, 64, 100});
    }
    script.layout.groups.push_back(group);
    script.pools.push_back(
        static_cast<uint32_t>(dice.Chance(30) ? dice.Between(1, 6) : dice.Between(5, 24)));
  };
  if (kinds != 1) add(GroupKind::kFull);
  if (kinds >= 1 && kinds != 4) add(GroupKind::kWindow);
  if (kinds == 3) add(GroupKind::kWindow);
  if (kinds == 4) add(GroupKind::kLatent);
  BatcherConfig& config = script.config;
  config.max_running = static_cast<int32_t>(dice.Between(1, 6));
  config.max_waiting = static_cast<int32_t>(dice.OneOf({2, 8, 50}));
  config.max_steps_in_flight = static_cast<int32_t>(dice.OneOf({1, 2, 2, 2, 3}));
  config.max_step_tokens = static_cast<int32_t>(dice.OneOf({8, 24, 64, 500}));
  config.min_chunk_tokens = static_cast<int32_t>(dice.OneOf({1, 5, 16}));
  config.max_context_tokens = static_cast<int32_t>(dice.OneOf({0, 0, 150}));
  config.step_target = absl::Microseconds(dice.OneOf({500, 8000, 30000, 200000}));
  config.idle_step_factor = static_cast<double>(dice.OneOf({1, 1, 4}));
  config.max_chunk_tokens = static_cast<int32_t>(dice.OneOf({16, 48, 512, 512}));
  config.first_chunk_tokens = static_cast<int32_t>(dice.OneOf({0, 0, 64}));
}

ScriptRequest RollRequest(Dice& dice, int64_t id) {
  ScriptRequest request;
  request.id = id;
  request.tenant = dice.Chance(85) ? 0 : 1;
  request.family = dice.Between(0, 1);
  request.shared = dice.Chance(25) ? 0 : dice.OneOf({16, 31, 48, 64, 65, 96, 128});
  request.unique = dice.Chance(30) ? (request.shared == 0) : dice.Between(1, 40);
  request.resumed = dice.Chance(10) ? dice.Between(1, 12) : 0;
  request.max_new = dice.Chance(5) ? 0 : dice.Between(1, 40);
  request.min_new = dice.Chance(20) ? dice.Between(1, 10) : 0;
  request.eos = dice.Chance(60) ? -2 : -1;
  request.ignore_eos = dice.Chance(20);
  request.rank = dice.Chance(60) ? 0 : dice.Between(-2, 2);
  request.arrival = dice.Chance(80) ? id : dice.Between(0, 10);
  request.keyed = dice.Chance(80);
  return request;
}

}  // namespace

Script RandomScript(uint64_t seed) {
  Dice dice(seed);
  Script script;
  RollConfig(dice, script);
  const int64_t num_requests = dice.Between(2, 12);
  for (int64_t id = 1; id <= num_requests; ++id) script.requests[id] = RollRequest(dice, id);

  const bool with_failures = dice.Chance(35);
  const bool with_drain = dice.Chance(15);
  const int64_t num_ops = dice.Between(20, 160);
  int64_t submitted = 0;
  for (int64_t i = 0; i < num_ops; ++i) {
    const int64_t roll = dice.Between(1, 1000);
    const auto somebody = [&] { return std::to_string(dice.Between(1, num_requests)); };
    if (roll <= 400) {
      script.ops.push_back({"plan", {}});
    } else if (roll <= 770) {
      script.ops.push_back({"done", {}});
    } else if (roll <= 880 && submitted < num_requests) {
      script.ops.push_back({"submit", {std::to_string(++submitted)}});
    } else if (roll <= 910) {
      script.ops.push_back({"cancel", {somebody()}});
    } else if (roll <= 935) {
      script.ops.push_back({"stop", {somebody(), std::to_string(dice.Between(0, 3))}});
    } else if (roll <= 965) {
      script.ops.push_back({"reorder",
                            {somebody(), std::to_string(dice.Between(-3, 3)),
                             std::to_string(dice.Between(0, 1 + i / 20))}});
    } else if (roll <= 990 && with_failures) {
      script.ops.push_back({"fail", {}});
    } else if (roll > 995 && with_drain) {
      script.ops.push_back({"drain", {}});
    }
  }
  while (submitted < num_requests) script.ops.push_back({"submit", {std::to_string(++submitted)}});
  return script;
}

std::optional<std::string> RunApart(const Script& script) {
  int channel[2];
  if (pipe(channel) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(channel[0]);
    std::fflush(nullptr);
    alarm(kHangSeconds);
    const std::optional<std::string> failure = ScriptRunner(script, nullptr).Run();
    if (failure && write(channel[1], failure->data(), failure->size()) < 0) _exit(2);
    _exit(failure ? 1 : 0);
  }
  close(channel[1]);
  std::string what;
  char buffer[512];
  for (ssize_t got; (got = read(channel[0], buffer, sizeof(buffer))) > 0;) what.append(buffer, got);
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  return what.empty() ? "the process ended: a broken invariant, a sanitizer's finding or a hang"
                      : what;
}

Script Shrink(Script script, const std::function<bool(const Script&)>& fails) {
  int attempts_left = 600;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto try_change = [&](const std::function<void(Script&)>& change) {
    if (attempts_left == 0 || std::chrono::steady_clock::now() > deadline) return false;
    Script smaller = script;
    change(smaller);
    --attempts_left;
    if (!fails(smaller)) return false;
    script = std::move(smaller);
    return true;
  };
  // Lines, in ever smaller runs; whole requests with them.
  for (size_t run = std::max<size_t>(1, script.ops.size() / 2); run > 0; run /= 2) {
    for (size_t first = 0; first < script.ops.size();) {
      const size_t end = std::min(first + run, script.ops.size());
      if (!try_change([&](Script& smaller) {
            smaller.ops.erase(smaller.ops.begin() + first, smaller.ops.begin() + end);
          })) {
        first = end;
      }
    }
  }
  for (const auto& [id, request] : Script(script).requests) {
    const int64_t which = id;
    const bool used = std::any_of(script.ops.begin(), script.ops.end(), [&](const ScriptOp& op) {
      return !op.arguments.empty() && op.arguments[0] == std::to_string(which);
    });
    if (!used) script.requests.erase(which);
  }
  for (const auto& [id, request] : Script(script).requests) {
    const int64_t which = id;
    for (int64_t ScriptRequest::*member :
         {&ScriptRequest::shared, &ScriptRequest::unique, &ScriptRequest::max_new,
          &ScriptRequest::min_new, &ScriptRequest::resumed, &ScriptRequest::rank}) {
      const int64_t least = member == &ScriptRequest::unique && request.shared == 0 ? 1 : 0;
      for (int i = 0; i < 8 && script.requests[which].*member > least; ++i) {
        if (!try_change([&](Script& smaller) {
              int64_t& value = smaller.requests[which].*member;
              value = std::max(least, value / 2);
            })) {
          break;
        }
      }
    }
  }
  return script;
}

std::optional<uint64_t> FirstFailingSeed(uint64_t first, uint64_t count) {
  // One child for all seeds; it notes which one it is at.
  auto* const at = static_cast<uint64_t*>(
      mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (at == MAP_FAILED) return first;
  *at = first;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    for (uint64_t seed = first; seed < first + count; ++seed) {
      *at = seed;
      alarm(kHangSeconds);
      if (ScriptRunner(RandomScript(seed), nullptr).Run()) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const uint64_t seed = *at;
  munmap(at, sizeof(uint64_t));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  return seed;
}

std::optional<SeedFailure> RunSeeds(uint64_t first, uint64_t count) {
  const std::optional<uint64_t> seed = FirstFailingSeed(first, count);
  if (!seed) return std::nullopt;
  std::cout << "seed " << *seed << " fails; looking for a smaller script" << std::endl;
  SeedFailure failure;
  failure.seed = *seed;
  const Script shrunk = Shrink(RandomScript(*seed),
                               [](const Script& script) { return RunApart(script).has_value(); });
  failure.what = RunApart(shrunk).value_or("it does not fail again");
  failure.log_path = ::testing::TempDir() + "hexad_batcher_seed_" + std::to_string(*seed) + ".txt";
  std::ofstream(failure.log_path) << "# seed " << *seed << ": " << failure.what << '\n'
                                  << PrintScript(shrunk);
  return failure;
}

}  // namespace hexad::testing
