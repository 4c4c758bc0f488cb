#pragma once

// Pieces of a fake OpenAI-compatible server, for the handlers of FakeHttpServer.

#include <string>
#include <string_view>
#include <vector>

#include "tests/server/support/fake_http_server.h"

namespace hexad {

inline constexpr char kFakeModels[] = R"({"object":"list","data":[{"id":"fake-model"}]})";

// One event of a stream. `text` must need no escapes.
std::string FakeChunk(std::string_view text);
std::string FakeFinish(std::string_view reason);
std::string FakeUsage(int prompt_tokens, int completion_tokens);
inline constexpr char kFakeDone[] = "data: [DONE]\n\n";

// 200 and the head of an event stream that ends with the connection.
void BeginStream(FakeConnection& connection);
// A whole good answer of the given pieces, with usage and [DONE].
void AnswerStream(FakeConnection& connection, const std::vector<std::string>& pieces);
std::string FakeError(std::string_view message);

}  // namespace hexad
