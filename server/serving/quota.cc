#include "server/serving/quota.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/status.h"

namespace hexad {

std::optional<int64_t> TenantQuotas::LimitOf(const std::string& tenant) const {
  auto it = limits_.find(tenant);
  if (it == limits_.end()) it = limits_.find("default");
  return it == limits_.end() ? std::nullopt : it->second;
}

TenantQuotas::Bucket& TenantQuotas::Refill(const std::string& tenant, int64_t limit,
                                           absl::Time now) {
  const double full = static_cast<double>(limit);
  Bucket& bucket = buckets_.try_emplace(tenant, Bucket{full, now}).first->second;
  const double minutes = std::max(0.0, absl::ToDoubleMinutes(now - bucket.updated));
  bucket.tokens = std::min(full, bucket.tokens + full * minutes);
  bucket.updated = std::max(bucket.updated, now);
  return bucket;
}

absl::Status TenantQuotas::Admit(const std::string& tenant, absl::Time now) {
  const std::lock_guard lock(mutex_);
  const std::optional<int64_t> limit = LimitOf(tenant);
  if (!limit.has_value()) return absl::OkStatus();
  const Bucket& bucket = Refill(tenant, *limit, now);
  if (bucket.tokens > 0) return absl::OkStatus();
  const double seconds =
      *limit == 0 ? 3600 : 60.0 * (1 - bucket.tokens) / static_cast<double>(*limit);
  const int wait = static_cast<int>(std::min(3600.0, std::ceil(seconds)));
  return WithRetryAfter(
      absl::ResourceExhaustedError(absl::StrFormat(
          "The quota of %d tokens per minute is used up; try again in %d s", *limit, wait)),
      std::max(1, wait));
}

void TenantQuotas::Charge(const std::string& tenant, int64_t tokens, absl::Time now) {
  const std::lock_guard lock(mutex_);
  const std::optional<int64_t> limit = LimitOf(tenant);
  if (!limit.has_value()) return;
  Refill(tenant, *limit, now).tokens -= static_cast<double>(tokens);
}

void TenantQuotas::Replace(Limits limits) {
  const std::lock_guard lock(mutex_);
  limits_ = std::move(limits);
}

}  // namespace hexad
