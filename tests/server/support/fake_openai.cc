#include "tests/server/support/fake_openai.h"

namespace hexad {

std::string FakeChunk(std::string_view text) {
  return "data: "
         "{\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":"
         "\"" +
         std::string(text) + "\"},\"finish_reason\":null}]}\n\n";
}

std::string FakeFinish(std::string_view reason) {
  return "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" +
         std::string(reason) + "\"}]}\n\n";
}

std::string FakeUsage(int prompt_tokens, int completion_tokens) {
  return "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":" + std::to_string(prompt_tokens) +
         ",\"completion_tokens\":" + std::to_string(completion_tokens) +
         ",\"prompt_tokens_details\":{\"cached_tokens\":3}}}\n\n";
}

void BeginStream(FakeConnection& connection) {
  connection.SendHead(200, {{"Content-Type", "text/event-stream"}});
}

void AnswerStream(FakeConnection& connection, const std::vector<std::string>& pieces) {
  BeginStream(connection);
  connection.Send(": ping\n\n");
  for (const std::string& piece : pieces) connection.Send(FakeChunk(piece));
  connection.Send(FakeFinish("stop"));
  connection.Send(FakeUsage(10, static_cast<int>(pieces.size())));
  connection.Send(kFakeDone);
}

std::string FakeError(std::string_view message) {
  return "{\"error\":{\"message\":\"" + std::string(message) +
         "\",\"type\":\"server_error\",\"param\":null,\"code\":null}}";
}

}  // namespace hexad
