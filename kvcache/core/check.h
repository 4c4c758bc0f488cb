#pragma once

// HEXAD_CHECK(condition, "what is broken"): for our own invariants only, on in release builds too.
// Never for anything a client, a file or a peer sends: those are Status or an outcome enum.

namespace hexad {

// Prints the failed condition with its place and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const char* message);

}  // namespace hexad

#define HEXAD_CHECK(condition, message)                                \
  do {                                                                 \
    if (!(condition)) [[unlikely]]                                     \
      ::hexad::CheckFailed(__FILE__, __LINE__, #condition, (message)); \
  } while (0)
