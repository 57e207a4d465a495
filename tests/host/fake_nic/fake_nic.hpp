// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// FakeNic: a NIC as software, for tests of the host stack without RTL. Executes admin commands and the
// requests of RC, UC and UD as hwif/ has them (without host/core), stricter than hardware: whatever a
// host may not do makes an error that the test sees. Packets do not exist: a request is carried out
// in the peer's memory in one step. Time is a counter that step() advances.
//
// Files: fake_registers.cpp (BAR0, doorbells), fake_admin.cpp (commands), fake_queues.cpp (CQ, EQ,
// keys), fake_transfer.cpp (requests), fake_datagram.cpp (those of UD).
#pragma once

#include <roci/inproc.hpp>

#include <roci_hwif.hpp>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roci::test {

class FakeNic;

/// NICs that reach each other, and their common clock and lock.
class FakeFabric {
 public:
  /// The lock of everything.
  std::recursive_mutex& mutex() { return mutex_; }
  /// Lets all NICs work and the clock run on. @return whether anything is going on or waited for
  bool step(uint64_t cycles);
  /// Cycles so far.
  uint64_t now() const { return now_; }
  /// The NIC with this MAC address, or nullptr.
  FakeNic* find(const MacAddress& mac);
  /// The NIC with this GID, or nullptr.
  FakeNic* find(const Gid& gid);

 private:
  friend class FakeNic;
  std::recursive_mutex mutex_;
  std::vector<FakeNic*> nics_;
  uint64_t now_ = 0;
};

/// Sizes and faults of a FakeNic.
struct FakeConfig {
  unsigned functions = 4;
  unsigned qps = 64, cqs = 64, eqs = 16, mrs = 256, pds = 64;
  unsigned gids = 8, pkeys = 4, srqs = 16;
  /// What it can do.
  bool uc = true, ud = true, gsi = true, srq = true, atomics = true, multicast = false;
  /// Its functions are privileged.
  bool privileged = false;
  hwif::Mtu active_mtu = hwif::Mtu::MTU_4096;
  /// Faults: what the device claims to be, when its firmware is ready.
  uint64_t hwif_hash = hwif::HWIF_HASH;
  uint64_t firmware_hash = hwif::HWIF_HASH;
  uint64_t firmware_ready_at = 0;
  hwif::FirmwareState firmware_state = hwif::FirmwareState::READY;
  /// Cycles until an admin command is answered.
  uint64_t admin_cycles = 100;
  /// Cycles between attempts of a request that got no answer or RNR.
  uint64_t retry_cycles = 2000;
};

/// One NIC.
class FakeNic : public InprocNic {
 public:
  FakeNic(FakeFabric& fabric, unsigned number, FakeConfig config = {});
  ~FakeNic() override;

  std::recursive_mutex& mutex() override { return fabric_.mutex(); }
  std::optional<unsigned> attach(InprocMemory& memory,
                                 std::function<void(unsigned)> interrupt) override;
  void detach(unsigned function) override;
  uint64_t bar_read(unsigned function, uint32_t offset) override;
  void bar_write(unsigned function, uint32_t offset, uint64_t value) override;
  void step(uint64_t cycles) override { fabric_.step(cycles); }
  std::optional<Neighbour> resolve(const Gid& gid) override;

