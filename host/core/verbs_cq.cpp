// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// C boundary: completion channels and completion queues.
#include "verbs_objects.hpp"

namespace roci::verbs {
namespace {

constexpr uint64_t SUPPORTED_WC_FLAGS = uint64_t{IBV_WC_STANDARD_FLAGS} |
                                        uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP} |
                                        uint64_t{IBV_WC_EX_WITH_CVLAN};

const hwif::Cqe& cqe_of(ibv_cq_ex* cq) { return object(cq).cq.current().cqe; }

// The fields that programs read without a call.
void publish(CqObject& cq) {
  const Completion& completion = cq.cq.current();
  cq.wr_id = completion.wr_id;
  cq.status = static_cast<ibv_wc_status>(completion.cqe.get<hwif::Cqe::status>());
}

void set_functions(ibv_cq_ex& cq) {
  using C = hwif::Cqe;
  cq.start_poll = [](ibv_cq_ex* c, ibv_poll_cq_attr* attr) {
    if (attr->comp_mask != 0) [[unlikely]] {
      log(LogLevel::WARN, "ibv_start_poll: comp_mask 0x%x: no bit is known: set it to 0",
          attr->comp_mask);
      return EINVAL;
    }
    const int error = object(c).cq.start_poll();
    if (error == 0) publish(object(c));
    return error;
  };
  cq.next_poll = [](ibv_cq_ex* c) {
    const int error = object(c).cq.next_poll();
    if (error == 0) publish(object(c));
    return error;
  };
  cq.end_poll = [](ibv_cq_ex* c) { object(c).cq.end_poll(); };
  cq.read_opcode = [](ibv_cq_ex* c) { return wc_opcode(cqe_of(c).get<C::opcode>()); };
  cq.read_vendor_err = [](ibv_cq_ex* c) {
    return static_cast<uint32_t>(cqe_of(c).get<C::vendor_status>());
  };
  cq.read_byte_len = [](ibv_cq_ex* c) { return cqe_of(c).get<C::byte_len>(); };
  cq.read_imm_data = [](ibv_cq_ex* c) { return __be32{cqe_of(c).get<C::imm_or_key>()}; };
  cq.read_qp_num = [](ibv_cq_ex* c) { return cqe_of(c).get<C::qpn>(); };
  cq.read_src_qp = [](ibv_cq_ex* c) { return cqe_of(c).get<C::src_qp_or_srqn>(); };
  cq.read_wc_flags = [](ibv_cq_ex* c) { return wc_flags(cqe_of(c)); };
  cq.read_slid = [](ibv_cq_ex*) { return uint32_t{0}; };
  cq.read_sl = [](ibv_cq_ex* c) { return static_cast<uint8_t>(cqe_of(c).get<C::tci>() >> 13); };
  cq.read_dlid_path_bits = [](ibv_cq_ex*) { return uint8_t{0}; };
  cq.read_completion_ts = [](ibv_cq_ex* c) { return uint64_t{cqe_of(c).get<C::timestamp>()}; };
  cq.read_cvlan = [](ibv_cq_ex* c) {
    return static_cast<uint16_t>(cqe_of(c).get<C::tci>() & 0xfff);
  };
}

CqObject* make_cq(ibv_context* context, uint32_t entries, void* cq_context,
                  ibv_comp_channel* channel, uint32_t vector, bool single_threaded) {
  if (vector >= static_cast<uint32_t>(context->num_comp_vectors)) {
    fail(EINVAL, "comp_vector %u: there are %d", vector, context->num_comp_vectors);
  }
  if (channel != nullptr && channel->context != context) {
    fail(EINVAL, "channel belongs to another context");
  }
  CompChannel* const to = channel != nullptr ? &object(channel).channel : nullptr;
  auto cq = std::make_unique<CqObject>(object(context).context_,
                                       CqConfig{entries, to, single_threaded});
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = cq_context;
  cq->handle = cq->cq.number();
  cq->cqe = static_cast<int>(cq->cq.entries());
  pthread_mutex_init(&cq->mutex, nullptr);
  pthread_cond_init(&cq->cond, nullptr);
  cq->cq.set_owner(ibv_cq_ex_to_cq(cq.get()));
  if (channel != nullptr) {
    pthread_mutex_lock(&context->mutex);
    ++channel->refcnt;
    pthread_mutex_unlock(&context->mutex);
  }
  return cq.release();
}

}  // namespace

