#include "server/metrics/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

namespace hexad {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily Single(std::string name, std::string help, MetricType type, double value) {
  ClientMetric metric;
  metric.counter.value = value;
  metric.gauge.value = value;
  return MetricFamily{std::move(name), std::move(help), type, {std::move(metric)}};
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct DirCloser {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

int64_t CountOpenFiles() {
  // Since Linux 6.2 the size of the folder is the number of descriptors.
  struct stat info {};
  if (::stat("/proc/self/fd", &info) == 0 && info.st_size > 0) return info.st_size;
  const std::unique_ptr<DIR, DirCloser> dir(::opendir("/proc/self/fd"));
  if (dir == nullptr) return 0;
  int64_t count = -3;  // ".", ".." and the one that reads
  while (::readdir(dir.get()) != nullptr) ++count;
  return count;
}

}  // namespace

std::vector<MetricFamily> CollectProcessMetrics() {
  std::vector<MetricFamily> families;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    families.push_back(Single("process_cpu_seconds_total", "User and system CPU time.",
                              MetricType::Counter,
                              seconds(usage.ru_utime) + seconds(usage.ru_stime)));
  }
  if (const std::unique_ptr<std::FILE, FileCloser> file(std::fopen("/proc/self/statm", "re"));
      file != nullptr) {
    unsigned long virtual_pages = 0;
    unsigned long resident_pages = 0;
    if (std::fscanf(file.get(), "%lu %lu", &virtual_pages, &resident_pages) == 2) {
      const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
      families.push_back(Single("process_virtual_memory_bytes", "Virtual memory size.",
                                MetricType::Gauge, static_cast<double>(virtual_pages) * page));
      families.push_back(Single("process_resident_memory_bytes", "Resident memory size.",
                                MetricType::Gauge, static_cast<double>(resident_pages) * page));
    }
  }
  families.push_back(Single("process_open_fds", "Open file descriptors.", MetricType::Gauge,
                            static_cast<double>(CountOpenFiles())));
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.push_back(Single("process_max_fds", "Limit of open file descriptors.",
                              MetricType::Gauge, static_cast<double>(limit.rlim_cur)));
  }
  return families;
}

}  // namespace hexad
