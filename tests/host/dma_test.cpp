// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Memory for the device: the arena of rings, the maps of program memory with their counts, page
// tables, rights of memory, regions.
#include "world.hpp"

#include <sys/mman.h>

#include <map>
#include <set>

using namespace roci;
using namespace roci::test;

namespace {

// A transport that only keeps books.
class Books : public Transport {
 public:
  uint64_t bar_read(uint32_t) override { return 0; }
  void bar_write(uint32_t, uint64_t) override {}
  void ring(unsigned, uint64_t) noexcept override {}
  DmaRange allocate(size_t bytes) override {
    if (fail_allocations) fail(ENOMEM, "none left");
    auto* memory = static_cast<std::byte*>(aligned_alloc(4096, bytes));
    std::memset(memory, 0xaa, bytes);  // arenas promise zeros
    ++chunks;
    return {reinterpret_cast<uintptr_t>(memory), memory, bytes, true};
  }
  void release(const DmaRange& chunk) noexcept override {
    --chunks;
    std::free(chunk.memory);
  }
  void map(std::span<DmaRange> ranges) override {
    for (DmaRange& range : ranges) {
      if (maps.size() >= limit) fail(ENOMEM, "no more maps");
      if (range.address == DmaRange::ANY) range.address = reinterpret_cast<uintptr_t>(range.memory);
      for (const auto& [address, other] : maps) {
        if (range.address < address + other.bytes && address < range.address + range.bytes) {
          fail(EEXIST, "0x%llx", static_cast<unsigned long long>(range.address));
        }
      }
    }
    for (const DmaRange& range : ranges) maps[range.address] = range;
    calls += ranges.size();
  }
  void unmap(std::span<const DmaRange> ranges) noexcept override {
    for (const DmaRange& range : ranges) {
      const auto found = maps.find(range.address);
      CHECK(found != maps.end());
      if (found == maps.end()) continue;
      CHECK(found->second.bytes == range.bytes);
      maps.erase(found);
    }
  }
  bool wait(unsigned, std::chrono::milliseconds) override { return true; }
  void wake(unsigned) noexcept override {}
  std::optional<Neighbour> resolve(const Gid&) override { return std::nullopt; }
  void abandon_after_fork() noexcept override {}

  size_t limit = 1u << 20;
  size_t calls = 0;
  int chunks = 0;
  bool fail_allocations = false;
  std::map<uint64_t, DmaRange> maps;
};

constexpr size_t P = 4096;

}  // namespace

TEST_CASE("arena: zeroed, aligned, disjoint, given back") {
  Books books;
  Random random;
  {
    DmaArena arena(books);
    std::vector<DmaBuffer> held;
    std::map<uint64_t, size_t> used;
    for (int i = 0; i < 4000; ++i) {
      if (held.size() > 100 || (!held.empty() && random.between(0, 2) == 0)) {
        const size_t victim = random.between(0, held.size() - 1);
        used.erase(held[victim].address());
        std::swap(held[victim], held.back());
        held.pop_back();
        continue;
      }
      const size_t alignment = size_t{64} << random.between(0, 6);
      const size_t bytes = random.between(1, random.between(0, 20) == 0 ? 5000000 : 20000);
      DmaBuffer buffer = arena.allocate(bytes, alignment);
      REQUIRE(buffer.address() % alignment == 0);
      REQUIRE(buffer.size() == bytes);
      for (size_t b = 0; b < bytes; b += 61) REQUIRE(buffer.data()[b] == std::byte{0});
      std::memset(buffer.data(), 0x55, bytes);
      const auto next = used.lower_bound(buffer.address());
      if (next != used.end()) REQUIRE(buffer.address() + bytes <= next->first);
      if (next != used.begin()) {
        REQUIRE(std::prev(next)->first + std::prev(next)->second <= buffer.address());
      }
      used[buffer.address()] = bytes;
      held.push_back(std::move(buffer));
    }
    held.clear();
    // One chunk stays for the next object, as one piece.
    CHECK(arena.chunks() == 1);
    const DmaBuffer whole = arena.allocate(2 * 1024 * 1024, 4096);
    CHECK(arena.chunks() == 1);
    books.fail_allocations = true;
    CHECK(error_of([&] { arena.allocate(64, 64); }) == ENOMEM);
  }
  CHECK(books.chunks == 0);
}

