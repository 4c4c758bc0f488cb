#include "server/openai/openai_routes.h"

#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/openai/answer_sinks.h"
#include "server/openai/json_writer.h"
#include "server/status.h"

namespace hexad {
namespace {

struct Api {
  Serving* serving = nullptr;
  OpenAiOptions options;
};

std::string NewAnswerId(AnswerKind kind) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return absl::StrFormat("%s-%016x%016x", kind == AnswerKind::kChat ? "chatcmpl" : "cmpl", random(),
                         random());
}

int64_t Now(const Api& api) {
  return api.options.now_unix ? api.options.now_unix() : absl::ToUnixSeconds(absl::Now());
}

void SendError(const absl::Status& status, ResponseWriter* writer) {
  HttpResponse response = ErrorResponse(ToHttpError(status));
  if (response.status == 401) response.headers.emplace_back("www-authenticate", "Bearer");
  writer->Send(std::move(response));
}

absl::StatusOr<std::string> Tenant(const Api& api, const HttpRequest& http) {
  return api.options.authenticate(http.Header("authorization"));
}

// Key first, then the body: strangers cost no parsing.
absl::StatusOr<OpenAiRequest> ReadRequest(const Api& api, AnswerKind kind, HttpRequest* http) {
  auto tenant = Tenant(api, *http);
  if (!tenant.ok()) return tenant.status();
  auto request = kind == AnswerKind::kChat
                     ? ParseChatRequest(std::move(http->body), api.options.limits)
                     : ParseCompletionRequest(std::move(http->body), api.options.limits);
  if (!request.ok()) return request.status();
  absl::Status status = ReadWorkflowHeaders(http->headers, &request->call.workflow);
  if (!status.ok()) return status;
  request->call.tenant = *std::move(tenant);
  request->call.request_id = http->request_id;
  return request;
}

void Generate(const Api& api, AnswerKind kind, HttpRequest http, ResponseWriter writer) {
  auto request = ReadRequest(api, kind, &http);
  if (!request.ok()) return SendError(request.status(), &writer);
  GenerateCall& call = request->call;
  AnswerIdentity identity{.kind = kind,
                          .id = NewAnswerId(kind),
                          .created_unix = Now(api),
                          .model = call.model,
                          .system_fingerprint = api.options.system_fingerprint,
                          .with_logprobs = call.sampling.num_logprobs >= 0,
                          .with_token_ids = request->return_token_ids,
                          .include_usage = request->stream && request->include_usage};
  std::shared_ptr<TokenSink> sink;
  if (request->stream) {
    sink = std::make_shared<StreamSink>(std::move(identity), call.num_choices,
                                        api.options.stream_keep_alive, writer);
  } else {
    sink = std::make_shared<WholeSink>(std::move(identity), call.num_choices, writer);
  }
  // Tokens may flow before Start returns; a client that left before OnClose is told at once.
  const CallId id = api.serving->Start(std::move(call), std::move(sink));
  writer.OnClose([serving = api.serving, id](CloseReason) { serving->Cancel(id); });
}

void WriteModel(const ModelInfo& model, JsonWriter* json) {
  json->BeginObject();
  json->Key("id").String(model.name).Key("object").String("model");
  json->Key("created").Int(model.created_unix).Key("owned_by").String("hexad");
  json->Key("max_model_len").Int(model.max_context_tokens);
  json->EndObject();
}

void ListModels(const Api& api, HttpRequest http, ResponseWriter writer) {
  const auto tenant = Tenant(api, http);
  if (!tenant.ok()) return SendError(tenant.status(), &writer);
  HttpResponse response;
  JsonWriter json(&response.body);
  json.BeginObject().Key("object").String("list").Key("data").BeginArray();
  for (const ModelInfo& model : api.serving->ListModels()) WriteModel(model, &json);
  json.EndArray().EndObject();
  writer.Send(std::move(response));
}

void GetModel(const Api& api, HttpRequest http, ResponseWriter writer) {
  const auto tenant = Tenant(api, http);
  if (!tenant.ok()) return SendError(tenant.status(), &writer);
  for (const ModelInfo& model : api.serving->ListModels()) {
    if (model.name != http.parameter) continue;
    HttpResponse response;
    JsonWriter json(&response.body);
    WriteModel(model, &json);
    writer.Send(std::move(response));
    return;
  }
  SendError(WithParam(absl::NotFoundError(absl::StrFormat("The model '%s' does not exist.",
                                                          http.parameter.substr(0, 256))),
                      "model"),
            &writer);
}

void SendState(bool good, std::string_view word, ResponseWriter writer) {
  HttpResponse response;
  response.status = good ? 200 : 503;
  JsonWriter json(&response.body);
  json.BeginObject().Key("status").String(word).EndObject();
  if (!good) response.headers.emplace_back("retry-after", "1");
  writer.Send(std::move(response));
}

void Ready(const Api& api, HttpRequest, ResponseWriter writer) {
  switch (api.serving->state()) {
    case ServingState::kStarting:
      return SendState(false, "starting", std::move(writer));
    case ServingState::kReady:
      return SendState(true, "ok", std::move(writer));
    case ServingState::kDraining:
      return SendState(false, "draining", std::move(writer));
    case ServingState::kFailed:
      return SendState(false, "failed", std::move(writer));
  }
}

// Restarting helps a daemon that failed, not one that loads or drains.
void Live(const Api& api, HttpRequest, ResponseWriter writer) {
  const bool good = api.serving->state() != ServingState::kFailed;
  SendState(good, good ? "ok" : "failed", std::move(writer));
}

void Version(const Api& api, HttpRequest, ResponseWriter writer) {
  HttpResponse response;
  JsonWriter json(&response.body);
  json.BeginObject().Key("version").String(api.options.version).EndObject();
  writer.Send(std::move(response));
}

void Metrics(const Api& api, HttpRequest http, ResponseWriter writer) {
  if (api.options.metrics_need_key) {
    const auto tenant = Tenant(api, http);
    if (!tenant.ok()) return SendError(tenant.status(), &writer);
  }
  writer.Send(
      {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = api.options.metrics()});
}

}  // namespace

void AddOpenAiRoutes(Serving* serving, OpenAiOptions options, Router* router) {
  const bool has_metrics = static_cast<bool>(options.metrics);
  const auto api = std::make_shared<const Api>(Api{serving, std::move(options)});
  const auto get = [&](std::string pattern,
                       void (*handler)(const Api&, HttpRequest, ResponseWriter)) {
    router->Add({.method = "GET",
                 .pattern = std::move(pattern),
                 .handler = [api, handler](HttpRequest http, ResponseWriter writer) {
                   handler(*api, std::move(http), std::move(writer));
                 }});
  };
  const auto post = [&](std::string pattern, AnswerKind kind) {
    router->Add({.method = "POST",
                 .pattern = std::move(pattern),
                 .handler =
                     [api, kind](HttpRequest http, ResponseWriter writer) {
                       Generate(*api, kind, std::move(http), std::move(writer));
                     },
                 .json_body = true});
  };
  post("/v1/chat/completions", AnswerKind::kChat);
  post("/v1/completions", AnswerKind::kCompletion);
  get("/v1/models", ListModels);
  get("/v1/models/{id}", GetModel);
  get("/health", Ready);
  get("/ready", Ready);
  get("/live", Live);
  get("/version", Version);
  if (has_metrics) get("/metrics", Metrics);
}

}  // namespace hexad
