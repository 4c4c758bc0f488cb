// Any bytes, split anywhere, give the same events as the same bytes at once; decoding them never
// faults. The first byte chooses the split.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "server/client/chat_stream.h"
#include "server/client/sse_parser.h"

namespace {

std::vector<std::string> Events(std::string_view bytes, size_t step) {
  hexad::SseParser parser(4096);
  std::vector<std::string> events;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, step);
    bytes.remove_prefix(part.size());
    if (!parser.Feed(part, [&](const hexad::SseEvent& event) {
          events.push_back(event.type + "|" + event.data);
        })) {
      break;
    }
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::vector<std::string> whole = Events(bytes, bytes.size() + 1);
  if (Events(bytes, data[0] % 16 + 1) != whole) std::abort();
  hexad::ChatDecoder decoder;
  for (const std::string& event : whole) decoder.Event(event.substr(event.find('|') + 1));
  hexad::ErrorMessageOf(bytes);
  return 0;
}
