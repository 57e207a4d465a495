// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Queue pair: sizes, creation, destruction. Attributes: qp_modify.cpp.
#include "admin_queue.hpp"
#include "wqe_builder.hpp"

#include <roci/error.hpp>
#include <roci/log.hpp>
#include <roci/qp.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace roci {
namespace {

constexpr unsigned LINE = hwif::SQ_LINE_BLOCKS;

// Requests of `least` to `blocks` blocks that a ring always holds. If all are alike they fill it. Else a
// line takes at least LINE / blocks of them before one does not fit, and the oldest may begin in
// mid-line.
unsigned requests_in(unsigned ring_blocks, unsigned blocks, unsigned least) {
  if (blocks == least && LINE % blocks == 0) return ring_blocks / blocks;
  return (ring_blocks / LINE - 1) * (LINE / blocks);
}

unsigned log2_up(unsigned value) { return static_cast<unsigned>(std::bit_width(value - 1)); }

void check_limit(const char* field, unsigned value, unsigned limit, const char* name) {
  if (value > limit) fail(EINVAL, "cap.%s %u: at most %u (%s)", field, value, limit, name);
}

// What verbs and the device call it. The general service interface is for the one service that
// manages connections, on function 0, which no program gets.
hwif::QpType device_type(const DeviceLimits& limits, ibv_qp_type type) {
  if (type == QPT_GSI && limits.gsi) {
    if (limits.function_number == 0) return hwif::QpType::GSI;
    fail(EPERM, "qp_type 1 (GSI): QP1 belongs to the management function, programs have UD (%d)",
         static_cast<int>(IBV_QPT_UD));
  }
  if (type == IBV_QPT_RC && limits.rc) return hwif::QpType::RC;
  if (type == IBV_QPT_UC && limits.uc) return hwif::QpType::UC;
  if (type == IBV_QPT_UD && limits.ud) return hwif::QpType::UD;
  fail(EOPNOTSUPP, "qp_type %d: this device has%s%s%s", static_cast<int>(type),
       limits.rc ? " RC (2)" : "", limits.uc ? " UC (3)" : "", limits.ud ? " UD (4)" : "");
}

}  // namespace

Qp::Qp(Pd& pd, const QpConfig& config)
    : sq_lock_(!config.single_threaded && !pd.device().options().single_threaded),
      rq_lock_(!config.single_threaded && !pd.device().options().single_threaded),
      transport_(pd.device().transport()),
      pd_(pd),
      config_(config) {
  Device& device = pd.device();
  device.check_alive();
  const hwif::QpType type = device_type(device.limits(), config.type);
  datagrams_ = is_datagram();
  if (config.send_cq == nullptr || config.recv_cq == nullptr) {
    fail(EINVAL, "send_cq and recv_cq are needed");
  }
  doorbell_page_ = device.options().doorbell_page;
  doorbell_ = transport_.mapped_doorbell(doorbell_page_);
  size_queues(config);
  allocate_queues();

  using P = hwif::CreateQpParams;
  P params{};
  params.set<P::sq_ring_address>(sq_buffer_.address());
  params.set<P::send_cqn>(config.send_cq->number());
  params.set<P::recv_cqn>(config.recv_cq->number());
  params.set<P::qp_type>(type);
  params.set<P::doorbell_page>(static_cast<uint8_t>(doorbell_page_));
  params.set<P::sq_ring_log2>(static_cast<uint8_t>(log2_up(sq_.mask + 1)));
  if (config.srq != nullptr) {
    params.set<P::has_srq>(true);
    params.set<P::srqn>(config.srq->number());
  } else {
    params.set<P::rq_ring_address>(rq_buffer_.address());
    params.set<P::rq_ring_log2>(static_cast<uint8_t>(log2_up(rq_.mask + 1)));
    params.set<P::rq_stride_code>(
        static_cast<uint8_t>(rq_.stride_log2 - log2_up(hwif::RQ_STRIDE_BASE_BYTES)));
  }
  number_ = device.admin().run<hwif::admin::CreateQp>(pd.number(), params).object;
  pd.add_user();
  if (config.srq != nullptr) config.srq->add_user();
  alive_ = true;

  hwif::Doorbell doorbell{};
  doorbell.set<hwif::Doorbell::object>(number_);
  doorbell.set<hwif::Doorbell::kind>(hwif::DoorbellKind::SQ);
  sq_.doorbell_base = doorbell.to_word();
  doorbell.set<hwif::Doorbell::kind>(hwif::DoorbellKind::RQ);
  rq_.doorbell_base = doorbell.to_word();
  device.add_qp(number_, *this);
  const bool same = config.send_cq == config.recv_cq;
  config.send_cq->attach(*this, true, same);
  if (!same) config.recv_cq->attach(*this, false, true);
}

Qp::~Qp() {
  if (!alive_) return;
  try {
    destroy();
  } catch (const Error& error) {
    log(LogLevel::WARN, "destroying QP 0x%x: %s", number_, error.what());
    // The device may go on reading: the rings have to stay.
    sq_buffer_.abandon();
    rq_buffer_.abandon();
    pd_.device().remove_qp(number_);
    config_.send_cq->detach(*this);
    config_.recv_cq->detach(*this);
    context().remove_events(nullptr, this);
    if (config_.srq != nullptr) config_.srq->remove_user();
    pd_.remove_user();
  }
}

