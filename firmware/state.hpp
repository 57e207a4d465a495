// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What the firmware knows: who owns which object, and how the pools are cut. What the hardware keeps
// anyway (rings, attributes, regions) is read back from the contexts instead of being kept twice.
#pragma once

#include "bus.hpp"
#include "pools.hpp"

namespace roci::fw {

inline constexpr unsigned QPS = 1u << QP_BITS;
inline constexpr unsigned CQS = 1u << CQ_BITS;
inline constexpr unsigned EQS = 1u << EQ_BITS;
inline constexpr unsigned SRQS = 1u << SRQ_BITS;
inline constexpr unsigned MRS = 1u << MR_BITS;
inline constexpr unsigned PDS = 1u << PD_BITS;
inline constexpr unsigned GIDS = 1u << GID_BITS;
inline constexpr unsigned PKEYS = hwif::PKEY_TABLE_LENGTH;

/// Largest max_rd_atomic and max_dest_rd_atomic.
inline constexpr unsigned MAX_RD_ATOMIC =
    IS_WIDE ? hwif::MAX_RD_ATOMIC_WIDE : hwif::MAX_RD_ATOMIC_NARROW;
inline constexpr unsigned MAX_RD_LOG2 = IS_WIDE ? 6 : 4;
static_assert(1u << MAX_RD_LOG2 == MAX_RD_ATOMIC);

/// Version of the firmware.
inline constexpr unsigned VERSION_MAJOR = 0, VERSION_MINOR = 1, VERSION_PATCH = 0;

/// Life of an object.
enum class Life : uint8_t {
  FREE,
  LIVE,
  DYING,                           // destroyed or revoked, a fence is still to end
  BUSY,                            // a command on it waits for a fence; it stays
};

/// PD, CQ, EQ, SRQ.
struct Object {
  uint8_t fn;
  Life life;
  uint16_t refs;                   // objects that use it
};

/// Indices that CREATE_QP gives to nobody: those of QP0, which RoCE does not have, and QP1. Index 1 is
/// that of the GSI queue pair, whose number is 1 in every life.
inline constexpr unsigned RESERVED_QPS = 2;

/// A queue pair. State, rings, queues, attributes and regions are in its columns.
struct Qp {
  uint32_t number;                 // full number; survives the object
  uint8_t fn;
  Life life;
  uint8_t rights;                  // access_rights as given (hardware keeps only some)
  uint8_t page_pkey;               // doorbell page in 3:0; 7:4: 0 no P_Key, else its index + 1
  uint8_t responder_depth;         // as given; hardware has it rounded up
  uint8_t notify_drained;          // SQD: the event was asked for
  hwif::QpType type;
};
static_assert(sizeof(Qp) == 12);

/// Kinds of objects with a quota or a count.
enum Kind : uint8_t { KIND_QP, KIND_CQ, KIND_EQ, KIND_SRQ, KIND_MR, KIND_PD, KINDS };

/// Asynchronous events that wait to be sent to a function: one bit each.
enum Pending : uint32_t {
  PENDING_GID = 1u << 0,           // bit n: entry n of the GID table changed
  PENDING_PKEY = 1u << 16,         // bit 16 + n: entry n of the P_Key table changed
  PENDING_PORT_ACTIVE = 1u << 24,
  PENDING_PORT_ERROR = 1u << 25,
  PENDING_BELL_ERROR = 1u << 26,
  PENDING_QUEUE_ERROR = 1u << 27,
};
static_assert(GIDS <= 16 && PKEYS <= 8);

/// How far the reset of a function is.
enum class Reset : uint8_t { NONE, REVOKE, FENCE, FREE };

/// A function.
struct Function {
  uint16_t counts[KINDS];
  uint16_t quotas[KINDS];          // 0: no limit of its own
  bool privileged;
  bool bell_error_told;            // until it reads the counter
  bool queue_error_told;
  uint8_t async_eq;                // EQ of its asynchronous events
  uint32_t pending;                // bits of Pending
  // function reset
  Reset reset;
  Kind reset_kind;
  uint16_t reset_index;
  uint16_t reset_left;             // objects of reset_kind that the walk has not met yet
  uint32_t reset_fence;
};

/// A command that waits for a fence. Its function is in its place: fn_of_waiter.
struct Waiter {
  uint32_t command;                // opcode and command_id, as in the command
  uint32_t object;                 // as in the command
  uint32_t fence;                  // number of the fence that covers it
  uint32_t deadline;               // of the device clock, low half
};

/// Waiting commands of a function; one more stays in its slot until there is room.
inline constexpr unsigned WAITERS_PER_FN = 2;
static_assert(FNS * WAITERS_PER_FN <= 32);
inline unsigned fn_of_waiter(unsigned n) { return n / WAITERS_PER_FN; }

/// The output that is being written; one at a time.
struct Output {
  bool active;
  uint8_t fn;
  uint8_t buffer;                  // counters: which of the two buffers is next
  uint16_t next;                   // counters: next one
  uint16_t end;                    // counters: one past the last
  uint64_t address;                // host address of the next piece
};

using InflightPool = RegionPool<1u << INFLIGHT_BITS, QPS, 3, IS_WIDE ? 9 : 4>;
using ReadPool = RegionPool<1u << READ_BITS, QPS, 1, MAX_RD_LOG2>;
using ReplayPool = RegionPool<1u << REPLAY_BITS, QPS, 1, MAX_RD_LOG2>;
// Entries of many SGEs need more than an owner has: others' prefetch may not take that from them.
// 64 deep queues get 8 slots each or more before what is kept is reached. In the small pool of
// `narrow` they take a quarter at most, by their shares.
constexpr unsigned GRANTED_SLOTS = (1u << SLOT_BITS) - 2 * (QPS + SRQS);
using SlotPool = RegionPool<1u << SLOT_BITS, QPS + SRQS, 1, IS_WIDE ? 7 : 5,
                            IS_WIDE ? GRANTED_SLOTS * 3 / 16 : 0>;

/// Regions of a queue pair.
struct QpRegions {
  Region inflight;
  Region read;
  Region replay;
};

/// Everything. All zero before boot().
struct State {
  Qp qps[QPS];
  Object cqs[CQS];
  Object eqs[EQS];
  Object srqs[SRQS];
  Object pds[PDS];
  uint16_t srq_pds[SRQS];
  Function fns[FNS];
  Waiter waiters[FNS * WAITERS_PER_FN];
  alignas(8) hwif::GidEntry gids[GIDS];   // as QUERY_GID gives them
  uint16_t pkeys[PKEYS];
  uint16_t pkey_users[PKEYS]; // queue pairs
  IndexPool<QPS> free_qps;
  IndexPool<CQS> free_cqs;
  IndexPool<EQS> free_eqs;
  IndexPool<SRQS> free_srqs;
  IndexPool<PDS> free_pds;
  IndexPool<MRS> free_mrs;
  InflightPool inflight;
  ReadPool reads;
  ReplayPool replays;
  SlotPool slots;
  Output output;
  uint32_t waiting;                // waiters in use, one bit each
  uint32_t waiting_reset;          // those of them that wait for the reset of a function, not a fence
  uint32_t listening;              // functions that have an EQ for their events
  uint32_t pending;                // functions that have events waiting
  uint32_t turns;                  // of the main loop since the link was looked at
  bool bus_failed;                 // an access of the context bus was not answered
  uint32_t held;               // functions whose command waits in its slot for room
  uint64_t mac;                // first byte in bits 7:0, as in column CSR
  bool link_up;
  uint8_t event_turn;          // function after the last one that was sent an event
  uint8_t held_turn;           // function after the last held one that had the output
  uint8_t reset_turn;
};

extern State state;

}  // namespace roci::fw
