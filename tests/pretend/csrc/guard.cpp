// Devices, streams and events. Every call is done before it returns; an event is the time at which it was recorded.
#include "pretend.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <chrono>

namespace pretend {
namespace {

using Clock = std::chrono::steady_clock;

thread_local int current = 0;
thread_local std::map<int, c10::StreamId> current_streams;
std::atomic<c10::StreamId> next_stream{1};
std::atomic<int64_t> synchronized{0};

struct Event {
  Clock::time_point at;
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kDevice; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device old = getDevice();
    setDevice(device);
    return old;
  }
  c10::Device getDevice() const override { return {kDevice, static_cast<c10::DeviceIndex>(current)}; }
  void setDevice(c10::Device device) const override { set_current_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    restore_device(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(device_total());
  }

  c10::Stream getStream(c10::Device device) const override { return current_stream(index_of(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(kDevice, static_cast<c10::DeviceIndex>(index_of(device))));
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    maybe_fail("stream_create");
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDevice, static_cast<c10::DeviceIndex>(index_of(device))),
                       next_stream++);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream old = current_stream(stream.device_index());
    current_streams[stream.device_index()] = stream.id();
    return old;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const OVERRIDE_11 {
    return reinterpret_cast<void*>(static_cast<intptr_t>(stream.id()));
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {
    maybe_fail("stream_synchronize");
    ++synchronized;
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override { synchronize_device(index); }

  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    maybe_fail("event_record");
    if (*event == nullptr) {
      *event = new Event();
    }
    static_cast<Event*>(*event)->at = Clock::now();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override { maybe_fail("event_synchronize"); }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start != nullptr && end != nullptr, "Both events must be recorded before calculating elapsed time.");
    return std::chrono::duration<double, std::milli>(static_cast<Event*>(end)->at - static_cast<Event*>(start)->at).count();
  }

 private:
  static int index_of(c10::Device device) { return device.has_index() ? device.index() : current; }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace

int current_device() { return current; }

void check_index(int index, const char* wording) {
  TORCH_CHECK(index >= 0 && index < device_total(), text(wording, {std::to_string(index), std::to_string(device_total())}));
}

void set_current_device(int index) {
  if (index < 0) {
    return;  // "the current one", as for every torch device
  }
  if (index != current) {
    check_index(index, "bad_ordinal");
    maybe_fail("set_device");
  }
  TORCH_CHECK(device_total() > 0, text("no_device"));
  enter_runtime();
  current = index;
}

void restore_device(int index) noexcept {
  if (index >= 0) {
    current = index;
  }
}

c10::Stream current_stream(int index) {
  const c10::Device device(kDevice, static_cast<c10::DeviceIndex>(index));
  auto found = current_streams.find(index);
  return found == current_streams.end() ? c10::Stream(c10::Stream::DEFAULT, device)
                                        : c10::Stream(c10::Stream::UNSAFE, device, found->second);
}

void synchronize_device(int index) {
  check_index(index < 0 ? current : index, "bad_ordinal");
  maybe_fail("synchronize");
  ++synchronized;
}

int64_t synchronize_count() { return synchronized; }

}  // namespace pretend
