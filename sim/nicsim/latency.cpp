// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/latency.hpp"

#include <roci_hwif.hpp>

#include <algorithm>
#include <cstring>

namespace roci::sim {
namespace {

// Doorbells remembered per queue pair: programs that never ask for a completion must not fill memory.
constexpr size_t kMostPosts = 65536;
// Queue pairs remembered: programs may make and destroy them for ever, each with a number of its own.
constexpr size_t kMostQueues = 4096;

}  // namespace

LatencySummary summarise(std::vector<uint64_t> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {samples.front(), samples[(samples.size() - 1) / 2], samples.back(), samples.size()};
}

void LatencyMeter::written(unsigned function, uint32_t offset, uint64_t value, uint64_t cycle) {
  if (offset < hwif::csr::DOORBELL_BASE) return;
  const auto doorbell = hwif::Doorbell::from_word(value);
  if (doorbell.get<hwif::Doorbell::kind>() != hwif::DoorbellKind::SQ) return;
  const std::pair queue{function, doorbell.get<hwif::Doorbell::object>()};
  if (posts_.size() >= kMostQueues && !posts_.contains(queue)) forget_some();
  auto& posts = posts_[queue];
  if (posts.size() == kMostPosts) posts.pop_front();
  posts.push_back({static_cast<uint16_t>(doorbell.get<hwif::Doorbell::index>()), cycle});
}

// Those that wait for nothing; if all do, all: none of so many is alive.
void LatencyMeter::forget_some() {
  std::erase_if(posts_, [](const auto& entry) { return entry.second.empty(); });
  if (posts_.size() >= kMostQueues) posts_.clear();
}

void LatencyMeter::left(unsigned function) {
  std::erase_if(posts_, [&](const auto& entry) { return entry.first.first == function; });
}

void LatencyMeter::stored(unsigned function, std::span<const uint8_t> data, uint64_t cycle) {
  if (data.size() != sizeof(hwif::Cqe)) return;
  hwif::Cqe cqe{};
  std::memcpy(&cqe, data.data(), sizeof cqe);
  constexpr uint8_t receive_side = 0x80;
  if ((static_cast<uint8_t>(cqe.get<hwif::Cqe::opcode>()) & receive_side) != 0) return;
  const auto found = posts_.find({function, cqe.get<hwif::Cqe::qpn>()});
  if (found == posts_.end()) return;
  auto& posts = found->second;
  const auto index = static_cast<uint16_t>(cqe.get<hwif::Cqe::wqe_index_or_cookie>());
  // indices wrap at 2^16 and a ring holds at most half of that
  const auto covers = [&](const Post& post) {
    return static_cast<int16_t>(static_cast<uint16_t>(post.end - index)) > 0;
  };
  const auto post = std::find_if(posts.begin(), posts.end(), covers);
  if (post == posts.end()) return;
  samples_.push_back(cycle - post->cycle);
  posts.erase(posts.begin(), post);  // completions come in order: done with those
}

}  // namespace roci::sim
