#include "server/http/request_parser.h"

#include <gtest/gtest.h>

#include <utility>

namespace hexad {
namespace {

using State = RequestParser::State;

struct Parsed {
  State state = State::kNeedMore;
  HttpError error;
  HttpRequest request;
  std::string rest;
};

// Feeds `input` in pieces of `step` bytes.
Parsed Parse(std::string_view input, size_t step, size_t max_header = 4096,
             size_t max_body = 1000) {
  RequestParser parser(max_header, max_body);
  Parsed parsed;
  std::string buffer;
  while (parsed.state != State::kDone && parsed.state != State::kFailed) {
    size_t consumed = 0;
    parsed.state = parser.Feed(buffer, &consumed);
    buffer.erase(0, consumed);
    if (parsed.state == State::kNeedMore) {
      if (input.empty()) break;
      buffer.append(input.substr(0, step));
      input.remove_prefix(std::min(step, input.size()));
    }
  }
  if (parsed.state == State::kDone) parsed.request = parser.TakeRequest();
  parsed.error = parser.error();
  parsed.rest = buffer + std::string(input);
  return parsed;
}

TEST(RequestParserTest, EverySplitGivesTheSameRequest) {
  const std::string input =
      "\r\nPOST /v1/x?y=1 HTTP/1.1\r\nHost: h\r\nContent-TYPE: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n5;ext=1\r\ndefgh\r\n0\r\nTrailer: t\r\n\r\nGET /next";
  for (size_t step = 1; step <= input.size(); ++step) {
    const Parsed parsed = Parse(input, step);
    ASSERT_EQ(parsed.state, State::kDone) << step << " " << parsed.error.message;
    EXPECT_EQ(parsed.request.method, "POST");
    EXPECT_EQ(parsed.request.path, "/v1/x");
    EXPECT_EQ(parsed.request.query, "y=1");
    EXPECT_EQ(parsed.request.body, "abcdefgh");
    EXPECT_EQ(parsed.request.Header("content-type"), "application/json");
    EXPECT_TRUE(parsed.request.keep_alive);
    EXPECT_EQ(parsed.rest, "GET /next");
  }
}

TEST(RequestParserTest, KeepAliveFollowsVersionAndHeader) {
  EXPECT_TRUE(Parse("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 99).request.keep_alive);
  EXPECT_FALSE(
      Parse("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 99).request.keep_alive);
  EXPECT_FALSE(Parse("GET / HTTP/1.0\r\n\r\n", 99).request.keep_alive);
  EXPECT_TRUE(Parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 99).request.keep_alive);
}

TEST(RequestParserTest, RefusalsHaveTheirStatus) {
  const std::string post = "POST / HTTP/1.1\r\nHost: h\r\n";
  const std::pair<std::string, int> cases[] = {
      {std::string("\x16\x03\x01\x02", 4), 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},                           // no host
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},     // two
      {"GET / HTTP/1.1\r\nHost: h\r\nbad header\r\n\r\n", 400},  // no colon
      {"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},               // space before it
      {"GET /\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {post + "Content-Length: abc\r\n\r\n", 400},
      {post + "Content-Length: -1\r\n\r\n", 400},
      {post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
      {post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {post + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
      {post + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 415},
      {post + "Expect: magic\r\nContent-Length: 1\r\n\r\nx", 417},
      {post + "Content-Length: 1001\r\n\r\n", 413},
      {post + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n", 413},
      {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(20000, 'e'), 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n0\r\nT: " + std::string(20000, 'e'), 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(5000, 'x') + "\r\n\r\n", 431},
      {"GET /" + std::string(5000, 'x'), 431},
  };
  for (const auto& [input, status] : cases) {
    for (const size_t step : {size_t{1}, size_t{7}, input.size()}) {
      const Parsed parsed = Parse(input, step);
      EXPECT_EQ(parsed.state, State::kFailed) << input.substr(0, 100);
      EXPECT_EQ(parsed.error.status, status) << input.substr(0, 100) << parsed.error.message;
    }
  }
}

TEST(RequestParserTest, BodyUpToTheLimit) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
  EXPECT_EQ(Parse(head + std::string(1000, 'b'), 64).request.body, std::string(1000, 'b'));
  EXPECT_EQ(Parse(head + std::string(999, 'b'), 64).state, State::kNeedMore);
}

}  // namespace
}  // namespace hexad
