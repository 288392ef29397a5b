// The caching allocator of the pretend device: small and large pools, blocks that split and merge, a memory limit.
//
// Sizes follow torch's CUDA allocator (512 bytes, 2 and 20 MiB segments): programs read the statistics they lead to.
#include "pretend.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <unordered_map>

namespace pretend {
namespace {

using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr size_t kRound = 512;
constexpr size_t kSmall = size_t{1} << 20;          // up to here a request is served from small segments
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kLargeSegment = size_t{20} << 20;  // for requests under kMinLarge
constexpr size_t kMinLarge = size_t{10} << 20;
constexpr size_t kRoundLarge = size_t{2} << 20;
constexpr size_t kTooMuch = size_t{1} << 60;

struct Block {
  int device;
  bool large;
  void* address;
  size_t size;
  size_t requested = 0;
  bool used = false;
  Block* previous = nullptr;  // neighbours in the same segment
  Block* next = nullptr;
  bool split() const { return previous != nullptr || next != nullptr; }
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return a->size != b->size ? a->size < b->size : a->address < b->address;
  }
};

struct Device {
  std::set<Block*, BySize> free_blocks[2];  // [large]
  size_t reserved = 0;
  double fraction = 1.0;
  DeviceStats stats;
};

class CachingAllocator final : public DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override { return allocate_on(current_device(), bytes); }

  c10::DataPtr allocate_on(int index, size_t bytes) {
    check_index(index, "allocator_ordinal");
    const c10::Device where(kDevice, static_cast<c10::DeviceIndex>(index));
    if (bytes == 0) {
      return {nullptr, nullptr, &release, where};
    }
    TORCH_CHECK_WITH(OutOfMemoryError, bytes < kTooMuch, text("oom_absurd"));
    enter_runtime();
    std::lock_guard<std::mutex> lock(mutex_);
    Block* block = take(index, bytes);
    return {block->address, block->address, &release, where};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t count) const override { default_copy_data(to, from, count); }
  bool initialized() override { return true; }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // every kernel ends before its call returns

