// One boxed kernel for every operator: the CPU's kernel on CPU tensors that share the device tensors' memory.
//
// On the way in each device tensor becomes a CPU tensor over the same bytes. On the way out a tensor that came in is
// given back itself (its sizes and storage brought up to date, as `resize_` or `out=` change them), a view of one
// becomes a view of the device's storage, and new memory, which was the device's from the start (see host.cpp), changes
// its label. Nothing is copied.
#include "pretend.h"

#include <ATen/Functions.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace pretend {
namespace {

// Operators that take CPU tensors of any size beside device ones, as on CUDA (indices, lengths, copies, storages).
const std::unordered_set<std::string>& mixed_operators() {
  static const std::unordered_set<std::string> names{
      "aten::index", "aten::_unsafe_index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_",
      "aten::_unsafe_index_put", "aten::_ctc_loss", "aten::_ctc_loss_backward", "aten::_copy_from",
      "aten::_copy_from_and_resize", "aten::copy_", "aten::_foreach_copy_", "aten::set_", "aten::is_set_to",
      "aten::_pack_padded_sequence", "aten::_fused_adam_", "aten::_fused_adamw_", "aten::_fused_sgd_"};
  return names;
}

class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : op_(op), stack_(stack), name_(op.operator_name().name), arguments_(op.schema().arguments().size()) {}

