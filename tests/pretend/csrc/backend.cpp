// The vendor's collectives (CNCL, MCCL): a torch.distributed back end that hands gloo the host view of each tensor.
//
// Like NCCL and its kin it takes device tensors only. Collectives end before the call returns; sends and receives are
// waited for, as otherwise two ranks that send to each other would block.
#include "pretend.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/utils/pybind.h>

#include <ATen/Functions.h>
#include <ATen/core/ivalue.h>

#include <list>

namespace pretend {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

class DeviceWork final : public c10d::Work {
 public:
  DeviceWork(Tensors outputs, WorkPtr pending, c10d::OpType op)
      : c10d::Work(-1, op), outputs_(std::move(outputs)), pending_(std::move(pending)) {
    if (!pending_) {
      complete();
    }
  }
  bool isCompleted() override { return !pending_ || pending_->isCompleted(); }
  bool isSuccess() const override { return !pending_ || pending_->isSuccess(); }
  std::exception_ptr exception() const override { return pending_ ? pending_->exception() : nullptr; }
  bool wait(std::chrono::milliseconds timeout) override {
    if (pending_) {
      pending_->wait(timeout);
      pending_ = nullptr;
      complete();
    }
    return true;
  }
  void synchronize() override { wait(kNoTimeout); }
  Tensors result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    wait(kNoTimeout);
    return future_;
  }

 private:
  void complete() {
    std::vector<c10::Device> devices;
    for (const at::Tensor& tensor : outputs_) {
      if (tensor.device().type() == kDevice && devices.empty()) {
        devices.push_back(tensor.device());
      }
    }
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), devices);
    future_->markCompleted(c10::IValue(outputs_));
    finish();
  }
  Tensors outputs_;
  WorkPtr pending_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// The host views of one collective's tensors. Where the vendor sends float64 as float32 a view is a narrower copy,
// which `give_back` widens again.
class Views {
 public:
  Tensors& of(const Tensors& tensors) {
    groups_.emplace_back();
    for (const at::Tensor& tensor : tensors) {
      groups_.back().push_back(of(tensor));
    }
    return groups_.back();
  }
  std::vector<Tensors>& of(const std::vector<Tensors>& lists) {
    nested_.emplace_back();
    for (const Tensors& list : lists) {
      nested_.back().push_back(of(list));
    }
    return nested_.back();
  }
  at::Tensor of(const at::Tensor& tensor) {
    TORCH_CHECK(tensor.device().type() == kDevice, text("collective_host_tensor", {c10::str(tensor.device())}));
    at::Tensor view = host_view(tensor);
    if (tensor.scalar_type() != at::kDouble || settings().wide_collectives) {
      return view;
    }
    narrowed_.emplace_back(view, view.to(at::kFloat));
    return narrowed_.back().second;
  }
  void give_back() {
    for (auto& [wide, narrow] : narrowed_) {
      wide.copy_(narrow);
    }
  }

 private:
  std::list<Tensors> groups_;
  std::list<std::vector<Tensors>> nested_;
  std::vector<std::pair<at::Tensor, at::Tensor>> narrowed_;
};

class CollectiveBackend final : public c10d::Backend {
 public:
  CollectiveBackend(c10::intrusive_ptr<c10d::Backend> gloo, std::string name)
      : c10d::Backend(gloo->getRank(), gloo->getSize()), gloo_(std::move(gloo)), name_(std::move(name)) {}

  const std::string getBackendName() const override { return name_; }
#if PRETEND_TORCH(9)
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return gloo_->getBackendOptions(); }
  void setTimeout(std::chrono::milliseconds timeout) override { gloo_->setTimeout(timeout); }
