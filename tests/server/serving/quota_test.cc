#include "server/serving/quota.h"

#include <gtest/gtest.h>

#include "server/status.h"

namespace hexad {
namespace {

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(TenantQuotasTest, ATenantWaitsUntilItsDebtIsPaid) {
  TenantQuotas quotas({{"a", 600}, {"default", std::nullopt}});
  EXPECT_TRUE(quotas.Admit("a", At(0)).ok());
  quotas.Charge("a", 700, At(0));  // 100 in debt; 10 tokens a second come back
  const absl::Status refused = quotas.Admit("a", At(1));
  EXPECT_EQ(ToHttpError(refused).status, 429);
  EXPECT_EQ(ToHttpError(refused).retry_after_seconds, 10);
  EXPECT_TRUE(quotas.Admit("b", At(1)).ok()) << "others are not limited";
  EXPECT_TRUE(quotas.Admit("a", At(11)).ok());
}

TEST(TenantQuotasTest, ABucketHoldsOneMinute) {
  TenantQuotas quotas({{"default", 60}});
  quotas.Charge("a", 0, At(0));
  quotas.Charge("a", 61, At(3600));
  EXPECT_FALSE(quotas.Admit("a", At(3600)).ok());
}

TEST(TenantQuotasTest, ZeroLetsNobodyIn) {
  TenantQuotas quotas({{"default", 0}});
  EXPECT_EQ(quotas.Admit("a", At(0)).code(), absl::StatusCode::kResourceExhausted);
  quotas.Replace({});
  EXPECT_TRUE(quotas.Admit("a", At(0)).ok());
}

}  // namespace
}  // namespace hexad