  void run() {
    device_ = find_device();
    const size_t begin = stack_->size() - arguments_;
    std::vector<c10::IValue> captured;
    if (capturing()) {
      captured.assign(stack_->begin() + static_cast<int64_t>(begin), stack_->end());
    }
    for (size_t i = begin; i < stack_->size(); ++i) {
      (*stack_)[i] = in((*stack_)[i]);
    }
    {
      RandomSource random(*this, begin);
      HostKernel scope(device_);
      at::AutoDispatchBelowADInplaceOrView below_autograd;
      op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_);
    }
    for (auto& pair : tensors_) {
      bring_up_to_date(pair.second.first, pair.second.second);
    }
    const size_t results = op_.schema().returns().size();
    for (size_t i = stack_->size() - results; i < stack_->size(); ++i) {
      (*stack_)[i] = out((*stack_)[i]);
    }
    if (!captured.empty()) {
      capture_operator(op_, std::move(captured), {stack_->end() - static_cast<int64_t>(results), stack_->end()});
    }
  }

 private:
  // Random operators draw from the device's generator: by argument where they take one, else by lending its numbers to
  // the CPU's default generator for this call.
  struct RandomSource {
    RandomSource(Call& call, size_t begin) {
      const auto& arguments = call.op_.schema().arguments();
      bool takes_one = false;
      for (size_t i = 0; i < arguments.size(); ++i) {
        const auto& type = *arguments[i].type();
        const bool generator = type.kind() == c10::TypeKind::GeneratorType ||
            (type.kind() == c10::TypeKind::OptionalType && type.containedType(0)->kind() == c10::TypeKind::GeneratorType);
        if (generator) {
          takes_one = true;
          auto& slot = (*call.stack_)[begin + i];
          slot = host_generator(slot.isNone() ? std::nullopt : slot.to<std::optional<at::Generator>>(), call.device_);
        }
      }
      if (!takes_one && call.op_.hasTag(at::Tag::nondeterministic_seeded)) {
        lent_ = at::globalContext().defaultGenerator(c10::Device(c10::kCPU));
        auto drawn = host_generator(std::nullopt, call.device_);
        std::lock_guard<std::mutex> lock(lent_.mutex());
        before_ = lent_.get_state();
        lent_.set_state(drawn.get_state());
      }
    }
    ~RandomSource() {
      if (lent_.defined()) {
        std::lock_guard<std::mutex> lock(lent_.mutex());
        lent_.set_state(before_);
      }
    }
    at::Generator lent_;
    at::Tensor before_;
  };

  // The device that the operator runs on; an error where its tensors are on two (CPU scalars may mix).
  int find_device() {
    std::optional<c10::Device> found;
    const bool mixes = mixed_operators().count(name_) != 0;
    int named = -1;
    auto look = [&](const at::Tensor& tensor) {
      if (!tensor.defined() || (tensor.device().is_cpu() && (tensor.dim() == 0 || mixes)) || (found && mixes)) {
        return;
      }
      TORCH_CHECK(!found || *found == tensor.device(), "Expected all tensors to be on the same device, but found at least two devices, ",
                  *found, " and ", tensor.device(), "!");
      found = tensor.device();
    };
    for (const c10::IValue& value : torch::jit::last(*stack_, arguments_)) {
      if (value.isTensor()) {
        look(value.toTensor());
      } else if (value.isTensorList() || value.isOptionalTensorList()) {
        for (const c10::IValue& item : value.toListRef()) {
          if (item.isTensor()) {
            look(item.toTensor());
          }
        }
      } else if (value.isDevice() && value.toDevice().type() == kDevice) {
        named = value.toDevice().index();
      }
    }
    const int index = found && found->type() == kDevice ? found->index() : named >= 0 ? named : current_device();
    check_index(index, "bad_ordinal");
    return index;
  }

  c10::IValue in(const c10::IValue& value) {
    if (value.isTensor()) {
      return in(value.toTensor());
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const c10::IValue& item : value.toListRef()) {
        list.push_back(in(item.toTensor()));
      }
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& item : value.toListRef()) {
        list.push_back(item.isNone() ? std::nullopt : std::optional<at::Tensor>(in(item.toTensor())));
      }
      return list;
    }
    if (value.isStorage() && value.toStorage().device_type() == kDevice) {
      return host_storage(value.toStorage());
    }
    if (value.isDevice() && value.toDevice().type() == kDevice) {
      return c10::Device(c10::kCPU);
    }
    return value;
  }

  at::Tensor in(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != kDevice) {
      host_inputs_.insert(tensor.unsafeGetTensorImpl());
      return tensor;
    }
    for (auto& pair : tensors_) {
      if (pair.second.first.is_same(tensor)) {
        return pair.second.second;
      }
    }
    at::Tensor view = view_over(host_storage(tensor.storage()), c10::DispatchKey::CPU, tensor);
    tensors_.emplace(view.unsafeGetTensorImpl(), std::make_pair(tensor, view));
    return view;
  }

  c10::IValue out(const c10::IValue& value) {
    if (value.isTensor()) {
      return out(value.toTensor());
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const c10::IValue& item : value.toListRef()) {
        list.push_back(out(item.toTensor()));
      }
      return list;
    }
    return value;
  }

  at::Tensor out(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() == kDevice || host_inputs_.count(tensor.unsafeGetTensorImpl()) != 0) {
      return tensor;
    }
    auto came_in = tensors_.find(tensor.unsafeGetTensorImpl());
    return came_in != tensors_.end() ? came_in->second.first
                                     : view_over(device_storage(tensor.storage()), c10::DispatchKey::PrivateUse1, tensor);
  }

  static at::Tensor view_over(c10::Storage storage, c10::DispatchKey key, const at::Tensor& like) {
    TORCH_CHECK_NOT_IMPLEMENTED(like.layout() == at::kStrided && !like.is_quantized(),
                                "the device has no kernels for ", like.layout(), like.is_quantized() ? " quantized" : "", " tensors");
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
    auto* impl = made.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
    impl->_set_conj(like.is_conj());
    impl->_set_neg(like.is_neg());
    if (like.unsafeGetTensorImpl()->is_wrapped_number()) {
      impl->set_wrapped_number(true);
    }
    return made;
  }

  c10::Storage host_storage(const c10::Storage& storage) {
    auto& pair = storages_[storage.unsafeGetStorageImpl()];
    if (!pair.second) {
      pair.first = storage;
      pair.second = c10::Storage(c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
          c10::DataPtr(const_cast<void*>(storage.data()), c10::Device(c10::kCPU)), switching_allocator(), storage.resizable()));
    }
    return pair.second;
  }

  // The device storage for a CPU storage: the one it stands for, or a new one that takes its memory over.
  c10::Storage device_storage(const c10::Storage& storage) {
    for (auto& entry : storages_) {
      if (entry.second.second.is_alias_of(storage)) {
        return entry.second.first;
      }
    }
    c10::Storage made(c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), storage.nbytes(), take_memory(storage), device_allocator(), /*resizable=*/true));
    storages_[made.unsafeGetStorageImpl()] = {made, storage};
    return made;
  }

  c10::DataPtr take_memory(const c10::Storage& storage) {
    const c10::Device device(kDevice, static_cast<c10::DeviceIndex>(device_));
    if (storage.data_ptr().get_deleter() == device_deleter()) {
      c10::DataPtr taken = storage.set_data_ptr(c10::DataPtr(const_cast<void*>(storage.data()), c10::Device(c10::kCPU)));
      taken.unsafe_set_device(device);
      return taken;
    }
    // Memory the kernel did not take on its own thread: host memory, to be copied.
    c10::DataPtr fresh = allocate_on(device_, storage.nbytes());
    if (storage.nbytes() != 0) {
      std::memcpy(fresh.mutable_get(), storage.data(), storage.nbytes());
    }
    return fresh;
  }

  void bring_up_to_date(const at::Tensor& tensor, const at::Tensor& view) {
    auto* impl = tensor.unsafeGetTensorImpl();
    auto& pair = storages_[tensor.storage().unsafeGetStorageImpl()];
    if (pair.second && pair.second.is_alias_of(view.storage())) {
      c10::StorageImpl* device = pair.first.unsafeGetStorageImpl();
      const c10::StorageImpl* host = pair.second.unsafeGetStorageImpl();
      if (host->data() != device->data() || host->nbytes() != device->nbytes()) {  // resized
        device->set_data_ptr_noswap(take_memory(pair.second));
        device->set_nbytes(host->nbytes());
      }
    } else {  // `set_`
      impl->set_storage_keep_dtype(device_storage(view.storage()));
    }
    if (tensor.sizes() != view.sizes() || tensor.strides() != view.strides() || tensor.storage_offset() != view.storage_offset()) {
      impl->set_sizes_and_strides(view.sizes(), view.strides(), view.storage_offset());
    }
  }

  const c10::OperatorHandle op_;
  torch::jit::Stack* stack_;
  const std::string name_;
  const size_t arguments_;
  int device_ = 0;
  std::unordered_set<c10::TensorImpl*> host_inputs_;  // CPU tensors among the arguments
  std::unordered_map<c10::TensorImpl*, std::pair<at::Tensor, at::Tensor>> tensors_;         // view -> (device, view)
  std::unordered_map<c10::StorageImpl*, std::pair<c10::Storage, c10::Storage>> storages_;  // device -> (device, CPU)
};

