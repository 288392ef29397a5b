// Random numbers and the hooks by which torch finds the device.
//
// A generator's state is 16 bytes, seed and offset, as of every Philox generator.  One operator draws from a CPU
// generator made from both, then the offset moves on; so a state that is put back replays what followed it.
#include "pretend.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include <cstring>

namespace pretend {
namespace {

constexpr int64_t kStateBytes = 16;
constexpr uint64_t kDrawn = 4;  // how far one operator moves the offset

class PretendGenerator final : public c10::GeneratorImpl {
 public:
  explicit PretendGenerator(int index)
      : c10::GeneratorImpl(c10::Device(kDevice, static_cast<c10::DeviceIndex>(index)),
                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  static c10::DeviceType device_type() { return kDevice; }

  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == kStateBytes, "RNG state is wrong size");
    const auto* bytes = static_cast<const char*>(state.data());
    std::memcpy(&seed_, bytes, sizeof(seed_));
    std::memcpy(&offset_, bytes + sizeof(seed_), sizeof(offset_));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor out = at::empty({kStateBytes}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
    auto* bytes = out.data_ptr<uint8_t>();
    std::memcpy(bytes, &seed_, sizeof(seed_));
    std::memcpy(bytes + sizeof(seed_), &offset_, sizeof(offset_));
    return out.getIntrusivePtr();
  }

  // A CPU generator for the next operator. The first after seeding gets the seed itself.
  at::Generator draw() {
    uint64_t mixed = seed_;
    if (offset_ != 0) {  // splitmix64
      mixed += offset_ * 0x9E3779B97F4A7C15ULL;
      mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
      mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
      mixed ^= mixed >> 31;
    }
    offset_ += kDrawn;
    return at::detail::createCPUGenerator(mixed);
  }

 private:
  PretendGenerator* clone_impl() const override {
    auto* copy = new PretendGenerator(device().index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }
  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t offset_ = 0;
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_total() > 0; }
  void init() const override { enter_runtime(); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return runtime_entered(); }
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(device_total()); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current_device()); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const auto old = getCurrentDevice();
    set_current_device(index);
    return old;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }
  at::Device getDeviceFromPtr(void* data) const override {
    for (const SegmentView& segment : memory_snapshot()) {
      auto* start = static_cast<char*>(segment.address);
      if (data >= start && data < start + segment.size) {
        return {kDevice, static_cast<c10::DeviceIndex>(segment.device)};
      }
    }
    TORCH_CHECK(false, "the pointer does not belong to the device");
  }
  bool isPinnedPtr(const void* data) const override { return is_pinned_pointer(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto fresh = allocate_on(storage.device().index(), bytes);
    const size_t kept = std::min(storage.nbytes(), bytes);
    if (kept != 0) {
      std::memcpy(fresh.mutable_get(), storage.data(), kept);
    }
    storage.set_data_ptr_noswap(std::move(fresh));
    storage.set_nbytes(bytes);
  }
};

struct Registration {
  Registration() { at::RegisterPrivateUse1HooksInterface(new Hooks()); }
} registration;

}  // namespace

const at::Generator& default_generator(int index) {
  static auto* generators = new std::map<int, at::Generator>();
  static std::mutex mutex;
  index = index < 0 ? current_device() : index;
  check_index(index, "bad_ordinal");
  std::lock_guard<std::mutex> lock(mutex);
  auto found = generators->find(index);
  return found != generators->end() ? found->second
                                    : generators->emplace(index, at::make_generator<PretendGenerator>(index)).first->second;
}

at::Generator new_generator(int index) {
  return at::make_generator<PretendGenerator>(index < 0 ? current_device() : index);
}

at::Generator host_generator(const std::optional<at::Generator>& given, int device) {
  at::Generator generator = given.has_value() && given->defined() ? *given : default_generator(device);
  TORCH_CHECK(generator.device().type() == kDevice, "Expected a '", c10::DeviceTypeName(kDevice, true),
              "' device type for generator but found '", generator.device().type(), "'");
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get<PretendGenerator>()->draw();
}

}  // namespace pretend
