#include "server/metrics/metrics.h"

#include <map>
#include <mutex>
#include <utility>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "server/metrics/model_metrics.h"
#include "server/metrics/process_metrics.h"
#include "server/metrics/text_format.h"

namespace hexad {
namespace {

// Routes are our own patterns; the cap is for the day one is not.
constexpr size_t kMaxRoutes = 256;

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& http_requests =
      prometheus::BuildCounter()
          .Name("hexad_http_requests_total")
          .Help("Requests answered, by route and status.")
          .Register(registry);
  prometheus::Counter& disconnected = prometheus::BuildCounter()
                                          .Name("hexad_disconnected_clients_total")
                                          .Help("Clients gone before their answer ended.")
                                          .Register(registry)
                                          .Add({});
  std::mutex mutex;  // of the maps
  std::map<std::string, std::map<int, prometheus::Counter*>, std::less<>> routes;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<ModelMetrics>> models;
};

Metrics::Metrics(const Options& options) : state_(std::make_unique<State>()) {
  prometheus::BuildGauge()
      .Name("hexad_build_info")
      .Help("The running version, in labels.")
      .Register(state_->registry)
      .Add({{"version", options.version}, {"revision", options.revision}})
      .Set(1);
}

Metrics::~Metrics() = default;

ModelMetrics& Metrics::Model(std::string_view model_name, const ModelMetricsOptions& options) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  auto& model = state_->models[{std::string(model_name), options.engine}];
  if (model == nullptr) model = MakeModelMetrics(model_name, options, state_->registry);
  return *model;
}

void Metrics::OnHttpRequest(std::string_view route, int status) {
  if (status < 100 || status > 599) status = 0;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  auto found = state_->routes.find(route);
  if (found == state_->routes.end()) {
    const bool full = state_->routes.size() >= kMaxRoutes;
    found = state_->routes.try_emplace(full ? "other" : std::string(route)).first;
  }
  prometheus::Counter*& counter = found->second[status];
  if (counter == nullptr) {
    counter = &state_->http_requests.Add(
        {{"route", found->first}, {"status", status == 0 ? "other" : std::to_string(status)}});
  }
  counter->Increment();
}

void Metrics::OnClientDisconnected() { state_->disconnected.Increment(); }

std::string Metrics::Render() {
  std::string text;
  text.reserve(64 << 10);
  AppendFamilies(state_->registry.Collect(), &text);
  AppendFamilies(CollectProcessMetrics(), &text);
  return text;
}

}  // namespace hexad