TEST_CASE("maps: gaps only, counted, gone with the last") {
  Books books;
  DmaMap map(books, DmaPolicy::DIRECT);
  Buffer memory(16 * P);
  uint8_t* m = memory.data();
  {
    // Sub-page regions in one page: one map.
    auto a = map.acquire(m + 10, 20, true);
    auto b = map.acquire(m + 100, 20, true);
    CHECK(books.maps.size() == 1);
    CHECK(map.bytes() == P);
    CHECK(a.extents().size() == 1);
    CHECK(a.extents()[0].address == memory.address() + 10);
    CHECK(a.extents()[0].bytes == 20);
    a.reset();
    CHECK(books.maps.size() == 1);
    b.reset();
    CHECK(books.maps.empty());
  }
  auto left = map.acquire(m + 2 * P, 2 * P, true);        // 2, 3
  auto right = map.acquire(m + 6 * P, P, true);           // 6
  auto all = map.acquire(m + P + 1, 8 * P - 2, true);     // 1…8: gaps 1, 4-5, 7-8
  CHECK(map.pieces() == 5);
  CHECK(map.bytes() == 8 * P);
  CHECK(all.extents().size() == 1);
  CHECK(all.extents()[0].bytes == 8 * P - 2);
  left.reset();
  CHECK(map.bytes() == 8 * P);
  auto again = map.acquire(m + 3 * P, 1, true);  // inside the piece of `left`, kept by `all`
  all.reset();
  CHECK(map.bytes() == 3 * P);  // piece 2-3 by `again`, 6 by `right`
  again.reset();
  right.reset();
  CHECK(books.maps.empty());
}

TEST_CASE("maps: random regions against a model of pages") {
  Books books;
  const auto policy = GENERATE(DmaPolicy::DIRECT, DmaPolicy::SCATTER);
  DmaMap map(books, policy);
  Buffer memory(64 * P);
  Random random;
  CAPTURE(random.seed());
  struct Held {
    DmaMap::Hold hold;
    size_t from, bytes;
  };
  std::vector<Held> held;
  for (int i = 0; i < 2000; ++i) {
    if (!held.empty() && random.between(0, 1) == 0) {
      std::swap(held[random.between(0, held.size() - 1)], held.back());
      held.pop_back();
    } else {
      const size_t from = random.between(0, 60 * P);
      const size_t bytes = random.between(1, std::min<size_t>(64 * P - from, 10 * P));
      held.push_back({map.acquire(memory.data() + from, bytes, true), from, bytes});
    }
    // Every byte of every region is reached through exactly the memory it lies in.
    for (const Held& h : held) {
      size_t at = 0;
      for (const DmaExtent& extent : h.hold.extents()) {
        for (uint64_t byte : {uint64_t{0}, extent.bytes - 1}) {
          const auto found = std::prev(books.maps.upper_bound(extent.address + byte));
          REQUIRE(extent.address + byte < found->first + found->second.bytes);
          REQUIRE(found->second.memory + (extent.address + byte - found->first) ==
                  reinterpret_cast<std::byte*>(memory.data()) + h.from + at + byte);
        }
        at += extent.bytes;
      }
      REQUIRE(at == h.bytes);
    }
    if (held.empty()) REQUIRE(books.maps.empty());
  }
  held.clear();
  CHECK(books.maps.empty());
}

TEST_CASE("maps: scattered pages") {
  Books books;
  DmaMap map(books, DmaPolicy::SCATTER);
  Buffer memory(64 * P);
  auto a = map.acquire(memory.data(), 64 * P, true);
  CHECK(map.pieces() == 64);
  CHECK(a.extents().size() > 32);  // hardly any two neighbours stay neighbours
  std::set<uint64_t> pages;
  for (const auto& extent : a.extents()) pages.insert(extent.address);
  CHECK(pages.size() == a.extents().size());
  // A second region of the same memory uses the same pages.
  const size_t before = books.calls;
  auto b = map.acquire(memory.data() + P, P, true);
  CHECK(books.calls == before);
}

