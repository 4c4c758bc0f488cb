#pragma once

// Tokens per minute of each tenant, as a bucket that refills steadily and holds one minute's worth.
//
// A call is let in while the bucket is not empty and pays afterwards for what it really cost:
// uncached prompt tokens and output tokens. So a tenant may overdraw by its running calls, and
// waits until the debt is paid. Thread-safe.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hexad {

class TenantQuotas final {
 public:
  using Limits =
      std::map<std::string, std::optional<int64_t>>;  // tokens per minute; none: unlimited

  explicit TenantQuotas(Limits limits) : limits_(std::move(limits)) {}

  // ResourceExhausted, with the seconds to wait, while the tenant's bucket is empty.
  absl::Status Admit(const std::string& tenant, absl::Time now);
  void Charge(const std::string& tenant, int64_t tokens, absl::Time now);
  // New limits; what was used stays used.
  void Replace(Limits limits);

 private:
  struct Bucket {
    double tokens = 0;
    absl::Time updated;
  };
  // The tenant's own limit, else that of "default".
  std::optional<int64_t> LimitOf(const std::string& tenant) const;
  Bucket& Refill(const std::string& tenant, int64_t limit, absl::Time now);

  std::mutex mutex_;
  Limits limits_;
  absl::flat_hash_map<std::string, Bucket> buckets_;  // of tenants with keys: as many as are known
};

}  // namespace hexad