  // For tests.
  const MacAddress& mac() const { return mac_; }
  const std::vector<hwif::GidEntry>& gids() const { return gids_; }
  const std::vector<uint16_t>& pkeys() const { return pkeys_; }
  const FakeConfig& config() const { return config_; }
  unsigned functions_free() const;
  /// Violations of the interface by the host, in words; a test expects none.
  const std::vector<std::string>& violations() const { return violations_; }
  /// Doorbells so far, by kind.
  uint64_t doorbells(hwif::DoorbellKind kind) const;
  /// Commands so far, by opcode.
  uint64_t commands(hwif::AdminOpcode opcode) const;
  /// Commands of this kind that have arrived and are not answered.
  size_t waiting(hwif::AdminOpcode opcode) const;
  /// Holds back answers to this command until release().
  void hold(hwif::AdminOpcode opcode) {
    const std::lock_guard lock(mutex());
    held_.push_back(opcode);
  }
  void release() {
    const std::lock_guard lock(mutex());
    held_.clear();
  }
  /// Answers the next command of this kind with a failure.
  void fail_next(hwif::AdminOpcode opcode, hwif::AdminStatus status, hwif::AdminField field,
                 uint32_t detail);
  /// Changes the GID table as management software would; raises GID_CHANGE.
  void set_gid(unsigned index, const hwif::GidEntry& entry);
  /// Raises an event of the function.
  void raise(unsigned function, hwif::EqeType type, uint32_t object = 0);
  /// The next `count` writes of events fail on the bus.
  void fail_events(unsigned count) { failing_events_ = count; }
  /// Puts a QP into ERR as a fault inside the device would.
  void break_qp(uint32_t qpn, hwif::VendorStatus cause);
  /// No transfer is carried out while this is set.
  void freeze(bool on) { frozen_ = on; }
  /// The page table entries read since the last call.
  uint64_t page_table_reads() { return std::exchange(page_table_reads_, 0); }
  /// Entry of the memory protection table of a key, as the host created it.
  std::optional<hwif::MptEntry> mpt(uint32_t key) const;

  /// Carries out what can be carried out. @return whether anything happened
  bool work();
  /// Whether something waits for time to pass.
  bool waits() const;

 private:
  struct Function {
    bool attached = false;
    InprocMemory* memory = nullptr;
    std::function<void(unsigned)> interrupt;
    // Registers.
    uint64_t command_ring = 0, completion_ring = 0, ring_config = 0;
    hwif::AdminState state = hwif::AdminState::DISABLED;
    hwif::AdminError error = hwif::AdminError::NONE;
    uint16_t announced = 0, fetched = 0, completed = 0, consumed = 0;
    std::array<bool, hwif::INTERRUPT_VECTORS> masked{};
    uint8_t pending = 0;
    std::optional<uint32_t> async_eq;
    bool doorbell_error_raised = false;
  };

  struct Pending {
    unsigned function;
    hwif::AdminCommand command;
    uint64_t due;
    bool begun;
  };

  struct Object {
    bool exists = false;
    unsigned function = 0;
    uint32_t number = 0;
    uint32_t incarnation = 0;
  };
  struct Pd : Object {};
  struct Mr : Object {
    hwif::CreateMrParams params{};
    uint32_t pd = 0;
    uint32_t key = 0;
  };
  struct Ring {
    uint64_t address = 0;
    unsigned log2 = 0;
    uint32_t producer = 0, consumed = 0;
  };
  struct Eq : Object, Ring {
    unsigned page = 0, vector = 0;
    bool armed = false, overrun = false;
  };
  struct Cq : Object, Ring {
    unsigned page = 0;
    uint32_t eqn = 0;
    bool armed = false, solicited_only = false, error = false;
    uint32_t armed_index = 0;
    // Whether the entry counts as solicited; index modulo 2^16.
    std::vector<bool> solicited = std::vector<bool>(65536);
  };
  struct Srq : Object {
    hwif::CreateSrqParams params{};
    uint32_t pd = 0;
    uint16_t posted = 0, taken = 0, limit = 0;
  };
  struct Qp : Object {
    hwif::CreateQpParams params{};
    hwif::QpAttributes attributes{};
    uint32_t pd = 0;
    hwif::QpState state = hwif::QpState::RESET;
    uint16_t sq_posted = 0, sq_oldest = 0, rq_posted = 0, rq_taken = 0;
    uint32_t next_psn = 0, expected_psn = 0;
    unsigned retries = 0, rnr_retries = 0;
    uint64_t wake_at = 0;
    bool established = false, drained = false, last_raised = false;
    bool unreadable = false;  // a ring: no completions any more
    hwif::VendorStatus cause = hwif::VendorStatus::NONE;
  };