TEST_CASE("maps: failure leaves nothing behind") {
  Books books;
  DmaMap map(books, GENERATE(DmaPolicy::DIRECT, DmaPolicy::SCATTER));
  Buffer memory(8 * P);
  auto first = map.acquire(memory.data() + 2 * P, P, true);
  books.limit = 1;
  CHECK(error_of([&] { map.acquire(memory.data(), 8 * P, true); }) == ENOMEM);
  CHECK(map.pieces() == 1);
  books.limit = 100;
  first.reset();
  CHECK(books.maps.empty());
}

TEST_CASE("maps: memory that became writable is mapped a second time") {
  Books books;
  DmaMap map(books, DmaPolicy::DIRECT);
  Buffer memory(4 * P);
  auto read_only = map.acquire(memory.data(), 2 * P, false);
  auto writable = map.acquire(memory.data() + P, 2 * P, true);
  for (const auto& extent : writable.extents()) {
    CHECK(std::prev(books.maps.upper_bound(extent.address))->second.writable);
  }
  CHECK(writable.extents()[0].bytes == 2 * P);
  read_only.reset();
  writable.reset();
  CHECK(books.maps.empty());
}

TEST_CASE("page tables") {
  // Extents as SCATTER makes them: whole pages but for the ends.
  const DmaExtent small[] = {{0x10000 + 100, 4096 - 100}, {0x50000, 4096}, {0x30000, 7}};
  PageTable table = make_page_table(small, 12, 30);
  CHECK(table.page_shift == 12);
  CHECK(table.first_byte_offset == 100);
  CHECK(table.pages == std::vector<uint64_t>{0x10000, 0x50000, 0x30000});
  // 2 MB pieces: one entry each.
  const uint64_t M = 1 << 20;
  const DmaExtent big[] = {{10 * M + 5, 2 * M - 5}, {102 * M, 4 * M}, {40 * M, M}};
  table = make_page_table(big, 12, 30);
  CHECK(table.page_shift == 21);
  CHECK(table.first_byte_offset == 5);
  CHECK(table.pages == std::vector<uint64_t>{10 * M, 102 * M, 104 * M, 40 * M});
  // Limits of the device.
  CHECK(make_page_table(big, 12, 16).page_shift == 16);
  CHECK(make_page_table(big, 12, 16).pages.size() == (2 + 4 + 1) * 16);
}