#endif
  void setSequenceNumberForGroup() override { gloo_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return gloo_->getSequenceNumberForGroup(); }

  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override {
    coalescing_ = true;
    coalesced_.clear();
  }
  WorkPtr endCoalescing() override {  // each call in the group has run or is pending: wait for those
    coalescing_ = false;
    Tensors outputs;
    for (auto& work : coalesced_) {
      work->wait();
      for (auto& tensor : work->result()) {
        outputs.push_back(tensor);
      }
    }
    coalesced_.clear();
    return done(outputs, c10d::OpType::COALESCED);
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return run("broadcast", c10d::OpType::BROADCAST, tensors, [&](Views& v) { return gloo_->broadcast(v.of(tensors), options); });
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    auto sum = options;
    const bool mean = as_sum(sum.reduceOp);
    return run("allreduce", c10d::OpType::ALLREDUCE, tensors, [&](Views& v) { return gloo_->allreduce(v.of(tensors), sum); }, mean);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    for (auto& tensor : tensors) {
      Tensors one{tensor};
      allreduce(one, options)->wait();
    }
    return done(tensors, c10d::OpType::ALLREDUCE_COALESCED);
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    auto sum = options;
    const bool mean = as_sum(sum.reduceOp) && options.rootRank == getRank();
    return run("reduce", c10d::OpType::REDUCE, tensors, [&](Views& v) { return gloo_->reduce(v.of(tensors), sum); }, mean);
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    return run("allgather", c10d::OpType::ALLGATHER, flat(outputs), [&](Views& v) { return gloo_->allgather(v.of(outputs), v.of(inputs), options); });
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override {
    return run("allgather", c10d::OpType::_ALLGATHER_BASE, {output}, [&](Views& v) {
      at::Tensor out = v.of(output), in = v.of(input);
      return gloo_->_allgather_base(out, in, options);
    });
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      _allgather_base(outputs[i], inputs[i], options)->wait();
    }
    return done(outputs, c10d::OpType::COALESCED);
  }
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
    return run("gather", c10d::OpType::GATHER, flat(outputs), [&](Views& v) { return gloo_->gather(v.of(outputs), v.of(inputs), options); });
  }
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override {
    return run("scatter", c10d::OpType::SCATTER, outputs, [&](Views& v) { return gloo_->scatter(v.of(outputs), v.of(inputs), options); });
  }
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ReduceScatterOptions& options) override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      at::Tensor joined = at::stack(inputs[i]);
      at::Tensor out = outputs[i].unsqueeze(0);
      _reduce_scatter_base(out, joined, options)->wait();
    }
    return done(outputs, c10d::OpType::REDUCE_SCATTER);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override {
    // All-reduce and keep one's own part: gloo's reduce-scatter knows neither every type nor the mean.
    at::Tensor whole = input.clone();
    Tensors one{whole};
    c10d::AllreduceOptions reduce;
    reduce.reduceOp = options.reduceOp;
    reduce.timeout = options.timeout;
    allreduce(one, reduce)->wait();
    output.copy_(whole.flatten().chunk(getSize())[getRank()].view(output.sizes()));
    return done({output}, c10d::OpType::_REDUCE_SCATTER_BASE);
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) override {
    for (size_t i = 0; i < outputs.size(); ++i) {
      _reduce_scatter_base(outputs[i], inputs[i], options)->wait();
    }
    return done(outputs, c10d::OpType::COALESCED);
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& out_splits, std::vector<int64_t>& in_splits,
                        const c10d::AllToAllOptions& options) override {
    return run("alltoall", c10d::OpType::ALLTOALL_BASE, {output}, [&](Views& v) {
      at::Tensor out = v.of(output), in = v.of(input);
      return gloo_->alltoall_base(out, in, out_splits, in_splits, options);
    });
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override {
    std::vector<int64_t> out_splits, in_splits;
    Tensors outs, ins;
    for (size_t i = 0; i < outputs.size(); ++i) {
      outs.push_back(outputs[i].flatten());
      ins.push_back(inputs[i].flatten());
      out_splits.push_back(outputs[i].numel());
      in_splits.push_back(inputs[i].numel());
    }
    at::Tensor out = at::cat(outs), in = at::cat(ins);
    alltoall_base(out, in, out_splits, in_splits, options)->wait();
    auto parts = out.split_with_sizes(out_splits);
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].copy_(parts[i].view(outputs[i].sizes()));
    }
    return done(outputs, c10d::OpType::ALLTOALL);
  }
  WorkPtr send(Tensors& tensors, int rank, int tag) override {
    Views views;
    return pending(tensors, gloo_->send(views.of(tensors), rank, tag), c10d::OpType::SEND);
  }
  WorkPtr recv(Tensors& tensors, int rank, int tag) override {
    Views views;
    return pending(tensors, gloo_->recv(views.of(tensors), rank, tag), c10d::OpType::RECV);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    Views views;
    return pending(tensors, gloo_->recvAnysource(views.of(tensors), tag), c10d::OpType::RECVANYSOURCE);
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return run("barrier", c10d::OpType::BARRIER, {}, [&](Views&) { return gloo_->barrier(options); });
  }

 private:
  static Tensors flat(const std::vector<Tensors>& lists) {
    Tensors out;
    for (const Tensors& list : lists) {
      out.insert(out.end(), list.begin(), list.end());
    }
    return out;
  }

  // gloo has no mean: asks for the sum instead, and says so.
  static bool as_sum(c10d::ReduceOp& op) {
    const bool mean = op == c10d::ReduceOp::AVG;
    if (mean) {
      op = c10d::ReduceOp::SUM;
    }
    return mean;
  }

  template <typename Body>
  WorkPtr run(const char* function, c10d::OpType type, const Tensors& outputs, Body body, bool mean = false) {
    maybe_fail("collective");
    maybe_fail(function);
    Views views;
    try {
      WorkPtr work = body(views);
      if (work) {
        work->wait();
      }
    } catch (const c10::Error&) {
      throw;
    } catch (const std::exception& error) {  // gloo's own: a peer that is gone, a time-out
      TORCH_CHECK(false, text("collective", {function, error.what()}));
    }
    views.give_back();
    if (mean) {
      for (const at::Tensor& tensor : outputs) {
        host_view(tensor).div_(getSize());
      }
    }
    return done(outputs, type);
  }

  WorkPtr done(const Tensors& outputs, c10d::OpType type) { return pending(outputs, nullptr, type); }
  WorkPtr pending(const Tensors& outputs, WorkPtr work, c10d::OpType type) {
    auto out = c10::make_intrusive<DeviceWork>(outputs, std::move(work), type);
    if (coalescing_) {
      coalesced_.push_back(out);
    }
    return out;
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;
  std::string name_;
  bool coalescing_ = false;
  std::vector<WorkPtr> coalesced_;
};

}  // namespace

void bind_backend(pybind11::module& m) {
  // Made from a gloo back end over the same ranks; Python subclasses it under the vendor's name.
  pybind11::class_<CollectiveBackend, c10::intrusive_ptr<CollectiveBackend>, c10d::Backend>(m, "CollectiveBackend")
      .def(pybind11::init<c10::intrusive_ptr<c10d::Backend>, std::string>());
}

}  // namespace pretend
