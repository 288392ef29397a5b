// Operators that are not the CPU's kernel of the same name: allocation, views, copies, convolution, recurrent cells.
#include "pretend.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/TensorShape.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

namespace pretend {
namespace {

using at::Tensor;
using std::optional;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

int device_for(optional<at::Device> device) {
  const int index = device && device->has_index() ? device->index() : current_device();
  check_index(index, "bad_ordinal");
  return index;
}

struct OnDevice {  // the device that an allocation is made on, for this scope
  explicit OnDevice(int index) : previous(current_device()) { set_current_device(index); }
  ~OnDevice() { restore_device(previous); }
  int previous;
};

void check_factory(optional<at::Layout> layout, optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(at::kStrided) == at::kStrided, "the device has no kernels for ", *layout, " tensors");
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

Tensor empty(c10::SymIntArrayRef size, optional<at::ScalarType> dtype, optional<at::Layout> layout, optional<at::Device> device,
             optional<bool> pin_memory, optional<at::MemoryFormat> format) {
  check_factory(layout, pin_memory);
  OnDevice scope(device_for(device));
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), device_allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, optional<at::ScalarType> dtype, optional<at::Layout> layout,
                     optional<at::Device> device, optional<bool> pin_memory) {
  check_factory(layout, pin_memory);
  OnDevice scope(device_for(device));
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), device_allocator(), kKeys,
                                           c10::dtype_or_default(dtype));
}

Tensor view(const Tensor& self, c10::SymIntArrayRef size) { return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size)); }

Tensor as_strided(const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride, optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                                           offset ? optional<int64_t>(offset->guard_int(__FILE__, __LINE__)) : std::nullopt);
}

Tensor reshape_alias(const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

Tensor copy_from(const Tensor& self, const Tensor& dst, bool) {
  maybe_fail("memcpy");
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  host_view(dst).copy_(host_view(self));
  if (capturing()) {
    capture([self, dst]() { host_view(dst).copy_(host_view(self)); });
  }
  return dst;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

void record_stream(Tensor&, at::Stream) {}

bool no_cudnn_ctc(const Tensor&, const Tensor&, at::IntArrayRef, at::IntArrayRef, int64_t) { return false; }
bool no_cudnn_ctc_tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t) { return false; }

// torch sends a device's convolutions to these two; their arguments are those of the plain operators.
void convolution(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  maybe_fail("convolution");
  run_as("aten::convolution", stack);
}

void convolution_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  maybe_fail("convolution_backward");
  const size_t begin = stack->size() - op.schema().arguments().size();
  const int64_t channels = (*stack)[begin].toTensor().size(1);
  stack->insert(stack->begin() + static_cast<int64_t>(begin) + 3, c10::IValue(std::vector<int64_t>{channels}));  // bias_sizes
  run_as("aten::convolution_backward", stack);
}

// ---- recurrent cells: torch asks every PrivateUse1 device for these fused ones ----

