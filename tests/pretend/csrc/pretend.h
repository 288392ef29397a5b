// The pretend accelerator: a PrivateUse1 device whose memory is host memory and whose kernels are the CPU's.
//
// It serves under any vendor's name. What differs between vendors (labels, wordings, limits) comes from Python
// through `configure`; this code holds only the machinery that every torch plugin has.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "releases.h"

namespace pretend {

constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

// ---- settings (config.cpp) ----
struct Settings {
  int devices = 2;                  // in the machine; how many a process sees is device_total()
  std::vector<std::string> visible_variables;  // the first that is set chooses devices, in its order
  size_t memory = size_t{1} << 30;  // bytes of each device
  bool caching = true;              // false: the vendor's PYTORCH_NO_<X>_MEMORY_CACHING
  bool strict = false;              // an operator without a kernel is an error and does not go to the CPU
  bool rescue = false;              // an operator whose kernel fails goes to the CPU (ENABLE_MLU_FAIL_FALLBACK)
  bool plain_oom = false;           // out of memory as of older plugin builds: a RuntimeError, older words
  bool wide_collectives = true;     // false: float64 is sent as float32
  size_t max_split = 0;             // bytes, 0: no limit
  std::map<std::string, std::string> texts;     // wordings, with {0}, {1} ... for their arguments
  std::map<std::string, std::string> failures;  // error injection: function or operator -> text
  std::vector<std::string> unsupported;         // operators left to the CPU fallback, without overload names
};
Settings& settings();
// The wording `key`, its {0}, {1} ... replaced by `parts`.
std::string text(const std::string& key, const std::vector<std::string>& parts = {});
// Raises the injected error of `function`, if one is set.
void maybe_fail(const std::string& function);
// "1.50 GiB" as the allocators of torch print it.
std::string format_size(uint64_t bytes);

// Ordinals of the machine's devices that this process sees. Read anew at each call until the runtime is entered.
std::vector<int> visible_devices();
int device_total();
void enter_runtime();  // the process has touched the device: from here on the choice of devices stands
bool runtime_entered();

// ---- devices and streams (guard.cpp) ----
int current_device();
void set_current_device(int index);  // raises the vendor's text for an ordinal out of range
c10::Stream current_stream(int index);
void check_index(int index, const char* wording);
int64_t synchronize_count();
void synchronize_device(int index);
void restore_device(int index) noexcept;  // for destructors

// ---- memory (allocator.cpp, host.cpp) ----
struct BlockView { void* address; size_t size; size_t requested; bool used; };
struct SegmentView { int device; void* address; size_t size; bool large; std::vector<BlockView> blocks; };
DeviceAllocator* device_allocator();
c10::DataPtr allocate_on(int device, size_t bytes);
c10::DeleterFnPtr device_deleter();
bool is_device_block(void* address);  // a block in use begins there
void set_fraction(double fraction, int device);
std::vector<SegmentView> memory_snapshot();
at::Allocator* pinned_allocator();
bool is_pinned_pointer(const void* data);
// The CPU allocator of this process: host memory, except inside a HostKernel, where it hands out device memory.
at::Allocator* switching_allocator();
struct HostKernel {  // "a kernel of `device` runs on this thread"
  explicit HostKernel(int device);
  ~HostKernel();
  int previous;
};

// ---- random numbers (generator.cpp) ----
const at::Generator& default_generator(int index);
at::Generator new_generator(int index);
// A CPU generator for one operator of `device`, drawn from seed and offset; the offset moves on.
at::Generator host_generator(const std::optional<at::Generator>& given, int device);

// ---- operators (boxed.cpp) ----
void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack);
void run_as(const char* name, torch::jit::Stack* stack);  // the same for the operator `name`, with this stack
at::Tensor host_view(const at::Tensor& tensor);  // CPU tensor over the same memory (which the caller keeps alive)

// ---- graphs (graph.cpp) ----
bool capturing();
void capture(std::function<void()> step);  // keeps `step` if a graph is being captured
void capture_operator(const c10::OperatorHandle& op, std::vector<c10::IValue> inputs, std::vector<c10::IValue> outputs);

}  // namespace pretend
