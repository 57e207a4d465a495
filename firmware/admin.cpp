// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Dispatch of admin commands: the checks that are the same for all, the answers, the output buffers.
#include "call.hpp"
#include "context.hpp"

namespace roci::fw {

State state;

namespace {

using Handler = Outcome (*)(Call&);

struct Entry {
  Handler handler;                 // nullptr: no such command, or one this build does not have
  uint16_t input;                  // bytes
  uint16_t output;                 // bytes (of an element); with a bit of Special, looked at in detail
};
enum Special : uint16_t { MANAGEMENT = 0x8000, ARRAY = 0x4000, OUTPUT_MASK = 0x3fff };

constexpr unsigned COMMANDS = 0x50;

template <class T>
constexpr unsigned bytes_of() {
  if constexpr (__is_same(T, void)) {
    return 0;
  } else {
    return T::BYTES;
  }
}

struct Table {
  Entry entries[COMMANDS];

  template <class C>
  constexpr void add(Handler handler) {
    static_assert(bytes_of<typename C::Input>() <= sizeof(Slot::input));
    static_assert(bytes_of<typename C::Input>() % 8 == 0 &&
                  bytes_of<typename C::Output>() <= OUTPUT_MASK);
    entries[static_cast<unsigned>(C::OPCODE)] = {
        handler, static_cast<uint16_t>(bytes_of<typename C::Input>()),
        static_cast<uint16_t>(bytes_of<typename C::Output>() |
                              (C::MANAGEMENT_ONLY ? MANAGEMENT : 0) |
                              (C::OUTPUT_IS_ARRAY ? ARRAY : 0))};
  }
};

constexpr Table make_table() {
  namespace a = hwif::admin;
  Table t{};
  t.add<a::Nop>(nop);
  t.add<a::QueryDevice>(query_device);
  t.add<a::SetFunction>(set_function);
  t.add<a::QueryFunction>(query_function);
  t.add<a::FunctionReset>(function_reset);
  t.add<a::CreatePd>(create_pd);
  t.add<a::DestroyPd>(destroy_pd);
  t.add<a::CreateMr>(create_mr);
  t.add<a::ReregMr>(rereg_mr);
  t.add<a::DestroyMr>(destroy_mr);
  t.add<a::QueryMr>(query_mr);
  t.add<a::CreateEq>(create_eq);
  t.add<a::DestroyEq>(destroy_eq);
  t.add<a::CreateCq>(create_cq);
  t.add<a::DestroyCq>(destroy_cq);
  t.add<a::QueryCq>(query_cq);
  t.add<a::CreateSrq>(create_srq);
  t.add<a::QuerySrq>(query_srq);
  t.add<a::DestroySrq>(destroy_srq);
  t.add<a::CreateQp>(create_qp);
  t.add<a::ModifyQp>(modify_qp);
  t.add<a::QueryQp>(query_qp);
  t.add<a::DestroyQp>(destroy_qp);
  t.add<a::SetGid>(set_gid);
  t.add<a::DelGid>(del_gid);
  t.add<a::QueryGid>(query_gid);
  t.add<a::SetPkey>(set_pkey);
  t.add<a::QueryPkey>(query_pkey);
  t.add<a::QueryPort>(query_port);
  t.add<a::ModifyPort>(modify_port);
  t.add<a::QueryCounters>(query_counters);
  return t;
}

constexpr Table table = make_table();

// Answers. Up to five may be on their way (four in the engine's queue, one in hand).
constexpr unsigned REPLIES = 8;
Reply replies[REPLIES];
Reply* next_reply = replies;

// The common output buffer, with the header of a list before it: counters are read right into it. Two,
// so that the next ones are read while the last ones are written; other outputs use the first.
struct Buffer {
  uint64_t header;
  uint64_t words[OUTPUT_BYTES / 8];
};
Buffer buffers[2];

// Counters of the next piece.
uint32_t piece_of(const Output& out) {
  const uint32_t left = out.end - out.next;
  return left < OUTPUT_BYTES / 8 ? left : OUTPUT_BYTES / 8;
}

// Starts to read the next piece of the counters.
void read_piece(const Output& out) {
  Buffer& buffer = buffers[out.buffer];
  bus::ctx_failed();
  list::put_header(reinterpret_cast<uint8_t*>(&buffer), CtxColumn::COUNTER, out.next, 0,
                   list::LAST | list::READ | list::BY_INDEX | piece_of(out));
  bus::ctx_list(&buffer);
}

// Writes the piece that was read, and starts to read the one after it.
void write_piece(Output& out) {
  const uint32_t count = piece_of(out);
  bus::ctx_failed();
  bus::copy_to_host(out.fn, out.address, buffers[out.buffer].words, 8 * count);
  out.next = static_cast<uint16_t>(out.next + count);
  out.address += 8 * count;
  out.buffer ^= 1;
  if (out.next != out.end) read_piece(out);
}

using C = hwif::AdminCommand;

// The checks that are the same for all commands, one after the other, for what run() does not see at a
// glance to be right. False: the answer says what is wrong.
[[gnu::noinline]] bool acceptable(Call& call, const Entry& entry) {
  const C& command = call.command();
  if ((entry.output & MANAGEMENT) != 0 && call.fn != 0) {
    call.fail(AdminStatus::NOT_PERMITTED);
    return false;
  }
  if (command.get<C::input_length>() != entry.input) {
    call.fail(AdminStatus::BAD_LENGTH, AdminField::INPUT_LENGTH, entry.input);
    return false;
  }
  if (entry.input != 0 && !call.has_input) {
    // The length is right, so it is the address: misaligned, or not readable.
    if (command.get<C::input_address>() % 8 != 0) {
      call.invalid(AdminField::INPUT_ADDRESS);
    } else {
      call.fail(AdminStatus::BAD_ADDRESS, AdminField::INPUT_ADDRESS);
    }
    return false;
  }
  const uint32_t length = command.get<C::output_length>();
  const uint32_t bytes = entry.output & OUTPUT_MASK;
  const bool fits = (entry.output & ARRAY) == 0
                        ? length == bytes
                        // No division: elements have a power of two of bytes.
                        : length != 0 && (length & (bytes - 1)) == 0 && length <= 0x10000;
  if (!fits) {
    call.fail(AdminStatus::BAD_LENGTH, AdminField::OUTPUT_LENGTH, bytes);
    return false;
  }
  if (length != 0 && command.get<C::output_address>() % 8 != 0) {
    call.invalid(AdminField::OUTPUT_ADDRESS);
    return false;
  }
  return true;
}

// Checks and runs the command.
[[gnu::always_inline]] inline Outcome run(Call& call) {
  const C& command = call.command();
  const auto opcode = static_cast<unsigned>(command.get<C::opcode>());
  if (opcode >= COMMANDS) return call.fail(AdminStatus::UNSUPPORTED, AdminField::OPCODE);
  const Entry& entry = table.entries[opcode];
  const Handler handler = entry.handler;
  if (handler == nullptr) return call.fail(AdminStatus::UNSUPPORTED, AdminField::OPCODE);
  const bool plain = command.get<C::input_length>() == entry.input &&
                     command.get<C::output_length>() == entry.output &&
                     (entry.input == 0 || call.has_input) &&
                     (entry.output == 0 || command.get<C::output_address>() % 8 == 0);
  if (!plain && !acceptable(call, entry)) return Outcome::DONE;
  return handler(call);
}

[[gnu::always_inline]] inline void run_slot_here(unsigned fn, bool has_input) {
  Slot& slot = bus::slot(fn);
  Call call{fn, slot, has_input,
            new_reply(static_cast<uint32_t>(row_word(slot.command, 0)),
                      slot.command.get<C::object>())};
  const auto outcome = run(call);
  if (outcome == Outcome::DONE) {
    answer(fn, call.reply, true);
  } else if (outcome == Outcome::LATER) {
    slot.free[0] = has_input;
    state.held |= 1u << fn;
  }
}
[[gnu::noinline]] void run_slot(unsigned fn, bool has_input) { run_slot_here(fn, has_input); }

}  // namespace

Reply& new_reply(uint32_t command, uint32_t object) {
  Reply& reply = *next_reply;
  reply.begin(command, object);
  return reply;
}

void answer(unsigned fn, const Reply& reply, bool release) {
  // The host may use what it hears of at once: contexts are written before. Waits for the engine.
  if (bus::ctx_failed()) state.bus_failed = true;
  bus::complete(fn, reply.image(), release, reply.failed());
  next_reply = &reply == replies + REPLIES - 1 ? replies : next_reply + 1;
}

void* output_buffer() { return state.output.active ? nullptr : buffers[0].words; }

void* cleared_output_buffer(uint32_t bytes) {
  if (state.output.active) return nullptr;
  // What follows writes layouts into it, which are no uint64_t.
  using Any [[gnu::may_alias]] = uint64_t;
  for (Any* word = buffers[0].words; bytes != 0; bytes -= 16, word += 2) word[0] = word[1] = 0;
  return buffers[0].words;
}

Outcome write_output(Call& call, const void* data, uint32_t bytes) {
  state.output.active = true;
  state.output.fn = static_cast<uint8_t>(call.fn);
  state.output.next = state.output.end = 0;
  bus::copy_to_host(call.fn, call.command().get<hwif::AdminCommand::output_address>(), data, bytes);
  return Outcome::OUTPUT;
}

Outcome write_counters(Call& call, uint32_t first, uint32_t count) {
  if (state.output.active) return Outcome::LATER;
  state.output.active = true;
  state.output.fn = static_cast<uint8_t>(call.fn);
  state.output.next = static_cast<uint16_t>(first);
  state.output.end = static_cast<uint16_t>(first + count);
  state.output.address = call.command().get<hwif::AdminCommand::output_address>();
  state.output.buffer = 0;
  read_piece(state.output);
  write_piece(state.output);
  return Outcome::OUTPUT;
}

void step_output() {
  Output& out = state.output;
  const uint32_t status = bus::status();
  if ((status & STATUS_COPY_BUSY) != 0) return;
  const bool failed = (status & STATUS_COPY_ERROR) != 0;
  // A function that is being reset gets no answer, and its slot is none of ours any more.
  const bool gone = state.fns[out.fn].reset != Reset::NONE;
  if (out.next != out.end && !failed && !gone) {
    write_piece(out);
    return;
  }
  out.active = false;
  if (gone) return;
  Slot& slot = bus::slot(out.fn);
  Reply& reply = new_reply(static_cast<uint32_t>(row_word(slot.command, 0)),
                           slot.command.get<C::object>());
  if (failed) reply.fail(AdminStatus::BAD_ADDRESS, AdminField::OUTPUT_ADDRESS, 0);
  answer(out.fn, reply, true);
}

void run_command(const NextCommand& next) {
  // Speed or space.
  if constexpr (IS_WIDE) {
    run_slot_here(next.fn, next.has_input);
  } else {
    run_slot(next.fn, next.has_input);
  }
}

void run_held() {
  // Each one once, in turn from the one after the last that had the output, so that nobody is held for
  // good by those of others; those that still find no room are held again.
  uint32_t fns = state.held & (~uint32_t{0} << state.held_turn);
  uint32_t rest = state.held ^ fns;
  state.held = 0;
  while ((fns | rest) != 0) {
    if (fns == 0) {
      fns = rest;
      rest = 0;
    }
    const auto fn = lowest(fns);
    fns &= fns - 1;
    const bool was_free = !state.output.active;
    run_slot(fn, bus::slot(fn).free[0] != 0);
    if (was_free && state.output.active) state.held_turn = static_cast<uint8_t>((fn + 1) % FNS);
  }
}

}  // namespace roci::fw