Tensor gates_of(const Tensor& input_gates, const Tensor& hidden_gates, const optional<Tensor>& input_bias, const optional<Tensor>& hidden_bias) {
  Tensor gates = input_gates + hidden_gates;
  if (input_bias && input_bias->defined()) {
    gates = gates + *input_bias + *hidden_bias;
  }
  return gates;
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const optional<Tensor>& input_bias, const optional<Tensor>& hidden_bias) {
  auto chunks = gates_of(input_gates, hidden_gates, input_bias, hidden_bias).chunk(4, 1);
  Tensor i = chunks[0].sigmoid(), f = chunks[1].sigmoid(), g = chunks[2].tanh(), o = chunks[3].sigmoid();
  Tensor cy = f * cx + i * g;
  return {o * cy.tanh(), cy, at::cat({i, f, g, o}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const optional<Tensor>& grad_hy, const optional<Tensor>& grad_cy, const Tensor& cx,
                                                      const Tensor& cy, const Tensor& workspace, bool has_bias) {
  const bool from_h = grad_hy && grad_hy->defined(), from_c = grad_cy && grad_cy->defined();
  if (!from_h && !from_c) {
    return {};
  }
  auto chunks = workspace.chunk(4, 1);
  const Tensor &i = chunks[0], &f = chunks[1], &g = chunks[2], &o = chunks[3];
  Tensor tanh_c = cy.tanh();
  Tensor gh = from_h ? *grad_hy : at::zeros_like(cy);
  Tensor gc = gh * o * (1 - tanh_c * tanh_c);
  if (from_c) {
    gc = gc + *grad_cy;
  }
  Tensor gates = at::cat({gc * g * i * (1 - i), gc * cx * f * (1 - f), gc * i * (1 - g * g), gh * tanh_c * o * (1 - o)}, 1);
  return {gates, gc * f, has_bias ? gates.sum(0) : Tensor()};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx, const optional<Tensor>& input_bias,
                                    const optional<Tensor>& hidden_bias) {
  const bool biased = input_bias && input_bias->defined();
  auto in = (biased ? input_gates + *input_bias : input_gates).chunk(3, 1);
  auto hid = (biased ? hidden_gates + *hidden_bias : hidden_gates).chunk(3, 1);
  Tensor r = (in[0] + hid[0]).sigmoid(), z = (in[1] + hid[1]).sigmoid(), n = (in[2] + r * hid[2]).tanh();
  return {n + z * (hx - n), at::cat({r, z, n, hx, hid[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad, const Tensor& workspace, bool has_bias) {
  auto chunks = workspace.chunk(5, 1);
  const Tensor &r = chunks[0], &z = chunks[1], &n = chunks[2], &hx = chunks[3], &hn = chunks[4];
  Tensor gn = grad * (1 - z) * (1 - n * n);
  Tensor gz = grad * (hx - n) * z * (1 - z);
  Tensor gr = gn * hn * r * (1 - r);
  Tensor input = at::cat({gr, gz, gn}, 1), hidden = at::cat({gr, gz, gn * r}, 1);
  return {input, hidden, grad * z, has_bias ? input.sum(0) : Tensor(), has_bias ? hidden.sum(0) : Tensor()};
}

}  // namespace

at::Tensor host_view(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device().type() != kDevice) {
    return tensor;
  }
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(),
      c10::DataPtr(const_cast<void*>(tensor.storage().data()), c10::Device(c10::kCPU)), nullptr, false));
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  view.unsafeGetTensorImpl()->_set_conj(tensor.is_conj());
  view.unsafeGetTensorImpl()->_set_neg(tensor.is_neg());
  return view;
}

// A parameter keeps its identity when its module moves to the device, as it does with the vendors' plugins.
bool compatible(const at::Tensor& self, const at::Tensor& from) {
  auto dense = [](const at::Tensor& t) {
    return t.layout() == at::kStrided && (t.is_cpu() || t.device().type() == c10::DeviceType::PrivateUse1);
  };
  return dense(self) && dense(from);
}

}  // namespace pretend

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using namespace pretend;
  m.impl("empty.memory_format", &pretend::empty);
  m.impl("empty_strided", &pretend::empty_strided);
  m.impl("view", &pretend::view);
  m.impl("as_strided", &pretend::as_strided);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("record_stream", &record_stream);
  m.impl("_has_compatible_shallow_copy_type", &compatible);
  m.impl("_use_cudnn_ctc_loss", &no_cudnn_ctc);
  m.impl("_use_cudnn_ctc_loss.Tensor", &no_cudnn_ctc_tensor);
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&pretend::convolution>());
  m.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&pretend::convolution_backward>());
  m.impl("_thnn_fused_lstm_cell", &lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  m.impl("_thnn_fused_gru_cell", &gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}

// A copy resolves conjugate and negative bits itself; torch's fallbacks for them would copy first, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
