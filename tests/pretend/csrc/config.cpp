// Settings, wordings and error injection.
#include "pretend.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace pretend {

Settings& settings() {
  static Settings* instance = new Settings();  // leaked: used by destructors at exit
  return *instance;
}

namespace {

std::atomic<bool> entered{false};
std::mutex visible_mutex;
std::vector<int>* frozen = nullptr;

std::string uuid_of(int device) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "-00000000-0000-0000-0000-%012d", device);
  return settings().texts["label"] + buffer;
}

// Ordinals or UUIDs; the first entry that is neither ends the list, a repeated one empties it.
std::vector<int> parse(const std::string& list) {
  std::vector<int> out;
  std::stringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) {
    item.erase(std::remove(item.begin(), item.end(), ' '), item.end());
    int device = -1;
    if (!item.empty() && std::all_of(item.begin(), item.end(), ::isdigit)) {
      device = std::atoi(item.c_str());
    }
    for (int i = 0; i < settings().devices; ++i) {
      device = item == uuid_of(i) ? i : device;
    }
    if (device < 0 || device >= settings().devices) {
      break;
    }
    if (std::find(out.begin(), out.end(), device) != out.end()) {
      return {};
    }
    out.push_back(device);
  }
  return out;
}

std::vector<int> read_visible() {
  for (const std::string& name : settings().visible_variables) {
    if (const char* value = std::getenv(name.c_str())) {
      return parse(value);
    }
  }
  std::vector<int> all;
  for (int i = 0; i < settings().devices; ++i) {
    all.push_back(i);
  }
  return all;
}

}  // namespace

std::vector<int> visible_devices() {
  std::lock_guard<std::mutex> lock(visible_mutex);
  return frozen != nullptr ? *frozen : read_visible();
}

int device_total() { return static_cast<int>(visible_devices().size()); }

void enter_runtime() {
  if (!entered.exchange(true)) {
    std::lock_guard<std::mutex> lock(visible_mutex);
    frozen = new std::vector<int>(read_visible());
  }
}

bool runtime_entered() { return entered; }

std::string text(const std::string& key, const std::vector<std::string>& parts) {
  auto found = settings().texts.find(key);
  std::string out = found == settings().texts.end() ? key : found->second;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string mark = "{" + std::to_string(i) + "}";
    for (size_t at = out.find(mark); at != std::string::npos; at = out.find(mark, at + parts[i].size())) {
      out.replace(at, mark.size(), parts[i]);
    }
  }
  return out;
}

void maybe_fail(const std::string& function) {
  const auto& failures = settings().failures;
  if (failures.empty()) {
    return;
  }
  auto found = failures.find(function);
  TORCH_CHECK(found == failures.end(), found->second);
}

std::string format_size(uint64_t bytes) {
  static const char* units[] = {"KiB", "MiB", "GiB"};
  if (bytes < 1024) {
    return std::to_string(bytes) + " bytes";
  }
  double value = static_cast<double>(bytes) / 1024.0;
  int unit = 0;
  while (value >= 1024.0 && unit < 2) {
    value /= 1024.0;
    ++unit;
  }
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.2f %s", value, units[unit]);
  return buffer;
}

}  // namespace pretend
