// Host memory: the pinned allocator, and the CPU allocator that serves device memory to kernels of the device.
//
// A kernel of the pretend device is the CPU's kernel.  What it allocates (results, workspaces) must count against the
// device's limit and end in the device's out-of-memory error, and results must not be copied.  So the process's CPU
// allocator is replaced by one that hands out device blocks while a kernel of the device runs on the calling thread.
#include "pretend.h"

#include <c10/core/CPUAllocator.h>

#include <cstdlib>

namespace pretend {
namespace {

thread_local int kernel_device = -1;  // -1: no kernel of the device runs on this thread

class SwitchingAllocator final : public at::Allocator {
 public:
  explicit SwitchingAllocator(at::Allocator* host) : host_(host) {}

  at::DataPtr allocate(size_t bytes) override {
    if (kernel_device < 0 || bytes == 0) {
      return host_->allocate(bytes);
    }
    at::DataPtr out = allocate_on(kernel_device, bytes);
    out.unsafe_set_device(c10::Device(c10::kCPU));
    return out;
  }
  // oneDNN takes and frees by bare address, so the deleter has to find out whose memory it is.
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t count) const override { default_copy_data(to, from, count); }

 private:
  static void release(void* address);
  at::Allocator* host_;
};

SwitchingAllocator& switching() {
  static auto* instance = new SwitchingAllocator(c10::GetCPUAllocator());
  return *instance;
}

void SwitchingAllocator::release(void* address) {
  (is_device_block(address) ? device_deleter() : switching().host_->raw_deleter())(address);
}

class PinnedAllocator final : public HostAllocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) {
      return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    }
    maybe_fail("malloc_host");
    void* address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    TORCH_CHECK(address != nullptr, "pinned host memory: the host cannot give ", bytes, " bytes");
    std::lock_guard<std::mutex> lock(mutex_);
    ranges_[address] = bytes;
    return {address, address, &release, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, size_t count) const override { default_copy_data(to, from, count); }
  bool record_event(void*, void*, c10::Stream) OVERRIDE_8 { return true; }
  void empty_cache() OVERRIDE_8 {}
  at::HostStats get_stats() OVERRIDE_8 { return {}; }
  void reset_accumulated_stats() OVERRIDE_8 {}
  void reset_peak_stats() OVERRIDE_8 {}

  bool holds(const void* data) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto after = ranges_.upper_bound(const_cast<void*>(data));
    if (after == ranges_.begin()) {
      return false;
    }
    --after;
    return static_cast<const char*>(data) < static_cast<const char*>(after->first) + after->second;
  }

 private:
  static void release(void* address);
  std::mutex mutex_;
  std::map<void*, size_t> ranges_;
};

PinnedAllocator& pinned() {
  static auto* instance = new PinnedAllocator();
  return *instance;
}

void PinnedAllocator::release(void* address) {
  if (address != nullptr) {
    std::lock_guard<std::mutex> lock(pinned().mutex_);
    pinned().ranges_.erase(address);
    std::free(address);
  }
}

struct Registration {
  Registration() {
    c10::SetCPUAllocator(switching_allocator(), /*priority=*/255);
#if PRETEND_TORCH(8)
    at::setHostAllocator(kDevice, &pinned());
#endif
  }
} registration;

}  // namespace

at::Allocator* switching_allocator() { return &switching(); }
at::Allocator* pinned_allocator() { return &pinned(); }
bool is_pinned_pointer(const void* data) { return pinned().holds(data); }

HostKernel::HostKernel(int device) : previous(kernel_device) { kernel_device = device; }
HostKernel::~HostKernel() { kernel_device = previous; }

}  // namespace pretend
