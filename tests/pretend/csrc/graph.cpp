// Graphs: what runs between begin() and end() is kept, and replay() runs it again on the same tensors.
//
// On a chip the captured work is not done at once; here it is, as every call of this device. The results of a replay
// land in the tensors of the capture, as on a chip.
#include "pretend.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <functional>

namespace pretend {
namespace {

using Step = std::function<void()>;
std::mutex recording_mutex;
std::vector<Step>* recording = nullptr;

void each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& use) {
  if (value.isTensor() && value.toTensor().defined()) {
    use(value.toTensor());
  } else if (value.isTensorList()) {
    for (const c10::IValue& item : value.toListRef()) {
      use(item.toTensor());
    }
  }
}

std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> out;
  for (const c10::IValue& value : values) {
    each_tensor(value, [&](const at::Tensor& tensor) { out.push_back(tensor); });
  }
  return out;
}

class Graph {
 public:
  void begin() {
    std::lock_guard<std::mutex> lock(recording_mutex);
    steps_.clear();
    recording = &steps_;
  }
  void end() {
    std::lock_guard<std::mutex> lock(recording_mutex);
    recording = nullptr;
  }
  void replay() {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (const Step& step : steps_) {
      step();
    }
  }
  void reset() { steps_.clear(); }

 private:
  std::vector<Step> steps_;
};

}  // namespace

bool capturing() {
  std::lock_guard<std::mutex> lock(recording_mutex);
  return recording != nullptr;
}

void capture(Step step) {
  std::lock_guard<std::mutex> lock(recording_mutex);
  if (recording != nullptr) {
    recording->push_back(std::move(step));
  }
}

void capture_operator(const c10::OperatorHandle& op, std::vector<c10::IValue> inputs, std::vector<c10::IValue> outputs) {
  capture([op, inputs, results = tensors_of(outputs)]() {
    torch::jit::Stack stack = inputs;
    run_on_host(op, &stack);
    auto fresh = tensors_of(stack);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!fresh[i].is_same(results[i]) && !fresh[i].is_alias_of(results[i])) {
        host_view(results[i]).copy_(host_view(fresh[i]));
      }
    }
  });
}

void bind_graph(pybind11::module& m) {
  pybind11::class_<Graph>(m, "Graph")
      .def(pybind11::init<>())
      .def("begin", &Graph::begin)
      .def("end", &Graph::end)
      .def("replay", &Graph::replay, pybind11::call_guard<pybind11::gil_scoped_release>())
      .def("reset", &Graph::reset);
}

}  // namespace pretend
