// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Memory regions: memory is mapped for DMA page by page (DmaMap); if the device sees it in one piece
// it needs no page table, else the table is written before the command.
#include "admin_queue.hpp"

#include <roci/error.hpp>
#include <roci/log.hpp>
#include <roci/mr.hpp>

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>

namespace roci {
namespace {

constexpr unsigned REMOTE_WRITES = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr unsigned SUPPORTED = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                               IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED;

void check_access(unsigned access) {
  if (access & IBV_ACCESS_ON_DEMAND) fail(EOPNOTSUPP, "access: no on-demand paging");
  if (access & IBV_ACCESS_HUGETLB) fail(EOPNOTSUPP, "access: IBV_ACCESS_HUGETLB is not needed here");
  if (access & ~(SUPPORTED | static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE))) {
    fail(EINVAL, "access 0x%x has unknown flags", access);
  }
  // IBTA 10.6.3.1: remote writes need local write.
  if ((access & REMOTE_WRITES) && !(access & IBV_ACCESS_LOCAL_WRITE)) {
    fail(EINVAL, "access 0x%x: remote write and atomics need IBV_ACCESS_LOCAL_WRITE", access);
  }
}

}  // namespace

hwif::AccessRights access_rights(unsigned access, bool atomics) noexcept {
  using R = hwif::AccessRights;
  R rights{};
  rights.set<R::local_write>((access & IBV_ACCESS_LOCAL_WRITE) != 0);
  rights.set<R::remote_write>((access & IBV_ACCESS_REMOTE_WRITE) != 0);
  rights.set<R::remote_read>((access & IBV_ACCESS_REMOTE_READ) != 0);
  rights.set<R::remote_atomic>(atomics && (access & IBV_ACCESS_REMOTE_ATOMIC) != 0);
  rights.set<R::mw_bind>((access & IBV_ACCESS_MW_BIND) != 0);
  rights.set<R::zero_based>((access & IBV_ACCESS_ZERO_BASED) != 0);
  return rights;
}

Mr::Memory Mr::prepare(void* address, size_t bytes, uint64_t iova, unsigned access) {
  Device& device = pd_->device();
  const DeviceLimits& limits = device.limits();
  if (bytes == 0) fail(EINVAL, "length 0: an empty region");
  if (bytes > limits.max_mr_bytes ||
      reinterpret_cast<uintptr_t>(address) + bytes < reinterpret_cast<uintptr_t>(address)) {
    fail(EINVAL, "length %zu: at most %llu (max_mr_size)", bytes,
         static_cast<unsigned long long>(limits.max_mr_bytes));
  }
  check_access(access);
  const bool writable = check_memory(address, bytes, (access & IBV_ACCESS_LOCAL_WRITE) != 0);
  Memory memory;
  memory.hold = device.dma_map().acquire(address, bytes, writable);
  using P = hwif::CreateMrParams;
  P& params = memory.params;
  params.set<P::iova>((access & IBV_ACCESS_ZERO_BASED) ? 0 : iova);
  params.set<P::length>(bytes);
  params.set<P::rights>(access_rights(access, limits.atomics));
  const auto& extents = memory.hold.extents();
  if (extents.size() == 1) {
    params.set<P::contiguous>(true);
    params.set<P::table_address>(extents.front().address);
    params.set<P::page_shift>(static_cast<uint8_t>(limits.min_page_shift));
  } else {
    const PageTable table =
        make_page_table(extents, limits.min_page_shift, limits.max_page_shift);
    // Aligned, because the device reads it by lines of 64 bytes.
    memory.table = device.arena().allocate(table.pages.size() * sizeof(uint64_t), 64);
    std::memcpy(memory.table.data(), table.pages.data(), memory.table.size());
    params.set<P::table_address>(memory.table.address());
    params.set<P::first_byte_offset>(table.first_byte_offset);
    params.set<P::page_shift>(static_cast<uint8_t>(table.page_shift));
  }
  return memory;
}

Mr::Mr(Pd& pd, void* address, size_t bytes, uint64_t iova, unsigned access)
    : pd_(&pd), address_(address), bytes_(bytes), iova_(iova), access_(access) {
  Device& device = pd.device();
  device.check_alive();
  Memory memory = prepare(address, bytes, iova, access);
  const auto answer = device.admin().run<hwif::admin::CreateMr>(pd.number(), memory.params);
  index_ = answer.object;
  lkey_ = answer.result.get<hwif::KeysResult::lkey>();
  rkey_ = answer.result.get<hwif::KeysResult::rkey>();
  hold_ = std::move(memory.hold);
  table_ = std::move(memory.table);
  pd.add_user();
  alive_ = true;
}

Mr::~Mr() {
  if (!alive_) return;
  try {
    destroy();
  } catch (const Error& error) {
    log(LogLevel::WARN, "deregistering the region with lkey 0x%x: %s", lkey_, error.what());
    // The device may go on using it: maps and table have to stay.
    hold_.abandon();
    table_.abandon();
    pd_->remove_user();
  }
}

void Mr::reregister(int flags, Pd* pd, void* address, size_t bytes, unsigned access) {
  Device& device = pd_->device();
  device.check_alive();
  const bool translation = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool rights = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  const bool domain = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  void* const new_address = translation ? address : address_;
  const size_t new_bytes = translation ? bytes : bytes_;
  const uint64_t new_iova = translation ? reinterpret_cast<uintptr_t>(address) : iova_;
  const unsigned new_access = rights ? access : access_;

  // The memory is prepared also if only rights change: with LOCAL_WRITE it has to be writable, and
  // another hold may see it at other addresses. If only the domain changes the device keeps the
  // translation it has, and so do we.
  const bool moves = translation || rights;
  Memory memory;
  if (moves) memory = prepare(new_address, new_bytes, new_iova, new_access);
  using I = hwif::ReregMrInput;
  I input{};
  input.set<I::memory>(memory.params);
  input.set<I::change_translation>(moves);
  input.set<I::change_rights>(rights);
  input.set<I::change_pd>(domain);
  if (domain) input.set<I::pd>(pd->number());
  device.admin().run<hwif::admin::ReregMr>(index_, {}, input);
  if (moves) {
    std::swap(hold_, memory.hold);
    std::swap(table_, memory.table);
  }
  if (domain) {
    pd_->remove_user();
    pd_ = pd;
    pd_->add_user();
  }
  address_ = new_address;
  bytes_ = new_bytes;
  iova_ = new_iova;
  access_ = new_access;
}

void Mr::destroy() {
  Device& device = pd_->device();
  // While windows are bound the device refuses, and everything stays as it is.
  device.admin().destroy<hwif::admin::DestroyMr>(index_);
  alive_ = false;
  pd_->remove_user();
  hold_.reset();
  table_.reset();
}

}  // namespace roci