void Qp::destroy() {
  Device& device = pd_.device();
  device.admin().destroy<hwif::admin::DestroyQp>(number_);
  alive_ = false;
  // Its last completion is in memory: take them out before the number is somebody else's.
  config_.send_cq->detach(*this);
  if (config_.recv_cq != config_.send_cq) config_.recv_cq->detach(*this);
  device.remove_qp(number_);
  context().remove_events(nullptr, this);
  if (config_.srq != nullptr) config_.srq->remove_user();
  pd_.remove_user();
}

void Qp::size_queues(const QpConfig& config) {
  const DeviceLimits& limits = pd_.device().limits();
  const ibv_qp_cap& want = config.cap;
  check_limit("max_send_wr", want.max_send_wr, limits.max_qp_wr, "max_qp_wr");
  check_limit("max_send_sge", want.max_send_sge, limits.max_sge, "max_sge");
  const unsigned max_inline = datagrams_ ? limits.max_inline_ud : limits.max_inline;
  check_limit("max_inline_data", want.max_inline_data, max_inline,
              datagrams_ ? "the device's limit for UD" : "the device's limit");

  const size_t data = std::max(want.max_send_sge * sizeof(ibv_sge), size_t{want.max_inline_data});
  // UD requests carry the address.
  const size_t offset = datagrams_ ? wqe::UD_DATA_OFFSET : wqe::DATA_OFFSET;
  const unsigned least = wqe::blocks_for(0, offset);
  const unsigned blocks = wqe::blocks_for(data, offset);
  unsigned log2 = hwif::SQ_RING_LOG2_MIN;
  while (log2 < limits.sq_log2 && requests_in(1u << log2, blocks, least) < want.max_send_wr) ++log2;
  const unsigned holds = requests_in(1u << log2, blocks, least);
  if (holds < want.max_send_wr) {
    fail(ENOMEM,
         "cap.max_send_wr %u with max_send_sge %u and max_inline_data %u: a send queue holds %u "
         "requests of this size; ask for fewer, or for smaller ones",
         want.max_send_wr, want.max_send_sge, want.max_inline_data, holds);
  }
  const size_t room = size_t{blocks} * hwif::SQ_BLOCK_BYTES - offset;
  sq_.mask = (1u << log2) - 1;
  sq_.max_wr = std::min(holds, limits.max_qp_wr);
  sq_.max_sge = std::min(static_cast<unsigned>(room / sizeof(ibv_sge)), limits.max_sge);
  sq_.max_sge_read = std::min(sq_.max_sge, limits.max_sge_read);
  sq_.max_inline = std::min(static_cast<unsigned>(room), max_inline);
  sq_.signal_all = config.signal_all ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0u;

  cap_.max_send_wr = sq_.max_wr;
  cap_.max_send_sge = sq_.max_sge;
  cap_.max_inline_data = sq_.max_inline;
  if (config.srq != nullptr) {
    rq_.srq = config.srq;  // sizes of a receive queue mean nothing then
    return;
  }
  check_limit("max_recv_wr", want.max_recv_wr, limits.max_qp_wr, "max_qp_wr");
  check_limit("max_recv_sge", want.max_recv_sge, limits.max_sge, "max_sge");
  const unsigned entry = static_cast<unsigned>(sizeof(hwif::RqWqeHeader) +
                                               want.max_recv_sge * sizeof(ibv_sge));
  rq_.stride_log2 = log2_up(std::max(entry, hwif::RQ_STRIDE_BASE_BYTES));
  rq_.max_sge = std::min(
      static_cast<unsigned>(((1u << rq_.stride_log2) - sizeof(hwif::RqWqeHeader)) / sizeof(ibv_sge)),
      limits.max_sge);
  const unsigned rq_log2 =
      std::max(hwif::RQ_RING_LOG2_MIN, log2_up(std::max(want.max_recv_wr, 1u)));
  rq_.mask = (1u << rq_log2) - 1;
  cap_.max_recv_wr = rq_.mask + 1;
  cap_.max_recv_sge = rq_.max_sge;
}

void Qp::allocate_queues() {
  DmaArena& arena = pd_.device().arena();
  sq_buffer_ = arena.allocate(size_t{sq_.mask + 1} * hwif::SQ_BLOCK_BYTES, 4096);
  sq_.ring = sq_buffer_.data();
  sq_.info = std::make_unique<SendInfo[]>(sq_.mask + size_t{1});
  if (rq_.srq != nullptr) return;
  rq_buffer_ = arena.allocate(size_t{rq_.mask + 1} << rq_.stride_log2, 4096);
  rq_.ring = rq_buffer_.data();
  rq_.wr_id = std::make_unique<uint64_t[]>(rq_.mask + size_t{1});
}

// Empty queues that take nothing: state RESET.
void Qp::reset_queues() noexcept {
  failure_told_ = false;
  refusals_told_ = 0;
  sq_lock_.lock();
  sq_.open = false;
  sq_.reads = false;
  sq_.head = 0;
  sq_.count = 0;
  sq_.posted = 0;
  sq_.completed = 0;
  sq_lock_.unlock();
  rq_lock_.lock();
  rq_.open = false;
  rq_.head = 0;
  rq_.posted = 0;
  rq_.completed = 0;
  rq_lock_.unlock();
}

// What may be posted in which state: IBTA 10.3.1, wire.md §2.15.
void Qp::open_queues() noexcept {
  rq_.open = state_ != IBV_QPS_RESET && rq_.srq == nullptr;
  sq_.open = state_ == IBV_QPS_RTS || state_ == IBV_QPS_SQD || state_ == IBV_QPS_SQE ||
             state_ == IBV_QPS_ERR;
}

void Qp::abandon_after_fork() noexcept {
  sq_lock_.reinitialise();
  rq_lock_.reinitialise();
  sq_.open = false;
  rq_.open = false;
}

}  // namespace roci
