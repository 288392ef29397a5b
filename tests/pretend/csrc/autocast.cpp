// Mixed precision: torch's own lists of operators, registered for the device.
#include <ATen/autocast_mode.h>

using namespace at;  // the lists below name Tensor and ScalarType plainly

#define PRETEND_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define PRETEND_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define PRETEND_FP32_SET(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PRETEND_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

namespace {
Tensor refuse_binary_cross_entropy(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(false, "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.");
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(PRETEND_LOWER)
  AT_FORALL_FP32(PRETEND_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(PRETEND_FP32_SET)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(PRETEND_PROMOTE)
  m.impl("binary_cross_entropy", &refuse_binary_cross_entropy);
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