  void emptyCache(MempoolId_t) override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t index = 0; index < devices_.size(); ++index) {
      release_cached(static_cast<int>(index));
    }
  }

  DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return device(index).stats;
  }

  void resetAccumulatedStats(c10::DeviceIndex index) override {
    std::lock_guard<std::mutex> lock(mutex_);
    DeviceStats& stats = device(index).stats;
    for (StatArray* array : arrays(stats)) {
      for (auto& stat : *array) {
        stat.reset_accumulated();
      }
    }
    stats.num_alloc_retries = stats.num_ooms = stats.num_device_alloc = stats.num_device_free = 0;
    stats.oversize_allocations.reset_accumulated();
    stats.oversize_segments.reset_accumulated();
  }

  void resetPeakStats(c10::DeviceIndex index) override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (StatArray* array : arrays(device(index).stats)) {
      for (auto& stat : *array) {
        stat.reset_peak();
      }
    }
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return {settings().memory - device(index).reserved, settings().memory};
  }

  void set_fraction(double fraction, int index) {
    std::lock_guard<std::mutex> lock(mutex_);
    device(index).fraction = fraction;
  }

  void free(void* address) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = blocks_.find(address);
    TORCH_INTERNAL_ASSERT(found != blocks_.end(), "invalid device pointer: ", address);
    give_back(found->second);
  }

  bool owns(void* address) {
    std::lock_guard<std::mutex> lock(mutex_);
    return blocks_.count(address) != 0;
  }

  std::vector<SegmentView> snapshot() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<SegmentView> out;
    for (auto& [address, first] : segments_) {
      SegmentView segment{first->device, address, 0, first->large, {}};
      for (Block* block = first; block != nullptr; block = block->next) {
        segment.size += block->size;
        segment.blocks.push_back({block->address, block->size, block->requested, block->used});
      }
      out.push_back(segment);
    }
    return out;
  }

 private:
  static void release(void* address);

  static std::vector<StatArray*> arrays(DeviceStats& s) {
    return {&s.allocation, &s.segment, &s.active, &s.inactive_split, &s.allocated_bytes,
            &s.reserved_bytes, &s.active_bytes, &s.inactive_split_bytes, &s.requested_bytes};
  }

  static void count(StatArray& array, bool large, int64_t by) {
    for (StatType type : {StatType::AGGREGATE, large ? StatType::LARGE_POOL : StatType::SMALL_POOL}) {
      auto& stat = array[static_cast<size_t>(type)];
      by >= 0 ? stat.increase(static_cast<size_t>(by)) : stat.decrease(static_cast<size_t>(-by));
    }
  }

  Device& device(int index) {
    while (devices_.size() <= static_cast<size_t>(index)) {
      devices_.push_back(std::make_unique<Device>());
    }
    return *devices_[index];
  }

  // A free split block counts as inactive_split until it is used or its segment is whole again.
  void count_inactive(Block* block, int sign) {
    if (block->split() && !block->used) {
      DeviceStats& stats = device(block->device).stats;
      count(stats.inactive_split, block->large, sign);
      count(stats.inactive_split_bytes, block->large, sign * static_cast<int64_t>(block->size));
    }
  }

  Block* take(int index, size_t requested) {
    const size_t size = std::max(kRound, (requested + kRound - 1) / kRound * kRound);
    const bool large = size > kSmall;
    Device& d = device(index);
    Block key{index, large, nullptr, size};
    auto found = d.free_blocks[large].lower_bound(&key);
    Block* block = nullptr;
    if (settings().caching && found != d.free_blocks[large].end()) {
      block = *found;
      d.free_blocks[large].erase(found);
      count_inactive(block, -1);
    } else {
      block = grow(index, size, large);
    }
    const size_t rest = block->size - size;
    const bool may_split = settings().max_split == 0 || block->size <= settings().max_split;
    if (settings().caching && may_split && rest >= (large ? kSmall : kRound)) {
      auto* tail = new Block{index, large, static_cast<char*>(block->address) + size, rest};
      tail->previous = block;
      tail->next = block->next;
      if (tail->next != nullptr) {
        tail->next->previous = tail;
      }
      block->next = tail;
      block->size = size;
      d.free_blocks[large].insert(tail);
      count_inactive(tail, +1);
    }
    block->used = true;
    block->requested = requested;
    blocks_[block->address] = block;
    count_use(block, +1);
    return block;
  }

  void count_use(Block* block, int sign) {
    DeviceStats& stats = device(block->device).stats;
    const int64_t size = sign * static_cast<int64_t>(block->size);
    count(stats.allocation, block->large, sign);
    count(stats.active, block->large, sign);
    count(stats.allocated_bytes, block->large, size);
    count(stats.active_bytes, block->large, size);
    count(stats.requested_bytes, block->large, sign * static_cast<int64_t>(block->requested));
  }

  Block* grow(int index, size_t size, bool large) {
    size_t segment = !large ? kSmallSegment : size < kMinLarge ? kLargeSegment
                     : (size + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
    if (!settings().caching) {
      segment = size;
    }
    Device& d = device(index);
    const size_t limit = static_cast<size_t>(d.fraction * static_cast<double>(settings().memory));
    maybe_fail("malloc");
    if (d.reserved + segment > limit) {
      ++d.stats.num_alloc_retries;
      release_cached(index);
    }
    if (d.reserved + segment > limit) {
      ++d.stats.num_ooms;
      out_of_memory(index, size, limit);
    }
    void* address = std::aligned_alloc(kRound, segment);
    TORCH_CHECK(address != nullptr, "the host has no memory left for a device segment of ", segment, " bytes");
    d.reserved += segment;
    ++d.stats.num_device_alloc;
    count(d.stats.segment, large, 1);
    count(d.stats.reserved_bytes, large, static_cast<int64_t>(segment));
    auto* block = new Block{index, large, address, segment};
    segments_[address] = block;
    return block;
  }

  [[noreturn]] void out_of_memory(int index, size_t size, size_t limit) {
    Device& d = device(index);
    const auto all = static_cast<size_t>(StatType::AGGREGATE);
    const size_t allocated = static_cast<size_t>(d.stats.allocated_bytes[all].current);
    const std::string allowed = d.fraction < 1.0 ? " " + format_size(limit) + " allowed;" : "";
    const std::vector<std::string> parts{
        format_size(size), std::to_string(index), format_size(settings().memory), format_size(settings().memory - d.reserved),
        format_size(allocated), format_size(d.reserved - allocated), allowed, format_size(d.reserved)};
    TORCH_CHECK(!settings().plain_oom, text("oom_old", parts));
    TORCH_CHECK_WITH(OutOfMemoryError, false, text("oom", parts));
    std::abort();  // not reached
  }

  void give_back(Block* block) {
    blocks_.erase(block->address);
    count_use(block, -1);
    block->used = false;
    block->requested = 0;
    if (block->next != nullptr && !block->next->used) {
      leave_pool(block->next);
      absorb_next(block);
    }
    if (block->previous != nullptr && !block->previous->used) {
      block = block->previous;
      leave_pool(block);
      absorb_next(block);
    }
    device(block->device).free_blocks[block->large].insert(block);
    count_inactive(block, +1);
    if (!settings().caching) {
      release_cached(block->device);
    }
  }

  void leave_pool(Block* block) {
    count_inactive(block, -1);
    device(block->device).free_blocks[block->large].erase(block);
  }

  void absorb_next(Block* block) {
    Block* gone = block->next;
    block->size += gone->size;
    block->next = gone->next;
    if (block->next != nullptr) {
      block->next->previous = block;
    }
    delete gone;
  }

  void release_cached(int index) {
    Device& d = device(index);
    for (auto& pool : d.free_blocks) {
      for (auto it = pool.begin(); it != pool.end();) {
        Block* block = *it;
        if (block->split()) {
          ++it;
          continue;
        }
        it = pool.erase(it);
        d.reserved -= block->size;
        ++d.stats.num_device_free;
        count(d.stats.segment, block->large, -1);
        count(d.stats.reserved_bytes, block->large, -static_cast<int64_t>(block->size));
        segments_.erase(block->address);
        std::free(block->address);
        delete block;
      }
    }
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unordered_map<void*, Block*> blocks_;  // those in use, by address
  std::map<void*, Block*> segments_;          // the first block of each
};

CachingAllocator& allocator() {
  static auto* instance = new CachingAllocator();  // leaked: tensors may outlive static destructors
  return *instance;
}

void CachingAllocator::release(void* address) {
  if (address != nullptr) {
    allocator().free(address);
  }
}

struct Registration {
  Registration() { c10::SetAllocator(kDevice, &allocator()); }
} registration;

}  // namespace

DeviceAllocator* device_allocator() { return &allocator(); }
c10::DataPtr allocate_on(int device, size_t bytes) { return allocator().allocate_on(device, bytes); }
c10::DeleterFnPtr device_deleter() { return allocator().raw_deleter(); }
bool is_device_block(void* address) { return allocator().owns(address); }
void set_fraction(double fraction, int device) { allocator().set_fraction(fraction, device); }
std::vector<SegmentView> memory_snapshot() { return allocator().snapshot(); }

}  // namespace pretend
