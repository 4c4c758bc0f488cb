#pragma once

// hexad.v1.GenerateRequest as a GenerateCall: the wire type ends here.

#include <string>

#include "absl/status/statusor.h"
#include "server/serving/generate.h"

namespace hexad::v1 {
class GenerateRequest;
}

namespace hexad {

// What came beside the message, as metadata; empty where absent.
struct CallMetadata {
  std::string request_id;
  std::string workflow, call, agent, parents;
};

// All but the tenant. Every range is checked; an error names its field (WithParam).
absl::StatusOr<GenerateCall> ParseGenerateRequest(const v1::GenerateRequest& request,
                                                  const CallMetadata& metadata);

}  // namespace hexad
