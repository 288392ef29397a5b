// What Python sees of the device.
#include "pretend.h"

#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

namespace pretend {

void bind_backend(pybind11::module& m);  // backend.cpp
void bind_graph(pybind11::module& m);    // graph.cpp

namespace {

namespace py = pybind11;

py::list snapshot() {
  py::list out;
  for (const SegmentView& segment : memory_snapshot()) {
    py::list blocks;
    size_t used = 0, requested = 0;
    for (const BlockView& block : segment.blocks) {
      py::dict entry;
      entry["address"] = reinterpret_cast<uintptr_t>(block.address);
      entry["size"] = block.size;
      entry["requested_size"] = block.requested;
      entry["state"] = block.used ? "active_allocated" : "inactive";
      entry["frames"] = py::list();
      blocks.append(entry);
      used += block.used ? block.size : 0;
      requested += block.requested;
    }
    py::dict entry;
    entry["device"] = segment.device;
    entry["address"] = reinterpret_cast<uintptr_t>(segment.address);
    entry["total_size"] = segment.size;
    entry["allocated_size"] = used;
    entry["active_size"] = used;
    entry["requested_size"] = requested;
    entry["stream"] = 0;
    entry["segment_type"] = segment.large ? "large" : "small";
    entry["segment_pool_id"] = py::make_tuple(0, 0);
    entry["is_expandable"] = false;
    entry["frames"] = py::list();
    entry["blocks"] = blocks;
    out.append(entry);
  }
  return out;
}

// The statistics in the nested form of torch.cuda.memory_stats_as_nested_dict.
py::dict statistics(int index) {
  using c10::CachingAllocator::Stat;
  const auto stats = device_allocator()->getDeviceStats(static_cast<c10::DeviceIndex>(index));
  auto one = [](const Stat& stat) {
    py::dict out;
    out["current"] = stat.current;
    out["peak"] = stat.peak;
    out["allocated"] = stat.allocated;
    out["freed"] = stat.freed;
    return out;
  };
  auto pools = [&one](const c10::CachingAllocator::StatArray& array) {
    py::dict out;
    out["all"] = one(array[0]);
    out["small_pool"] = one(array[1]);
    out["large_pool"] = one(array[2]);
    return out;
  };
  py::dict out;
  out["num_alloc_retries"] = stats.num_alloc_retries;
  out["num_ooms"] = stats.num_ooms;
  out["max_split_size"] = stats.max_split_size;
  out["num_sync_all_streams"] = stats.num_sync_all_streams;
  out["num_device_alloc"] = stats.num_device_alloc;
  out["num_device_free"] = stats.num_device_free;
  out["allocation"] = pools(stats.allocation);
  out["segment"] = pools(stats.segment);
  out["active"] = pools(stats.active);
  out["inactive_split"] = pools(stats.inactive_split);
  out["allocated_bytes"] = pools(stats.allocated_bytes);
  out["reserved_bytes"] = pools(stats.reserved_bytes);
  out["active_bytes"] = pools(stats.active_bytes);
  out["inactive_split_bytes"] = pools(stats.inactive_split_bytes);
  out["requested_bytes"] = pools(stats.requested_bytes);
  out["oversize_allocations"] = one(stats.oversize_allocations);
  out["oversize_segments"] = one(stats.oversize_segments);
  return out;
}

}  // namespace
}  // namespace pretend

PYBIND11_MODULE(PRETEND_MODULE, m) {
  using namespace pretend;
  py::class_<Settings>(m, "Settings")
      .def_readwrite("devices", &Settings::devices)
      .def_readwrite("visible_variables", &Settings::visible_variables)
      .def_readwrite("memory", &Settings::memory)
      .def_readwrite("caching", &Settings::caching)
      .def_readwrite("strict", &Settings::strict)
      .def_readwrite("rescue", &Settings::rescue)
      .def_readwrite("plain_oom", &Settings::plain_oom)
      .def_readwrite("wide_collectives", &Settings::wide_collectives)
      .def_readwrite("max_split", &Settings::max_split)
      .def_readwrite("texts", &Settings::texts)
      .def_readwrite("failures", &Settings::failures)
      .def_readwrite("unsupported", &Settings::unsupported);
  m.def("settings", &settings, py::return_value_policy::reference);
  m.def("visible_devices", &visible_devices);
  m.def("enter_runtime", &enter_runtime);
  m.def("runtime_entered", &runtime_entered);
  m.def("maybe_fail", &maybe_fail);
  m.def("current_device", &current_device);
  m.def("set_device", &set_current_device);
  m.def("synchronize", &synchronize_device, py::call_guard<py::gil_scoped_release>());
  m.def("synchronize_count", &synchronize_count);
  m.def("set_fraction", &set_fraction);
  m.def("memory_snapshot", &snapshot);
  m.def("memory_statistics", &statistics);
  m.def("empty_cache", [] { device_allocator()->emptyCache(MempoolId_t{0, 0}); });
  m.def("reset_accumulated", [](int index) { device_allocator()->resetAccumulatedStats(static_cast<c10::DeviceIndex>(index)); });
  m.def("reset_peak", [](int index) { device_allocator()->resetPeakStats(static_cast<c10::DeviceIndex>(index)); });
  m.def("memory_info", [](int device) { return device_allocator()->getMemoryInfo(static_cast<c10::DeviceIndex>(device)); });
  m.def("raw_alloc", [](int device, size_t bytes) {
    return reinterpret_cast<uintptr_t>(allocate_on(device, bytes).release_context());
  });
  m.def("raw_delete", [](uintptr_t address) { device_deleter()(reinterpret_cast<void*>(address)); });
  m.def("default_generator", [](int index) {
    return py::reinterpret_steal<py::object>(THPGenerator_initDefaultGenerator(default_generator(index)));
  });
  bind_backend(m);
  bind_graph(m);
}