  // What went wrong with a request, on both sides.
  struct Outcome {
    hwif::CqeStatus status = hwif::CqeStatus::SUCCESS;
    hwif::VendorStatus vendor = hwif::VendorStatus::NONE;
    bool retry = false;  // no answer or RNR: try again later
    bool rnr = false;
  };
  struct Wqe {
    hwif::SqWqeControl control{};
    hwif::SqWqeRemote remote{};
    // Atomics, as numbers; UD.
    uint64_t swap_or_add = 0, compare = 0;
    hwif::SqWqeUd ud{};
    hwif::AddressVector vector{};
    std::vector<hwif::Sge> sges;
    std::vector<uint8_t> inline_bytes;
  };
  struct Receive {
    uint32_t cookie = 0;
    std::vector<hwif::Sge> sges;
  };
  struct Answer {
    hwif::AdminStatus status = hwif::AdminStatus::OK;
    hwif::AdminField field{};
    uint32_t detail = 0;
    std::optional<uint32_t> object;  // of what was created
    hwif::ByteArray<8> result{};
    std::vector<uint8_t> output;

    static Answer refused(hwif::AdminStatus status, hwif::AdminField field = {},
                          uint32_t detail = 0) {
      Answer answer;
      answer.status = status;
      answer.field = field;
      answer.detail = detail;
      return answer;
    }
    static Answer created(uint32_t object) {
      Answer answer;
      answer.object = object;
      return answer;
    }
  };

  // fake_registers.cpp
  void violation(const std::string& text) { violations_.push_back(text); }
  void doorbell(unsigned function, unsigned page, uint64_t value);
  void doorbell_error(unsigned function, const char* why);
  void enable(Function& f);
  void reset_function(unsigned function);
  void raise_vector(Function& f, unsigned vector);

  // fake_admin.cpp
  bool fetch_commands();
  bool run_commands();
  void complete_command(const Pending& pending, const Answer& answer);
  Answer execute(unsigned function, const hwif::AdminCommand& command);
  Answer create_pd(unsigned function);
  Answer destroy_pd(unsigned function, uint32_t pd);
  Answer create_mr(unsigned function, uint32_t pd, const hwif::CreateMrParams& params);
  Answer rereg_mr(unsigned function, uint32_t index, const hwif::ReregMrInput& input);
  Answer create_eq(unsigned function, const hwif::CreateEqParams& params);
  Answer create_cq(unsigned function, const hwif::CreateCqParams& params);
  Answer destroy_cq(unsigned function, uint32_t cqn);
  Answer resize_cq(unsigned function, uint32_t cqn, const hwif::ResizeCqParams& params);
  Answer create_qp(unsigned function, uint32_t pd, const hwif::CreateQpParams& params);
  Answer modify_qp(unsigned function, uint32_t qpn, const hwif::ModifyQpInput& input);
  Answer query_qp(unsigned function, uint32_t qpn);
  Answer destroy_qp(unsigned function, uint32_t qpn);
  Answer create_srq(unsigned function, uint32_t pd, const hwif::CreateSrqParams& params);
  Answer destroy_srq(unsigned function, uint32_t srqn);
  Answer multicast(unsigned function, uint32_t qpn, const hwif::MulticastParams& params, bool attach);
  Answer query_device() const;
  hwif::AdminField check_mr(const hwif::CreateMrParams& params) const;

  template <class T>
  T* find(std::vector<T>& table, unsigned function, uint32_t number) {
    if (table.empty()) return nullptr;
    T& object = table[number & (table.size() - 1)];
    return object.exists && object.function == function && object.number == number ? &object
                                                                                    : nullptr;
  }
  // A free place with a fresh number, or nullptr; `first` and up.
  template <class T>
  T* create(std::vector<T>& table, unsigned function, bool with_incarnation, size_t first = 0) {
    for (size_t i = first; i < table.size(); ++i) {
      if (table[i].exists) continue;
      const uint32_t incarnation = table[i].incarnation + 1;
      table[i] = T{};
      table[i].exists = true;
      table[i].function = function;
      table[i].incarnation = incarnation;
      table[i].number = static_cast<uint32_t>(i);
      if (with_incarnation) {
        table[i].number |= (incarnation * static_cast<uint32_t>(table.size())) & 0xffffff;
      }
      return &table[i];
    }
    return nullptr;
  }

