// SPDX-License-Identifier: BSD-2-Clause-Patent
#include <roci/dma.hpp>
#include <roci/error.hpp>

#include <algorithm>
#include <cerrno>

namespace roci {
namespace {

// Far from every virtual address, so that scattered pages and rings never meet.
constexpr uint64_t SCATTER_BASE = uint64_t{1} << 60;

}  // namespace

DmaMap::DmaMap(Transport& transport, DmaPolicy policy, uint64_t seed)
    : transport_(transport), policy_(policy), next_address_(SCATTER_BASE), random_(seed | 1) {}

DmaMap::~DmaMap() {
  for (const Pieces& pieces : pieces_) {
    for (const auto& [begin, piece] : pieces) transport_.unmap(std::span(&piece.range, 1));
  }
}

DmaMap::Hold& DmaMap::Hold::operator=(Hold&& other) noexcept {
  if (this != &other) {
    reset();
    map_ = std::exchange(other.map_, nullptr);
    pieces_ = std::move(other.pieces_);
    extents_ = std::move(other.extents_);
  }
  return *this;
}

void DmaMap::Hold::reset() noexcept {
  if (map_ != nullptr) map_->release(pieces_);
  map_ = nullptr;
  pieces_.clear();
  extents_.clear();
}

// DMA addresses for `pages` pages that are used by nobody.
uint64_t DmaMap::scatter_block(size_t pages) {
  const uint64_t block = next_address_;
  next_address_ += pages * PAGE;
  return block;
}

// New pieces for [gap, end): one, or in SCATTER one for every page.
void DmaMap::add_gap(std::vector<DmaRange>& wanted, uintptr_t gap, uintptr_t end, bool writable) {
  const size_t pages = (end - gap) / PAGE;
  if (policy_ == DmaPolicy::DIRECT) {
    const Pieces& others = pieces_[writable ? 0 : 1];
    auto other = others.lower_bound(end);
    const bool taken = other != others.begin() &&
                       std::prev(other)->first + std::prev(other)->second.range.bytes > gap;
    wanted.push_back({taken ? scatter_block(pages) : DmaRange::ANY,
                      reinterpret_cast<std::byte*>(gap), end - gap, writable});
    return;
  }
  const uint64_t block = scatter_block(pages);
  std::vector<uint64_t> order(pages);
  for (size_t i = 0; i < pages; ++i) order[i] = block + i * PAGE;
  for (size_t i = pages; i > 1; --i) {  // Fisher and Yates, with xorshift64
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    std::swap(order[i - 1], order[random_ % i]);
  }
  for (size_t i = 0; i < pages; ++i) {
    wanted.push_back({order[i], reinterpret_cast<std::byte*>(gap + i * PAGE), PAGE, writable});
  }
}

DmaMap::Hold DmaMap::acquire(const void* begin, size_t bytes, bool writable) {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t from = first / PAGE * PAGE;
  const uintptr_t to = (first + bytes + PAGE - 1) / PAGE * PAGE;
  Hold hold;
  const std::lock_guard lock(mutex_);
  Pieces& pieces = pieces_[writable ? 1 : 0];

  // The gaps between what is mapped.
  std::vector<DmaRange> wanted;
  auto next = pieces.upper_bound(from);
  if (next != pieces.begin()) {
    const auto last = std::prev(next);
    if (last->first + last->second.range.bytes > from) next = last;
  }
  uintptr_t at = from;
  for (auto piece = next; piece != pieces.end() && piece->first < to; ++piece) {
    if (piece->first > at) add_gap(wanted, at, piece->first, writable);
    at = piece->first + piece->second.range.bytes;
  }
  if (at < to) add_gap(wanted, at, to, writable);

  // Reserves come first, so that nothing can fail after the device knows of the pieces.
  Pieces fresh;
  for (const DmaRange& range : wanted) {
    fresh[reinterpret_cast<uintptr_t>(range.memory)] = Piece{range, 0};
  }
  hold.pieces_.reserve(wanted.size() + static_cast<size_t>(std::distance(next, pieces.end())));
  transport_.map(wanted);
  for (const DmaRange& range : wanted) {
    fresh[reinterpret_cast<uintptr_t>(range.memory)].range = range;
  }
  pieces.merge(fresh);

  // Count them, and write down what the region looks like from the device.
  hold.map_ = this;
  auto piece = pieces.upper_bound(from);
  if (piece != pieces.begin() &&
      std::prev(piece)->first + std::prev(piece)->second.range.bytes > from) {
    --piece;
  }
  for (; piece != pieces.end() && piece->first < to; ++piece) {
    DmaRange& range = piece->second.range;
    ++piece->second.uses;
    hold.pieces_.push_back(piece->first | (writable ? WRITABLE_KEY : 0));
    const uintptr_t low = std::max(first, piece->first);
    const uintptr_t high = std::min(first + bytes, piece->first + range.bytes);
    const DmaExtent extent{range.address + (low - piece->first), high - low};
    if (!hold.extents_.empty() &&
        hold.extents_.back().address + hold.extents_.back().bytes == extent.address) {
      hold.extents_.back().bytes += extent.bytes;
    } else {
      hold.extents_.push_back(extent);
    }
  }
  return hold;
}

void DmaMap::release(std::span<const uintptr_t> keys) noexcept {
  const std::lock_guard lock(mutex_);
  std::vector<DmaRange> gone;
  for (const uintptr_t key : keys) {
    Pieces& pieces = pieces_[key & WRITABLE_KEY];
    const auto found = pieces.find(key & ~WRITABLE_KEY);
    if (--found->second.uses != 0) continue;
    gone.push_back(found->second.range);
    pieces.erase(found);
  }
  transport_.unmap(gone);
}

size_t DmaMap::pieces() const {
  const std::lock_guard lock(mutex_);
  return pieces_[0].size() + pieces_[1].size();
}

size_t DmaMap::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const Pieces& pieces : pieces_) {
    for (const auto& [begin, piece] : pieces) sum += piece.range.bytes;
  }
  return sum;
}

PageTable make_page_table(std::span<const DmaExtent> extents, unsigned min_shift,
                          unsigned max_shift) {
  // Page boundaries must fall on all joints of extents: the end of one (but for the last) and the
  // begin of the next are multiples of the page size.
  uint64_t joints = 0;
  for (size_t i = 0; i + 1 < extents.size(); ++i) {
    joints |= extents[i].address + extents[i].bytes;
    joints |= extents[i + 1].address;
  }
  unsigned shift = max_shift;
  while (shift > min_shift && (joints & ((uint64_t{1} << shift) - 1)) != 0) --shift;
  PageTable table{};
  table.page_shift = shift;
  const uint64_t size = uint64_t{1} << shift;
  table.first_byte_offset = static_cast<uint32_t>(extents.front().address & (size - 1));
  for (const DmaExtent& extent : extents) {
    const uint64_t end = extent.address + extent.bytes;
    for (uint64_t page = extent.address & ~(size - 1); page < end; page += size) {
      table.pages.push_back(page);
    }
  }
  return table;
}

}  // namespace roci