std::string base_name(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  const size_t colons = name.find("::");
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

// The vendor's way with operators it lacks: an error in strict mode, else one warning an operator, and the CPU.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack, const char* wording) {
  static std::mutex mutex;
  static auto* warned = new std::set<std::string>();
  const std::string& name = op.operator_name().name;
  if (settings().strict) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, text("strict", {name}));
  }
  bool first = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    first = warned->insert(name).second;
  }
  if (first) {
    TORCH_WARN(text(wording, {name}));
  }
  at::native::cpu_fallback(op, stack);
}

}  // namespace

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string base = base_name(op);
  const auto& unsupported = settings().unsupported;
  if (std::find(unsupported.begin(), unsupported.end(), base) != unsupported.end()) {
    return fall_back(op, stack, "fallback");
  }
  enter_runtime();
  if (!settings().failures.empty()) {
    try {
      maybe_fail(base);
      maybe_fail("launch");
    } catch (const c10::Error&) {
      if (!settings().rescue) {
        throw;
      }
      return fall_back(op, stack, "rescue");
    }
  }
  TORCH_CHECK_NOT_IMPLEMENTED(op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU), "Could not run '", op.operator_name(),
      "' with arguments from the '", c10::DeviceTypeName(kDevice, true), "' backend.");
  Call(op, stack).run();
}

void run_as(const char* name, torch::jit::Stack* stack) {
  Call(c10::Dispatcher::singleton().findSchemaOrThrow(name, ""), stack).run();
}

}  // namespace pretend

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&pretend::run_on_host>()); }

namespace {
// Newer releases of torch have this for every device; before, each plugin brought its own.
struct Autograd {
  Autograd() {
    constexpr auto key = c10::DispatchKey::AutogradPrivateUse1;
    if (!c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(key)) {
      static torch::Library library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
      library.fallback(torch::CppFunction::makeFallthrough());
    }
  }
} autograd;
}  // namespace
