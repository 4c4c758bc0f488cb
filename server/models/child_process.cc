#include "server/models/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "server/models/file_io.h"

// The child inherits this process's environment (PATH, proxies, pip's own variables).
extern char** environ;

namespace hexad {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kOutputLimit = 16 << 10;
constexpr size_t kLineLimit = 4096;
constexpr auto kTick = std::chrono::milliseconds(500);

std::vector<std::string> ChildEnvironment(const ChildOptions& options) {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool replaced =
        std::any_of(options.environment.begin(), options.environment.end(), [&](const auto& pair) {
          return text.compare(0, pair.first.size() + 1, pair.first + "=") == 0;
        });
    if (!replaced) entries.push_back(text);
  }
  for (const auto& [name, value] : options.environment) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Collects output, splits lines, keeps the tail.
class Output final {
 public:
  explicit Output(const ChildOptions& options) : options_(options) {}
  void Append(const char* bytes, size_t size) {
    tail_.append(bytes, size);
    if (tail_.size() > kOutputLimit) tail_.erase(0, tail_.size() - kOutputLimit);
    for (size_t i = 0; i < size; ++i) {
      if (bytes[i] != '\n' && bytes[i] != '\r' && line_.size() < kLineLimit) {
        line_ += bytes[i];
      } else {
        FlushLine();
      }
    }
  }
  void FlushLine() {
    if (!line_.empty() && options_.on_line) options_.on_line(line_);
    line_.clear();
  }
  std::string TakeTail() { return std::move(tail_); }

 private:
  const ChildOptions& options_;
  std::string tail_;
  std::string line_;
};

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& argv, const ChildOptions& options,
                            int output_fd) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output_fd, STDERR_FILENO);
  const std::vector<std::string> environment = ChildEnvironment(options);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0].c_str(), &actions, nullptr, Pointers(argv).data(),
                                 Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return FileError(error, "run", argv[0]);
  return pid;
}

int Reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::StatusOr<ChildResult> RunChild(const std::vector<std::string>& argv,
                                     const ChildOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FileError(errno, "make a pipe for", argv[0]);
  FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  absl::StatusOr<pid_t> pid = Spawn(argv, options, write_end.get());
  if (!pid.ok()) return pid.status();
  write_end.Close();
  // The end of the child, not of its output: a grandchild may hold the pipe open.
  FileDescriptor exited(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));

  Output output(options);
  const Clock::time_point deadline = Clock::now() + options.timeout;
  bool open = true;
  bool timed_out = false;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      timed_out = true;
      break;
    }
    pollfd events[2] = {{open ? read_end.get() : -1, POLLIN, 0}, {exited.get(), POLLIN, 0}};
    const auto wait = options.on_tick ? std::min<int64_t>(left, kTick.count()) : left;
    const int ready = ::poll(events, 2, static_cast<int>(std::min<int64_t>(wait, 1 << 30)));
    if (ready < 0 && errno != EINTR) break;
    if (options.on_tick) options.on_tick();
    if ((events[0].revents & (POLLIN | POLLHUP)) != 0) {
      char buffer[4096];
      const ssize_t got = ::read(read_end.get(), buffer, sizeof(buffer));
      if (got > 0) output.Append(buffer, static_cast<size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) open = false;
      continue;  // what was written before the exit is read before the exit is believed
    }
    // Without a pidfd (a kernel before 5.3) the closed pipe is the sign.
    if (events[1].revents != 0 || (exited.get() < 0 && !open)) break;
  }
  output.FlushLine();
  if (timed_out) ::kill(*pid, SIGKILL);
  ChildResult result;
  result.exit_code = Reap(*pid);
  result.output = output.TakeTail();
  if (timed_out) {
    return absl::DeadlineExceededError(
        argv[0] + " was stopped after " +
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(options.timeout).count()) +
        " s; its last output:\n" + result.output);
  }
  return result;
}

}  // namespace hexad
