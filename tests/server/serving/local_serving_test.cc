// The serving loops over an emulated executor: real threads, planner, batcher and KV, no
// arithmetic.

#include "server/serving/local_serving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/emulated_executor.h"
#include "server/status.h"

namespace hexad {
namespace {

// One token a byte, so that text and tokens are easy to compare. Token 256 ends a sequence.
class ByteTokenizer final : public Tokenizer {
 public:
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text, EncodeOptions) const override {
    std::vector<TokenId> tokens;
    for (const char c : text) tokens.push_back(TokenId{static_cast<unsigned char>(c)});
    return tokens;
  }
  std::string TokenBytes(TokenId token, bool) const override {
    const auto id = static_cast<int32_t>(token);
    return id < 256 ? std::string(1, static_cast<char>(id)) : std::string();
  }
  int32_t vocab_size() const override { return 257; }
  TokenId bos() const override { return TokenId{-1}; }
  const std::vector<TokenId>& end_of_generation() const override { return ends_; }
  const std::string& chat_template() const override { return empty_; }
  std::string_view bos_text() const override { return {}; }
  std::string_view eos_text() const override { return {}; }

 private:
  std::vector<TokenId> ends_ = {TokenId{256}};
  std::string empty_;
};

struct Answer final : public TokenSink {
  void OnAccepted(int32_t prompt_tokens) override {
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(accepted);
    accepted = true;
    this->prompt_tokens = prompt_tokens;
    changed.notify_all();
  }
  void OnDelta(int32_t choice, TextDelta delta) override {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(accepted);
    EXPECT_FALSE(ended);
    EXPECT_FALSE(finished.contains(choice));
    text[choice] += delta.text;
    tokens += static_cast<int32_t>(delta.tokens.size());
    changed.notify_all();
  }
  void OnFinish(int32_t choice, FinishReason reason) override {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(finished.emplace(choice, reason).second);
  }
  void OnEnd(const absl::Status& end, const Usage& used) override {
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(ended) << "OnEnd comes once";
    ended = true;
    status = end;
    usage = used;
    changed.notify_all();
  }
  template <typename Condition>
  void Wait(Condition condition) {
    std::unique_lock lock(mutex);
    changed.wait(lock, condition);
  }
  void WaitForEnd() {
    Wait([this] { return ended; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool accepted = false, ended = false;
  int32_t prompt_tokens = 0, tokens = 0;
  std::map<int32_t, std::string> text;
  std::map<int32_t, FinishReason> finished;
  absl::Status status;
  Usage usage;
};

// Fails every step.
class DeadExecutor final : public Executor {
 public:
  explicit DeadExecutor(std::unique_ptr<Executor> like) : like_(std::move(like)) {}
  const ModelShape& shape() const override { return like_->shape(); }
  const std::vector<uint32_t>& pool_blocks() const override { return like_->pool_blocks(); }
  void Submit(StepPlan, Done done) override { done(absl::InternalError("the device is gone")); }

 private:
  std::unique_ptr<Executor> like_;
};

class LocalServingTest : public ::testing::Test {
 protected:
  struct Setup {
    uint32_t blocks = 256;
    double speed_up = 1e6;
    int32_t max_running = 8, max_waiting = 64, max_live_calls = 512, context = 512;
    absl::Duration timeout = absl::Minutes(1);
    bool dead = false;
    double end_probability = 0;
    std::string planner = "wf_fcfs";
  };

  absl::Status Make(const Setup& setup) {
    auto model = std::make_unique<LoadedModel>();
    model->name = "m";
    model->max_context_tokens = setup.context;
    model->model_digest = "digest";
    model->tokenizer = std::make_unique<ByteTokenizer>();
    auto parsed = ChatTemplate::Parse(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:");
    if (!parsed.ok()) return parsed.status();
    model->chat_template = *std::move(parsed);

    EmulatedOptions emulated;
    emulated.shape.vocab_size = 257;
    emulated.shape.kv = {.block_tokens = 16, .groups = {{.layers = {0}, .bytes_per_token = 64}}};
    emulated.pool_blocks = {setup.blocks};
    emulated.speed_up = setup.speed_up;
    emulated.first_token = 'a';
    emulated.end_token = 'z' + 1;
    emulated.end_of_sequence = TokenId{256};
    emulated.end_probability = setup.end_probability;
    std::unique_ptr<Executor> executor = MakeEmulatedExecutor(std::move(emulated));
    if (setup.dead) executor = std::make_unique<DeadExecutor>(std::move(executor));

    std::vector<std::unique_ptr<LoadedModel>> models;
    models.push_back(std::move(model));
    std::vector<ReplicaConfig> replicas;
    replicas.push_back({.name = "w0",
                        .model = "m",
                        .executor = std::move(executor),
                        .batcher = {.max_running = setup.max_running,
                                    .max_waiting = setup.max_waiting,
                                    .max_context_tokens = setup.context,
                                    .end_of_sequence = {TokenId{256}}}});
    LocalServingOptions options;
    options.planner = setup.planner;
    options.max_live_calls = setup.max_live_calls;
    options.request_timeout = setup.timeout;
    options.server_secret = "0123456789abcdef0123456789abcdef";
    options.on_failed = [this](const std::string& reason) {
      const std::lock_guard lock(mutex_);
      failure_ = reason;
      failed_.notify_all();
    };
    auto serving =
        LocalServing::Create(std::move(models), std::move(replicas), options, log_, metrics_);
    if (!serving.ok()) return serving.status();
    serving_ = *std::move(serving);
    return absl::OkStatus();
  }

  static GenerateCall Call(std::string prompt, int32_t max_new_tokens = 20, uint64_t seed = 1) {
    GenerateCall call;
    call.model = "m";
    call.tenant = "t";
    call.input = std::move(prompt);
    call.max_new_tokens = max_new_tokens;
    call.has_seed = true;
    call.sampling.seed = seed;
    return call;
  }

  std::shared_ptr<Answer> Run(GenerateCall call) {
    auto answer = std::make_shared<Answer>();
    serving_->Start(std::move(call), answer);
    answer->WaitForEnd();
    return answer;
  }

  Logger log_{{.level = LogLevel::kError, .sink = [](std::string_view) {}}};
  Metrics metrics_{{.version = "test"}};
  std::mutex mutex_;
  std::condition_variable failed_;
  std::string failure_;
  std::unique_ptr<LocalServing> serving_;
};

TEST_F(LocalServingTest, AnswersAChatAndCountsIt) {
  ASSERT_TRUE(Make({}).ok());
  GenerateCall call = Call("", 20);
  call.input = std::vector<ChatMessage>{{"user", "hello", ""}};
  const auto answer = Run(call);
  EXPECT_TRUE(answer->status.ok()) << answer->status;
  EXPECT_EQ(answer->usage.prompt_tokens, 22);  // "user: hello\nassistant:"
  EXPECT_EQ(answer->usage.completion_tokens, 20);
  EXPECT_EQ(answer->text[0].size(), 20u);
  EXPECT_EQ(answer->finished[0], FinishReason::kLength);
  EXPECT_EQ(answer->tokens, 20);
  EXPECT_THAT(metrics_.Render(), ::testing::ContainsRegex("vllm:generation_tokens_total.* 20\n"))
      << "the first token, which the last prefill chunk samples, counts too";
}

TEST_F(LocalServingTest, TheSameSeedGivesTheSameTextAndAPrefixIsCached) {
  ASSERT_TRUE(Make({}).ok());
  const std::string prompt(100, 'x');
  const auto first = Run(Call(prompt));
  const auto second = Run(Call(prompt));
  EXPECT_EQ(first->text[0], second->text[0]);
  EXPECT_EQ(first->usage.cached_tokens, 0);
  EXPECT_EQ(second->usage.cached_tokens, 96);
  GenerateCall other = Call(prompt);
  other.tenant = "another";
  EXPECT_EQ(Run(other)->usage.cached_tokens, 0) << "tenants share nothing";
  EXPECT_NE(Run(Call(prompt, 20, 2))->text[0], first->text[0]);
}

TEST_F(LocalServingTest, ChoicesAreDistinctAndJoined) {
  ASSERT_TRUE(Make({}).ok());
  GenerateCall call = Call("abc");
  call.num_choices = 3;
  const auto answer = Run(call);
  EXPECT_EQ(answer->finished.size(), 3u);
  EXPECT_NE(answer->text[0], answer->text[1]);
  EXPECT_NE(answer->text[1], answer->text[2]);
  EXPECT_EQ(answer->usage.completion_tokens, 60);
  EXPECT_EQ(answer->usage.prompt_tokens, 3);
  EXPECT_EQ(answer->text[0], Run(Call("abc"))->text[0]) << "the first choice has the seed itself";
}

TEST_F(LocalServingTest, AStopStringEndsTheTextAndTheCount) {
  ASSERT_TRUE(Make({}).ok());
  const std::string whole = Run(Call("abc", 40))->text[0];
  GenerateCall call = Call("abc", 40);
  call.stop_strings = {whole.substr(9, 3), "0"};
  const auto answer = Run(call);
  const size_t cut = whole.find(call.stop_strings[0]);
  EXPECT_EQ(answer->text[0], whole.substr(0, cut));
  EXPECT_EQ(answer->finished[0], FinishReason::kStop);
  EXPECT_EQ(answer->usage.completion_tokens, static_cast<int32_t>(cut) + 3);
}

TEST_F(LocalServingTest, TheModelsEndOfSequenceEndsTheAnswerUnlessIgnored) {
  ASSERT_TRUE(Make({.end_probability = 1}).ok());
  GenerateCall call = Call("abc", 40);
  auto answer = Run(call);
  EXPECT_TRUE(answer->status.ok()) << answer->status;
  EXPECT_EQ(answer->text[0], "");
  EXPECT_EQ(answer->finished[0], FinishReason::kStop);
  EXPECT_LE(answer->usage.completion_tokens, 1);

  call.min_new_tokens = 5;
  answer = Run(call);
  EXPECT_EQ(answer->text[0].size(), 5u);
  EXPECT_EQ(answer->finished[0], FinishReason::kStop);

  call.min_new_tokens = 0;
  call.ignore_end_of_sequence = true;
  answer = Run(call);
  EXPECT_EQ(answer->finished[0], FinishReason::kLength);
  EXPECT_EQ(answer->usage.completion_tokens, 40);
}

TEST_F(LocalServingTest, ErrorsNameTheField) {
  ASSERT_TRUE(Make({}).ok());
  GenerateCall call = Call("abc");
  call.model = "other";
  auto answer = Run(call);
  EXPECT_FALSE(answer->accepted);
  HttpError error = ToHttpError(answer->status);
  EXPECT_EQ(error.status, 404);
  EXPECT_EQ(error.code, "model_not_found");

  error = ToHttpError(Run(Call(std::string(600, 'x')))->status);
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.code, "context_length_exceeded");
  EXPECT_THAT(error.message,
              ::testing::AllOf(::testing::HasSubstr("512"), ::testing::HasSubstr("600")));
  EXPECT_EQ(ToHttpError(Run(Call(""))->status).param, "prompt");
  call = Call("");
  call.input = std::vector<TokenId>{TokenId{5}, TokenId{257}};
  EXPECT_EQ(ToHttpError(Run(call)->status).param, "prompt");
}

TEST_F(LocalServingTest, WithoutMaxTokensTheContextIsFilled) {
  ASSERT_TRUE(Make({.context = 64}).ok());
  const auto answer = Run(Call("abcd", -1));
  EXPECT_EQ(answer->usage.completion_tokens, 60);
  EXPECT_EQ(answer->finished[0], FinishReason::kLength);
}

TEST_F(LocalServingTest, CancelEndsRunningAndWaitingCallsAndFreesThem) {
  ASSERT_TRUE(Make({.speed_up = 1, .max_running = 1}).ok());
  auto running = std::make_shared<Answer>();
  auto waiting = std::make_shared<Answer>();
  const CallId first = serving_->Start(Call("abc", 500), running);
  // Only then the second: two tokeniser threads may swap calls that come together.
  running->Wait([&] { return running->tokens > 0; });
  const CallId second = serving_->Start(Call("abc", 500), waiting);
  serving_->Cancel(second);
  waiting->WaitForEnd();
  EXPECT_EQ(waiting->status.code(), absl::StatusCode::kCancelled);
  serving_->Cancel(first);
  running->WaitForEnd();
  EXPECT_EQ(running->status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(running->finished.empty()) << "a cancelled choice has no finish reason";
  EXPECT_TRUE(Run(Call("abc", 2))->status.ok());
  serving_->Cancel(first);  // long gone: ignored
}

TEST_F(LocalServingTest, OverdueCallsEndWithDeadlineExceeded) {
  ASSERT_TRUE(Make({.speed_up = 1, .timeout = absl::Milliseconds(50)}).ok());
  const auto answer = Run(Call("abc", 500));
  EXPECT_EQ(answer->status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(LocalServingTest, OverloadIsRefusedAtOnceWithRetryAfter) {
  ASSERT_TRUE(Make({.speed_up = 1, .max_running = 1, .max_live_calls = 2}).ok());
  auto a = std::make_shared<Answer>(), b = std::make_shared<Answer>();
  const CallId first = serving_->Start(Call("abc", 500), a);
  const CallId second = serving_->Start(Call("abc", 500), b);
  const auto refused = Run(Call("abc"));
  EXPECT_EQ(ToHttpError(refused->status).status, 503);
  EXPECT_GT(ToHttpError(refused->status).retry_after_seconds, 0);
  serving_->Cancel(first);
  serving_->Cancel(second);
  a->WaitForEnd();
  b->WaitForEnd();
}

TEST_F(LocalServingTest, DrainFinishesWhatRunsThenRefuses) {
  ASSERT_TRUE(Make({.speed_up = 20}).ok());
  auto answer = std::make_shared<Answer>();
  serving_->Start(Call("abc", 50), answer);
  answer->Wait([&] { return answer->tokens > 0; });
  serving_->Drain(absl::Now() + absl::Minutes(1));
  EXPECT_TRUE(answer->ended);
  EXPECT_TRUE(answer->status.ok()) << answer->status;
  EXPECT_EQ(serving_->state(), ServingState::kDraining);
  EXPECT_EQ(ToHttpError(Run(Call("abc"))->status).status, 503);
}

TEST_F(LocalServingTest, DrainPastItsDeadlineEndsStreamsWithAnError) {
  ASSERT_TRUE(Make({.speed_up = 1}).ok());
  auto answer = std::make_shared<Answer>();
  serving_->Start(Call("abc", 500), answer);
  answer->Wait([&] { return answer->tokens > 0; });
  serving_->Drain(absl::Now());
  EXPECT_TRUE(answer->ended);
  EXPECT_EQ(answer->status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(LocalServingTest, ADeadEngineFailsItsCallsAndTellsTheDaemon) {
  ASSERT_TRUE(Make({.dead = true}).ok());
  for (int i = 0; i < 5; ++i) {
    const auto answer = Run(Call("abc"));
    EXPECT_FALSE(answer->status.ok());
  }
  std::unique_lock lock(mutex_);
  failed_.wait(lock, [this] { return !failure_.empty(); });
  EXPECT_EQ(serving_->state(), ServingState::kFailed);
}

TEST_F(LocalServingTest, ManyCallsFromManyThreadsAllEnd) {
  ASSERT_TRUE(Make({.blocks = 24, .max_waiting = 512}).ok());
  std::vector<std::thread> clients;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([this, client] {
      for (int i = 0; i < 12; ++i) {
        GenerateCall call = Call(std::string(10 + 13 * (i % 4), 'p'), 30, client * 100 + i);
        auto answer = std::make_shared<Answer>();
        const CallId id = serving_->Start(call, answer);
        if (i % 3 == 2) serving_->Cancel(id);
        answer->WaitForEnd();
        if (i % 3 != 2) {
          EXPECT_TRUE(answer->status.ok()) << answer->status;
          EXPECT_EQ(answer->usage.completion_tokens, 30);
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_F(LocalServingTest, WrongSetUpsAreRefused) {
  EXPECT_THAT(std::string(Make({.planner = "best"}).message()), ::testing::HasSubstr("wf_fcfs"));
}

}  // namespace
}  // namespace hexad
