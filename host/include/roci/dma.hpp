// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Memory that the device reaches: our own rings and tables (DmaArena), and the program's memory
// (DmaMap).
#pragma once

#include <roci/transport.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace roci {

class DmaArena;

/// A piece of an arena; move-only, gives itself back.
class DmaBuffer {
 public:
  DmaBuffer() = default;
  DmaBuffer(const DmaBuffer&) = delete;
  DmaBuffer& operator=(const DmaBuffer&) = delete;
  DmaBuffer(DmaBuffer&& other) noexcept;
  DmaBuffer& operator=(DmaBuffer&& other) noexcept;
  ~DmaBuffer() { reset(); }

  /// First byte, nullptr if there is none.
  std::byte* data() const noexcept { return data_; }
  /// DMA address of the first byte.
  uint64_t address() const noexcept { return address_; }
  /// Length in bytes, as asked for.
  size_t size() const noexcept { return size_; }
  /// Gives the memory back.
  void reset() noexcept;
  /// Never gives the memory back: the device may go on using it.
  void abandon() noexcept {
    arena_ = nullptr;
    reset();
  }

 private:
  friend class DmaArena;
  DmaArena* arena_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t address_ = 0;
  size_t size_ = 0;
};

/// Allocator of rings, page tables and admin buffers, in big chunks from the transport: one DMA map
/// for many objects. Thread-safe; outlives its buffers.
class DmaArena {
 public:
  explicit DmaArena(Transport& transport) : transport_(transport) {}
  DmaArena(const DmaArena&) = delete;
  DmaArena& operator=(const DmaArena&) = delete;
  ~DmaArena();

  /// Zeroed memory.
  /// @param bytes      at least 1
  /// @param alignment  power of two, 64…4096
  /// @throws Error(ENOMEM)
  DmaBuffer allocate(size_t bytes, size_t alignment);

  /// Chunks taken from the transport.
  size_t chunks() const;

  /// Before fork, and after it in the parent.
  void before_fork() noexcept { mutex_.lock(); }
  void after_fork() noexcept { mutex_.unlock(); }
  /// In the child: forgets who held the lock.
  void abandon_after_fork() noexcept { new (&mutex_) std::mutex; }

 private:
  friend class DmaBuffer;
  struct Chunk {
    DmaRange range;
    // Offset → length; neighbours are merged.
    std::map<size_t, size_t> free;
  };
  bool take(Chunk& chunk, size_t bytes, size_t alignment, DmaBuffer& buffer);
  void give_back(const DmaBuffer& buffer) noexcept;

  Transport& transport_;
  mutable std::mutex mutex_;
  std::map<std::byte*, Chunk> chunks_;
};

/// How DMA addresses of the program's memory are chosen.
enum class DmaPolicy : uint8_t {
  /// The transport's choice: the virtual address in the simulator. Regions are contiguous.
  DIRECT,
  /// Each page at a place of its own, in shuffled order, so that every region needs its page table:
  /// a test of the translation (ROCI_DMA=scatter).
  SCATTER,
};

/// A contiguous part of a region as the device sees it.
struct DmaExtent {
  uint64_t address;
  size_t bytes;
};

/// Memory of the program that is mapped for DMA, page by page, with reference counts: a new region
/// maps only what is not mapped yet, and a piece is unmapped when the last region that uses it goes.
/// Thread-safe.
class DmaMap {
 public:
  static constexpr size_t PAGE = 4096;

  /// @param seed  of the order in SCATTER
  DmaMap(Transport& transport, DmaPolicy policy, uint64_t seed = 1);
  DmaMap(const DmaMap&) = delete;
  DmaMap& operator=(const DmaMap&) = delete;
  ~DmaMap();

  /// What one region holds; move-only, gives it back.
  class Hold {
   public:
    Hold() = default;
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    Hold(Hold&& other) noexcept : map_(std::exchange(other.map_, nullptr)),
                                  pieces_(std::move(other.pieces_)),
                                  extents_(std::move(other.extents_)) {}
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { reset(); }

    /// From the first byte of the region to its last: adjacent ones are merged, so one extent means
    /// contiguous.
    const std::vector<DmaExtent>& extents() const noexcept { return extents_; }
    /// Gives everything back.
    void reset() noexcept;
    /// Never gives it back before the map's own end: the device may go on using it.
    void abandon() noexcept {
      map_ = nullptr;
      reset();
    }

   private:
    friend class DmaMap;
    DmaMap* map_ = nullptr;
    std::vector<uintptr_t> pieces_;
    std::vector<DmaExtent> extents_;
  };

  /// Maps what is missing of [begin, begin + bytes).
  /// @param writable  the program may write there, so the device may, too (rights of keys are the
  ///                  device's business). What was mapped when it was read-only, and is not any more,
  ///                  gets a second DMA address
  /// @throws Error from the transport
  Hold acquire(const void* begin, size_t bytes, bool writable);

  /// Pieces mapped now, and bytes in them: for tests and the log.
  size_t pieces() const;
  size_t bytes() const;

  /// Before fork, and after it in the parent.
  void before_fork() noexcept { mutex_.lock(); }
  void after_fork() noexcept { mutex_.unlock(); }
  /// In the child: forgets who held the lock.
  void abandon_after_fork() noexcept { new (&mutex_) std::mutex; }

 private:
  struct Piece {
    DmaRange range;
    unsigned uses;
  };
  // Two of them: [0] read-only, [1] writable.
  using Pieces = std::map<uintptr_t, Piece>;

  static constexpr uintptr_t WRITABLE_KEY = 1;  // page addresses have zeros there
  void release(std::span<const uintptr_t> keys) noexcept;
  uint64_t scatter_block(size_t pages);
  void add_gap(std::vector<DmaRange>& wanted, uintptr_t gap, uintptr_t end, bool writable);

  Transport& transport_;
  const DmaPolicy policy_;
  mutable std::mutex mutex_;
  Pieces pieces_[2];
  // SCATTER: next free DMA address, state of the random order.
  uint64_t next_address_;
  uint64_t random_;
};

/// The page table of a region: page size and the address of each page.
struct PageTable {
  /// log2 of the page size, 12…30.
  unsigned page_shift;
  /// Offset of the region's first byte in the first page.
  uint32_t first_byte_offset;
  std::vector<uint64_t> pages;
};

/// The smallest page table for these extents: the largest page size at which all of them fit.
/// @param min_shift, max_shift  log2 of the page sizes that the device has
PageTable make_page_table(std::span<const DmaExtent> extents, unsigned min_shift,
                          unsigned max_shift);

/// Checks that the process may read, or also write, every byte of a range now.
/// @param writable  it has to be writable
/// @return whether all of it is writable
/// @throws Error(EFAULT) that names the first address where the process may not
bool check_memory(const void* begin, size_t bytes, bool writable);

}  // namespace roci