  // fake_queues.cpp
  void write_eqe(uint32_t eqn, hwif::EqeType type, uint32_t object, hwif::VendorStatus cause,
                 uint32_t detail);
  void async_event(unsigned function, hwif::EqeType type, uint32_t object,
                   hwif::VendorStatus cause = hwif::VendorStatus::NONE);
  void write_cqe(uint32_t cqn, hwif::Cqe cqe);
  void check_armed(Cq& cq);
  bool memory(unsigned function, uint64_t address, std::span<uint8_t> data, bool write);
  // Reads or writes through a key. @return NONE or the check that failed
  hwif::VendorStatus access(unsigned function, uint32_t pd, uint32_t key, uint64_t va,
                            std::span<uint8_t> data, bool write, bool remote, bool atomic = false);
  hwif::VendorStatus check_key(unsigned function, uint32_t pd, uint32_t key, uint64_t va,
                               uint64_t length, bool write, bool remote, bool atomic = false);

  // fake_transfer.cpp
  bool work_on(Qp& qp);
  std::optional<Wqe> fetch(Qp& qp, uint16_t index, unsigned& blocks, Outcome& outcome);
  std::optional<Receive> fetch_receive(Qp& qp, Outcome& outcome);
  hwif::VendorStatus read_data(const Qp& qp, const Wqe& wqe, std::vector<uint8_t>& payload);
  hwif::VendorStatus scatter(const Qp& qp, const std::vector<hwif::Sge>& sges, std::span<uint8_t> data);
  Outcome transfer(Qp& qp, const Wqe& wqe);
  Outcome atomic(const Wqe& wqe, std::span<uint8_t> payload, Qp& peer);
  Outcome deliver(const Wqe& wqe, std::span<uint8_t> payload, FakeNic& target, Qp& peer);
  Outcome receive(Qp& peer, const Wqe& wqe, std::span<uint8_t> payload);
  void complete_send(Qp& qp, const Wqe& wqe, uint16_t index, const Outcome& outcome);
  void complete_receive(Qp& qp, const Receive& receive, hwif::CqeOpcode opcode, uint32_t bytes,
                        uint32_t imm, bool solicited, const Outcome& outcome,
                        const hwif::Cqe& more = {});
  void fail_qp(Qp& qp, hwif::VendorStatus cause);
  void unreadable(Qp& qp);
  void flush(Qp& qp);
  Srq* srq_of(const Qp& qp);
  bool has_receive(const Qp& qp);
  static bool is(const Qp& qp, hwif::QpType type) {
    return qp.params.get<hwif::CreateQpParams::qp_type>() == type;
  }

  // fake_datagram.cpp
  Outcome send_datagram(Qp& qp, const Wqe& wqe);
  void deliver_datagram(const Qp& from, const Wqe& wqe, uint32_t qkey, std::span<const uint8_t> message,
                        Qp& peer, FakeNic& sender);

  FakeFabric& fabric_;
  const unsigned number_;
  const FakeConfig config_;
  MacAddress mac_{};
  std::vector<hwif::GidEntry> gids_;
  std::vector<uint16_t> pkeys_;
  std::vector<Function> functions_;
  std::vector<Pd> pds_;
  std::vector<Mr> mrs_;
  std::vector<Eq> eqs_;
  std::vector<Cq> cqs_;
  std::vector<Qp> qps_;
  std::vector<Srq> srqs_;
  std::vector<std::pair<Gid, uint32_t>> groups_;  // group and queue pair
  std::deque<Pending> pending_;
  std::vector<hwif::AdminOpcode> held_;
  std::map<hwif::AdminOpcode, Answer> failures_;
  std::map<hwif::DoorbellKind, uint64_t> doorbells_;
  std::map<hwif::AdminOpcode, uint64_t> commands_;
  std::vector<std::string> violations_;
  uint64_t page_table_reads_ = 0;
  bool frozen_ = false;
  unsigned failing_events_ = 0;
};

}  // namespace roci::test
