// What differs between the releases of torch that the device can be built for: 2.7 and newer.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>
#include <torch/version.h>

#define PRETEND_TORCH(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= (minor))

// `override` for methods that torch's base class has since that release, and nothing before.
#if PRETEND_TORCH(8)
#define OVERRIDE_8 override
#else
#define OVERRIDE_8
#endif
#if PRETEND_TORCH(9)
#define OVERRIDE_9 override
#else
#define OVERRIDE_9
#endif
#if PRETEND_TORCH(11)
#define OVERRIDE_11 override
#else
#define OVERRIDE_11
#endif

namespace pretend {

#if PRETEND_TORCH(8)
using HostAllocator = at::HostAllocator;
#else
using HostAllocator = at::Allocator;
#endif

#if PRETEND_TORCH(9)
using c10::DeviceAllocator;
using c10::MempoolId_t;
#else
using MempoolId_t = std::pair<unsigned long long, unsigned long long>;
class DeviceAllocator : public c10::Allocator {
 public:
  virtual bool initialized() = 0;
  virtual void emptyCache(MempoolId_t pool = {0, 0}) = 0;
  virtual void recordStream(const c10::DataPtr& pointer, c10::Stream stream) = 0;
  virtual c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) = 0;
  virtual void resetAccumulatedStats(c10::DeviceIndex index) = 0;
  virtual void resetPeakStats(c10::DeviceIndex index) = 0;
  virtual std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) = 0;
};
#endif

}  // namespace pretend