ibv_comp_channel* create_comp_channel(ibv_context* context) noexcept {
  return create("ibv_create_comp_channel", [&]() -> ibv_comp_channel* {
    auto channel = std::make_unique<ChannelObject>(object(context).context_);
    channel->context = context;
    channel->fd = channel->channel.fd();
    return channel.release();
  });
}

int destroy_comp_channel(ibv_comp_channel* channel) noexcept {
  return boundary("ibv_destroy_comp_channel", [&] {
    pthread_mutex_t& mutex = channel->context->mutex;
    pthread_mutex_lock(&mutex);
    const int users = channel->refcnt;
    pthread_mutex_unlock(&mutex);
    if (users != 0) fail(EBUSY, "%d completion queues use this channel", users);
    delete &object(channel);
  });
}

ibv_cq* create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                  int vector) noexcept {
  return create("ibv_create_cq", [&]() -> ibv_cq* {
    if (entries < 0 || vector < 0) fail(EINVAL, "cqe %d, comp_vector %d", entries, vector);
    return ibv_cq_ex_to_cq(make_cq(context, static_cast<uint32_t>(entries), cq_context, channel,
                                   static_cast<uint32_t>(vector), false));
  });
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) noexcept {
  return create("ibv_create_cq_ex", [&]() -> ibv_cq_ex* {
    constexpr uint32_t KNOWN = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
    if (attr->comp_mask & ~KNOWN) {
      fail(EOPNOTSUPP, "comp_mask 0x%x: unknown bits", attr->comp_mask);
    }
    if (attr->wc_flags & ~SUPPORTED_WC_FLAGS) {
      fail(EOPNOTSUPP, "wc_flags 0x%llx: completions do not have 0x%llx",
           static_cast<unsigned long long>(attr->wc_flags),
           static_cast<unsigned long long>(attr->wc_flags & ~SUPPORTED_WC_FLAGS));
    }
    bool single = false;
    if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) {
      if (attr->flags & ~static_cast<uint32_t>(IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
        fail(EOPNOTSUPP, "flags 0x%x: only IBV_CREATE_CQ_ATTR_SINGLE_THREADED", attr->flags);
      }
      single = (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
    }
    if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && attr->parent_domain != nullptr) {
      check_device("parent_domain", context, attr->parent_domain);
      single = single || object(attr->parent_domain).single_threaded();
    }
    CqObject* cq = make_cq(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector,
                           single);
    set_functions(*cq);
    return cq;
  });
}

int resize_cq(ibv_cq* cq, int entries) noexcept {
  return boundary("ibv_resize_cq", [&] {
    if (entries < 0) fail(EINVAL, "cqe %d", entries);
    object(cq).cq.resize(static_cast<unsigned>(entries));
    cq->cqe = static_cast<int>(object(cq).cq.entries());
  }, LogLevel::WARN);
}

int destroy_cq(ibv_cq* cq) noexcept {
  return boundary("ibv_destroy_cq", [&] {
    CqObject& c = object(cq);
    c.cq.destroy();
    wait_for_acknowledgements(c.mutex, c.cond, c.comp_events_completed, c.cq.completion_events());
    wait_for_acknowledgements(c.mutex, c.cond, c.async_events_completed, c.cq.async_events());
    if (c.channel != nullptr) {
      pthread_mutex_lock(&c.context->mutex);
      --c.channel->refcnt;
      pthread_mutex_unlock(&c.context->mutex);
    }
    pthread_cond_destroy(&c.cond);
    pthread_mutex_destroy(&c.mutex);
    delete &c;
  });
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* wc) noexcept { return object(cq).cq.poll(count, wc); }

int req_notify_cq(ibv_cq* cq, int solicited_only) noexcept {
  object(cq).cq.arm(solicited_only != 0);
  return 0;
}

// The wait can be cancelled: nothing around it may be in the way of unwinding.
int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  pthread_testcancel();
  Cq* got = nullptr;
  for (;;) {
    if (boundary("ibv_get_cq_event", [&] { got = object(channel).channel.take(); }) != 0) return -1;
    if (got != nullptr) break;
    if (errno != EAGAIN || !wait_for_event(channel->fd)) return -1;
  }
  *cq = static_cast<ibv_cq*>(got->owner());
  *cq_context = (*cq)->cq_context;
  return 0;
}

void ack_cq_events(ibv_cq* cq, unsigned count) noexcept {
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}

}  // namespace roci::verbs
