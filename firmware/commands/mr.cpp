// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// CREATE_MR, REREG_MR, DESTROY_MR, QUERY_MR.
//
// The memory protection table is the table of regions: the firmware keeps only which entries are free.
// An entry keeps its key byte and its incarnation when it is freed, so that old keys and cached page
// addresses match nothing. Several regions of one buffer are several entries. Page tables are the
// host's; they are read when an access needs them (a bad one is a bus error of that access).
#include "call.hpp"
#include "context.hpp"

namespace roci::fw {

namespace {

using M = hwif::MptEntry;
using P = hwif::CreateMrParams;
using Rights = hwif::AccessRights;

constexpr unsigned MIN_PAGE_SHIFT = 12, MAX_PAGE_SHIFT = 30;
constexpr unsigned TABLE_ALIGN = 64;           // a line of context_mtt_cache: eight pages

// Checks the rights of a region (IBTA 10.6.3.1: what the peer may change, we may change).
bool check_rights(Call& call, Rights rights) {
  if ((rights.get<Rights::remote_write>() || rights.get<Rights::remote_atomic>()) &&
      !rights.get<Rights::local_write>()) {
    call.invalid(AdminField::LOCAL_WRITE, 1);
    return false;
  }
  return true;
}

// Checks where a region lies.
bool check_memory(Call& call, const P& p) {
  const uint64_t iova = p.get<P::iova>();
  const uint64_t length = p.get<P::length>();
  const uint32_t shift = p.get<P::page_shift>();
  const uint32_t offset = p.get<P::first_byte_offset>();
  if (p.get<P::unbounded>()) {
    if (!call.function().privileged) {
      call.fail(AdminStatus::NOT_PERMITTED, AdminField::UNBOUNDED);
      return false;
    }
    if (!p.get<P::contiguous>()) {
      call.invalid(AdminField::CONTIGUOUS, 1);
      return false;
    }
  } else if (iova + length < iova) {
    // The last byte may be the last of the address space, nothing lies behind it.
    if (iova + length != 0) {
      call.invalid(AdminField::LENGTH);
      return false;
    }
  }
  if (p.get<P::contiguous>()) {
    if (offset != 0) {
      call.invalid(AdminField::FIRST_BYTE_OFFSET);
      return false;
    }
  } else {
    if (shift < MIN_PAGE_SHIFT || shift > MAX_PAGE_SHIFT) {
      call.invalid(AdminField::PAGE_SHIFT, MAX_PAGE_SHIFT);
      return false;
    }
    if (offset >> shift != 0) {
      call.invalid(AdminField::FIRST_BYTE_OFFSET, (1u << shift) - 1);
      return false;
    }
    // Lines of a table are read as a whole: one that began elsewhere would bring foreign entries.
    if (p.get<P::table_address>() % TABLE_ALIGN != 0) {
      call.invalid(AdminField::TABLE_ADDRESS);
      return false;
    }
  }
  return true;
}

bool check_base(Call& call, const P& p, Rights rights) {
  if (rights.get<Rights::zero_based>() && p.get<P::iova>() != 0) {
    call.invalid(AdminField::IOVA);
    return false;
  }
  return true;
}

// Puts place and pages into an entry.
void set_memory(M& entry, const P& p) {
  entry.set<M::iova>(p.get<P::iova>());
  entry.set<M::length>(p.get<P::length>());
  entry.set<M::table_address>(p.get<P::table_address>());
  entry.set<M::first_byte_offset>(p.get<P::first_byte_offset>());
  entry.set<M::contiguous>(p.get<P::contiguous>());
  entry.set<M::unbounded>(p.get<P::unbounded>());
  entry.set<M::page_shift>(p.get<P::contiguous>() ? uint8_t{MIN_PAGE_SHIFT}
                                                  : p.get<P::page_shift>());
}

// Writes an entry; the word that makes its key valid comes last.
void write_entry(unsigned n, const M& entry) {
  Image image;
  image.row(CtxColumn::MPT, n, entry, 4, 1);
  image.row(CtxColumn::MPT, n, entry, 0, 4);
  image.send();
}

uint64_t keys(unsigned n, const M& entry) {
  using K = hwif::KeysResult;
  const uint32_t key = n << 8 | entry.get<M::key_byte>();
  K result{};
  result.set<K::lkey>(key);
  result.set<K::rkey>(key);
  return row_word(result, 0);
}

// Reads words 3 and 4 of the entry: all but place and pages. False: not a region of this function.
bool find_mr(unsigned n, unsigned fn, M& entry) {
  if (n >= MRS) return false;
  ctx_read_row(entry, CtxColumn::MPT, n, 3, 2);
  return entry.get<M::state>() == hwif::MrState::VALID &&
         entry.get<M::function_number>() == fn;
}

}  // namespace

Outcome create_mr(Call& call) {
  const uint32_t pdn = call.object();
  Object* pd = find(state.pds, pdn, call.fn);
  if (pd == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  const P& p = call.params<hwif::admin::CreateMr>();
  const Rights rights = p.get<P::rights>();
  if (!check_rights(call, rights) || !check_memory(call, p) || !check_base(call, p, rights)) {
    return Outcome::DONE;
  }
  if (!quota_left(call.function(), KIND_MR)) return call.fail(AdminStatus::NO_RESOURCES);
  const unsigned n = state.free_mrs.take();
  if (n == MRS) return call.fail(AdminStatus::NO_RESOURCES);

  M entry;
  ctx_read_row(entry, CtxColumn::MPT, n, 3, 2);
  const auto key = static_cast<uint8_t>(entry.get<M::key_byte>() + 1);
  const auto incarnation = static_cast<uint8_t>(entry.get<M::incarnation>() + 1);
  entry = M{};
  set_memory(entry, p);
  entry.set<M::key_byte>(key);
  entry.set<M::incarnation>(incarnation);
  entry.set<M::rights>(rights);
  entry.set<M::kind>(hwif::MrKind::MR);
  entry.set<M::state>(hwif::MrState::VALID);
  entry.set<M::pd>(static_cast<uint16_t>(pdn));
  entry.set<M::function_number>(static_cast<uint8_t>(call.fn));
  write_entry(n, entry);
  ++pd->refs;
  ++call.function().counts[KIND_MR];
  call.reply.set_result(keys(n, entry));
  return call.created(n);
}

namespace {

// Word 3 of the entry is known.
void revoke_read(unsigned n, M& entry) {
  entry.set<M::state>(hwif::MrState::CLOSING);
  ctx_write(CtxColumn::MPT, n, 3, row_word(entry, 3));
}

}  // namespace

void revoke_mr(unsigned n) {
  M entry;
  ctx_read_row(entry, CtxColumn::MPT, n, 3, 1);
  revoke_read(n, entry);
}

void free_mr(unsigned n) {
  M entry;
  ctx_read_row(entry, CtxColumn::MPT, n, 3, 2);
  --state.pds[entry.get<M::pd>()].refs;
  --state.fns[entry.get<M::function_number>()].counts[KIND_MR];
  M empty{};
  empty.set<M::key_byte>(entry.get<M::key_byte>());
  empty.set<M::incarnation>(entry.get<M::incarnation>());
  ctx_write(CtxColumn::MPT, n, 3, row_word(empty, 3));
  ctx_write(CtxColumn::MPT, n, 4, row_word(empty, 4));
  state.free_mrs.give(n);
}

Outcome destroy_mr(Call& call) {
  const uint32_t n = call.object();
  M entry;
  if (!find_mr(n, call.fn, entry)) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  if (!can_wait(call)) return Outcome::LATER;
  revoke_read(n, entry);
  return wait_for_fence(call);
}

Outcome rereg_mr(Call& call) {
  using I = hwif::ReregMrInput;
  const uint32_t n = call.object();
  M entry;
  if (!find_mr(n, call.fn, entry)) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  const I& input = call.input<hwif::admin::ReregMr>();
  const P& memory = part<I::memory>(input);
  const bool moves = input.get<I::change_translation>();
  const Rights rights =
      input.get<I::change_rights>() ? memory.get<P::rights>() : entry.get<M::rights>();
  if (!check_rights(call, rights)) return Outcome::DONE;
  if (moves && (!check_memory(call, memory) || !check_base(call, memory, rights))) {
    return Outcome::DONE;
  }
  if (!moves && rights.get<Rights::zero_based>()) {
    ctx_read_row(entry, CtxColumn::MPT, n, 0, 1);
    if (entry.get<M::iova>() != 0) return call.invalid(AdminField::ZERO_BASED);
  }
  if (input.get<I::change_pd>() && find(state.pds, input.get<I::pd>(), call.fn) == nullptr) {
    return call.fail(AdminStatus::NOT_FOUND, AdminField::PD);
  }
  if (!can_wait(call)) return Outcome::LATER;
  revoke_read(n, entry);
  return wait_for_fence(call);
}

void finish_rereg_mr(unsigned n, Slot& slot, Reply& reply) {
  using I = hwif::ReregMrInput;
  Reads reads;
  M& entry = reads.add<M>(CtxColumn::MPT, n, 5);
  reads.start();
  const I& input = *reinterpret_cast<const I*>(slot.input);
  const P& memory = part<I::memory>(input);
  reads.wait();
  if (input.get<I::change_pd>()) {
    // It was there when the command came, but commands of other queues do not wait for us.
    Object* pd = find(state.pds, input.get<I::pd>(), entry.get<M::function_number>());
    if (pd == nullptr) {
      reply.fail(AdminStatus::NOT_FOUND, AdminField::PD, 0);
    } else {
      --state.pds[entry.get<M::pd>()].refs;
      ++pd->refs;
      entry.set<M::pd>(static_cast<uint16_t>(input.get<I::pd>()));
    }
  }
  if (!reply.failed()) {
    if (input.get<I::change_translation>()) set_memory(entry, memory);
    if (input.get<I::change_rights>()) entry.set<M::rights>(memory.get<P::rights>());
  }
  entry.set<M::incarnation>(static_cast<uint8_t>(entry.get<M::incarnation>() + 1));
  entry.set<M::state>(hwif::MrState::VALID);
  // As write_entry: the word that makes the key valid comes last.
  ctx_write(CtxColumn::MPT, n, 4, row_word(entry, 4));
  reads.write_back(4);
  reply.set_result(keys(n, entry));
}

Outcome query_mr(Call& call) {
  const uint32_t n = call.object();
  M entry;
  if (!find_mr(n, call.fn, entry)) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  auto* const out = output<hwif::QueryMrOutput>();
  if (out == nullptr) return Outcome::LATER;
  static_assert(hwif::QueryMrOutput::BYTES == M::BYTES);
  Reads reads;
  const M& row = reads.add<M>(CtxColumn::MPT, n, 5);
  reads.start();
  reads.wait();
  constexpr unsigned PER_8 = 8 / sizeof(M::Word);
  auto& image = *reinterpret_cast<M*>(out);
  copy_words(image, row, 0, 5 * PER_8);
  copy_words(image, M{}, 5 * PER_8, 3 * PER_8);
  return write_output(call, out, hwif::QueryMrOutput::BYTES);
}

}  // namespace roci::fw