TEST_CASE("rights of memory") {
  auto* m = static_cast<uint8_t*>(
      mmap(nullptr, 5 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(m != MAP_FAILED);
  REQUIRE(mprotect(m + 2 * P, P, PROT_READ) == 0);
  REQUIRE(mprotect(m + 3 * P, P, PROT_NONE) == 0);
  REQUIRE(munmap(m + 4 * P, P) == 0);
  std::string text;
  CHECK(check_memory(m, 2 * P, true));
  CHECK(check_memory(m + 1, 2 * P - 1, false));
  CHECK_FALSE(check_memory(m, 3 * P, false));  // readable, not all writable
  CHECK(error_of([&] { check_memory(m, 2 * P + 1, true); }, &text) == EFAULT);
  CHECK(text.find("read-only") != std::string::npos);
  CHECK(text.find("IBV_ACCESS_LOCAL_WRITE") != std::string::npos);
  CHECK(error_of([&] { check_memory(m + 3 * P, 1, false); }, &text) == EFAULT);
  CHECK(error_of([&] { check_memory(m, 5 * P, false); }) == EFAULT);
  CHECK(error_of([&] { check_memory(m + 4 * P, 1, false); }, &text) == EFAULT);
  CHECK(text.find("not mapped") != std::string::npos);
  munmap(m, 4 * P);
  // Nothing is there at all.
  CHECK(error_of([&] { check_memory(reinterpret_cast<void*>(P), P, false); }) == EFAULT);
  CHECK(error_of([&] { check_memory(reinterpret_cast<void*>(~uintptr_t{0} - 2 * P), P, false); }) ==
        EFAULT);
}

// ---- regions ------------------------------------------------------------------------------------

TEST_CASE("regions: rights and errors") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  Buffer memory(4 * P);
  const auto reg = [&](void* address, size_t bytes, unsigned access) {
    return error_of([&] { Mr mr(host.pd, address, bytes, 0, access); });
  };
  CHECK(reg(memory.data(), 100, 0) == 0);
  CHECK(reg(memory.data(), 100, ALL_ACCESS) == 0);
  CHECK(reg(memory.data(), 0, 0) == EINVAL);
  CHECK(reg(memory.data(), 100, IBV_ACCESS_REMOTE_WRITE) == EINVAL);
  CHECK(reg(memory.data(), 100, IBV_ACCESS_REMOTE_ATOMIC) == EINVAL);
  CHECK(reg(memory.data(), 100, IBV_ACCESS_ON_DEMAND) == EOPNOTSUPP);
  CHECK(reg(memory.data(), 100, IBV_ACCESS_HUGETLB) == EOPNOTSUPP);
  CHECK(reg(memory.data(), 100, 1u << 15) == EINVAL);
  // Optional flags are hints.
  CHECK(reg(memory.data(), 100, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING) == 0);
  CHECK(reg(memory.data(), 100, IBV_ACCESS_OPTIONAL_RANGE) == 0);
  CHECK(reg(memory.data(), (size_t{1} << 40) + 1, 0) == EINVAL);
  void* read_only = mmap(nullptr, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(reg(read_only, P, IBV_ACCESS_LOCAL_WRITE) == EFAULT);
  CHECK(reg(read_only, P, IBV_ACCESS_REMOTE_READ) == 0);
  munmap(read_only, P);
  CHECK(reg(read_only, P, 0) == EFAULT);
  CHECK(host.device->dma_map().pieces() == 0);
  CHECK(nic.violations() == std::vector<std::string>{});
}

TEST_CASE("regions: what the device is told") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  DeviceOptions options;
  options.dma = GENERATE(DmaPolicy::DIRECT, DmaPolicy::SCATTER);
  Host host(make_inproc_transport(nic), options);
  Buffer memory(40 * P);
  Mr mr(host.pd, memory.data() + 123, 10 * P, 0x5000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  const auto entry = nic.mpt(mr.rkey());
  REQUIRE(entry);
  using E = hwif::MptEntry;
  CHECK(entry->get<E::iova>() == 0x5000);
  CHECK(entry->get<E::length>() == 10 * P);
  CHECK(entry->get<E::rights>().words[0] == 5);
  CHECK(entry->get<E::pd>() == host.pd.number());
  const bool scatter = options.dma == DmaPolicy::SCATTER;
  CHECK(entry->get<E::contiguous>() == !scatter);
  CHECK(entry->get<E::first_byte_offset>() == (scatter ? 123u : 0u));
  if (!scatter) CHECK(entry->get<E::table_address>() == memory.address() + 123);
  if (scatter) CHECK(entry->get<E::table_address>() % 64 == 0);
  CHECK(host.device->dma_map().bytes() == 11 * P);

  // Zero based: addresses count from the region's begin.
  Mr zero(host.pd, memory.data() + 20 * P, P, memory.address() + P,
          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
  CHECK(nic.mpt(zero.lkey())->get<E::iova>() == 0);

  // Reregistration keeps the keys and moves the maps.
  const uint32_t lkey = mr.lkey();
  mr.reregister(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.data() + 30 * P, 2 * P, 0);
  CHECK(mr.lkey() == lkey);
  CHECK(nic.mpt(lkey)->get<E::length>() == 2 * P);
  CHECK(nic.mpt(lkey)->get<E::iova>() == memory.address() + 30 * P);
  CHECK(nic.mpt(lkey)->get<E::rights>().words[0] == 5);
  CHECK(host.device->dma_map().bytes() == 3 * P);
  mr.reregister(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, ALL_ACCESS);
  CHECK(nic.mpt(lkey)->get<E::rights>().words[0] == 15);
  Pd other(host.context);
  mr.reregister(IBV_REREG_MR_CHANGE_PD, &other, nullptr, 0, 0);
  CHECK(nic.mpt(lkey)->get<E::pd>() == other.number());
  CHECK(error_of([&] { other.destroy(); }) == EBUSY);
  // A failure leaves it as it was.
  CHECK(error_of([&] {
          mr.reregister(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, reinterpret_cast<void*>(P), P, 0);
        }) == EFAULT);
  CHECK(nic.mpt(lkey)->get<E::length>() == 2 * P);
  mr.destroy();
  CHECK_FALSE(nic.mpt(lkey));
  CHECK(host.device->dma_map().bytes() == P);
  CHECK(nic.violations() == std::vector<std::string>{});
}

// What the region of a WRITE's target becomes while it is used: the bytes have to land in its buffer,
// and nowhere else, whoever got memory of the host stack meanwhile.
TEST_CASE("regions: a new domain, new rights or a refusal leave the page table where the NIC reads it") {
  DeviceOptions options;
  options.dma = DmaPolicy::SCATTER;
  Pair pair(options);
  Region from(pair.a.pd, 8 * P);
  Buffer memory(8 * P);
  Pd other(pair.b.context);
  std::vector<std::unique_ptr<Region>> later;
  uint8_t fill = 0;
  const auto write = [&](const Mr& mr) {
    // Page tables of the same size: they get what was given back.
    for (int i = 0; i < 3; ++i) later.push_back(std::make_unique<Region>(pair.b.pd, 8 * P));
    std::memset(from.buffer.data(), ++fill, 8 * P);
    std::memset(memory.data(), 0, 8 * P);
    ibv_sge sge = from.sge(0, 8 * P);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 1);
    wr.wr.rdma.remote_addr = memory.address();
    wr.wr.rdma.rkey = mr.rkey();
    REQUIRE(post(pair.a_qp, wr) == 0);
    REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
    CHECK(std::memcmp(memory.data(), from.buffer.data(), 8 * P) == 0);
    for (const auto& region : later) {
      CHECK(std::count(region->buffer.data(), region->buffer.data() + 8 * P, 0) == 8 * P);
    }
  };
  auto mr = std::make_unique<Mr>(other, memory.data(), 8 * P, memory.address(), ALL_ACCESS);
  mr->reregister(IBV_REREG_MR_CHANGE_PD, &pair.b.pd, nullptr, 0, 0);
  write(*mr);
  mr->reregister(IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, &pair.b.pd, nullptr, 0,
                 ALL_ACCESS);
  write(*mr);
  mr->reregister(IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION, &pair.b.pd,
                 memory.data(), 8 * P, 0);
  write(*mr);
  pair.b_nic.fail_next(hwif::AdminOpcode::REREG_MR, hwif::AdminStatus::BUSY, {}, 0);
  CHECK(error_of([&] {
          mr->reregister(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, ALL_ACCESS);
        }) == EBUSY);
  write(*mr);
  // Its owner forgets it although the NIC keeps it.
  const size_t mapped = pair.b.device->dma_map().bytes();
  pair.b_nic.fail_next(hwif::AdminOpcode::DESTROY_MR, hwif::AdminStatus::BUSY, {}, 0);
  const uint32_t rkey = mr->rkey();
  mr.reset();
  CHECK(pair.b.device->dma_map().bytes() == mapped);
  REQUIRE(pair.b_nic.mpt(rkey));
  for (int i = 0; i < 3; ++i) later.push_back(std::make_unique<Region>(pair.b.pd, 8 * P));
  ibv_sge sge = from.sge(0, 8 * P);
  ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 1);
  wr.wr.rdma.remote_addr = memory.address();
  wr.wr.rdma.rkey = rkey;
  std::memset(memory.data(), 0, 8 * P);
  REQUIRE(post(pair.a_qp, wr) == 0);
  REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
  CHECK(std::memcmp(memory.data(), from.buffer.data(), 8 * P) == 0);
}

TEST_CASE("regions: the advertised numbers exist") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  Buffer memory(P);
  std::vector<std::unique_ptr<Mr>> all;
  for (unsigned i = 0; i < host.device->limits().max_mrs; ++i) {
    all.push_back(std::make_unique<Mr>(host.pd, memory.data(), P, 0, 0u));
  }
  CHECK(error_of([&] { Mr mr(host.pd, memory.data(), P, 0, 0); }) == ENOMEM);
  CHECK(host.device->dma_map().pieces() == 1);
  all.clear();
  CHECK(host.device->dma_map().pieces() == 0);
  // The largest region.
  const size_t huge = host.device->limits().max_mr_bytes;
  void* m = mmap(nullptr, huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m != MAP_FAILED) {
    CHECK(error_of([&] { Mr mr(host.pd, m, huge, 0, 0); }) == 0);
    munmap(m, huge);
  }
}
