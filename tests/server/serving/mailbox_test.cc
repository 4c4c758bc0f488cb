#include "server/serving/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace hexad {
namespace {

TEST(MailboxTest, KeepsTheOrderOfEachPosterAndLosesNothing) {
  Mailbox<std::pair<int, int>> mailbox;
  constexpr int kPosters = 4, kMessages = 2000;
  std::vector<std::thread> posters;
  for (int poster = 0; poster < kPosters; ++poster) {
    posters.emplace_back([&mailbox, poster] {
      for (int i = 0; i < kMessages; ++i) mailbox.Post({poster, i});
    });
  }
  std::vector<int> next(kPosters, 0);
  int total = 0;
  std::vector<std::pair<int, int>> messages;
  while (total < kPosters * kMessages && mailbox.Take(&messages)) {
    for (const auto& [poster, i] : messages) {
      EXPECT_EQ(i, next[poster]++);
      ++total;
    }
  }
  for (std::thread& poster : posters) poster.join();
  EXPECT_EQ(total, kPosters * kMessages);
}

TEST(MailboxTest, CloseDeliversWhatWasPosted) {
  Mailbox<int> mailbox;
  mailbox.Post(7);
  mailbox.Close();
  std::vector<int> messages;
  EXPECT_TRUE(mailbox.Take(&messages));
  EXPECT_EQ(messages, std::vector<int>{7});
  EXPECT_FALSE(mailbox.Take(&messages));
}

TEST(MailboxTest, WakesAtTheGivenTime) {
  Mailbox<int> mailbox;
  std::vector<int> messages;
  EXPECT_TRUE(mailbox.Take(&messages, absl::FromChrono(std::chrono::system_clock::now())));
  EXPECT_TRUE(messages.empty());
}

}  // namespace
}  // namespace hexad
