#pragma once

// Sends a workload and watches the answers: closed loop (so many at a time) or open loop (at
// arrival times, however long answers take). One thread.
//
// In an open loop the latency of a request counts from the time it should have gone out, so that a
// client that is held up cannot hide the wait (coordinated omission: Tene, "How NOT to measure
// latency").

#include <cstdint>
#include <functional>
#include <vector>

#include "server/bench/request_probe.h"
#include "server/bench/workload.h"
#include "server/client/api.h"

namespace hexad {

struct LoadOptions {
  int64_t requests = 100;       // 0: until the duration is over
  double duration_seconds = 0;  // nothing new goes out after it; 0: no limit
  int64_t concurrency = 8;      // closed loop: at any time. Open loop: at most; 0: no cap
  double rate = 0;              // requests a second; 0: closed loop
  bool poisson = true;
  double timeout_seconds = 600;  // of one request
  bool stream = true;
  uint64_t seed = 1;
  int interrupt_fd = -1;  // readable: nothing new goes out, what is under way is aborted
};

struct LoadProgress {
  double seconds = 0;
  int64_t sent = 0;
  int64_t completed = 0;
  int64_t failed = 0;
  int64_t in_flight = 0;
  int64_t output_tokens = 0;  // of completed requests
};

struct LoadResult {
  std::vector<RequestRecord> records;
  double seconds = 0;  // from the first request to the end of the last
  bool interrupted = false;
};

// `on_progress` is called about twice a second; may be empty.
LoadResult RunLoad(const ApiServer& server, const Workload& workload, const LoadOptions& options,
                   const std::function<void(const LoadProgress&)>& on_progress);

}  // namespace hexad
