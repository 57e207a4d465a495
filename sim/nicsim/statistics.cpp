// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/statistics.hpp"

#include <roci/error.hpp>
#include <roci_hwif_names.hpp>

namespace roci::sim {
namespace {

unsigned long long wide(uint64_t value) { return value; }

template <class List, class Print>
std::string joined(const List& list, Print print) {
  std::string out;
  for (const auto& element : list) {
    if (!out.empty()) out += ",";
    out += print(element);
  }
  return out;
}

using Counters = std::vector<std::pair<std::string, uint64_t>>;

Counters counters_of(const LinkCounters& link) {
  return {{"frames", link.frames},         {"bytes", link.bytes},
          {"dropped", link.dropped},       {"duplicated", link.duplicated},
          {"reordered", link.reordered},   {"corrupted", link.corrupted},
          {"delayed", link.delayed},       {"aborted", link.aborted},
          {"underruns", link.underruns}};
}

Counters counters_of(const SwitchCounters& in_switch) {
  return {{"forwarded", in_switch.forwarded},
          {"flooded", in_switch.flooded},
          {"bad_fcs", in_switch.bad_fcs},
          {"filtered", in_switch.filtered},
          {"overflow", in_switch.overflow}};
}

std::string json_of(const Counters& counters) {
  return "{" + joined(counters, [](const auto& counter) {
    return json_string(counter.first) + ":" + std::to_string(counter.second);
  }) + "}";
}

// Those that are not zero, in one line.
std::string line_of(const Counters& counters) {
  std::string out;
  for (const auto& [name, value] : counters) {
    if (value != 0) out += (out.empty() ? "" : ", ") + name + " " + std::to_string(value);
  }
  return out.empty() ? "nothing" : out;
}

// What happened to the packets of a queue pair that is no success, in words.
std::string causes_of(const QueuePair& qp) {
  const Counters causes = {
      {"back after NAK", qp.rewinds_nak},
      {"back after RNR", qp.rewinds_rnr},
      {"back after timeout", qp.rewinds_other},
      {"requests lost", qp.requests_lost},
      {"answers lost", qp.answers_lost},
      {"damaged", qp.damaged_received},
      {"NAK seq rx", qp.naks_received.sequence},
      {"NAK 0x61 rx", qp.naks_received.invalid_request},
      {"NAK 0x62 rx", qp.naks_received.remote_access},
      {"NAK 0x63 rx", qp.naks_received.remote_operational},
      {"RNR rx", qp.naks_received.rnr},
      {"NAK seq tx", qp.naks_sent.sequence},
      {"NAK 0x61 tx", qp.naks_sent.invalid_request},
      {"NAK 0x62 tx", qp.naks_sent.remote_access},
      {"NAK 0x63 tx", qp.naks_sent.remote_operational},
      {"RNR tx", qp.naks_sent.rnr},
      {"flushed", qp.flushed},
  };
  std::string out = line_of(causes);
  return out == "nothing" ? "" : out;
}

std::string row_of(const QueuePair& qp) {
  const std::string peer = qp.dest_qpn ? format("0x%06x", *qp.dest_qpn) : "-";
  std::string state = qp.state ? to_string(*qp.state) : "-";
  if (!qp.alive) state = "gone";
  return format("  0x%06x %-6s %-9s %8llu %7llu %7llu %7llu %8llu %7llu %7llu %9llu %6llu  %s\n",
                qp.qpn, state.c_str(), peer.c_str(), wide(qp.requests_sent),
                wide(qp.requests_again), wide(qp.acks_received), wide(qp.responses_received),
                wide(qp.requests_received), wide(qp.acks_sent), wide(qp.responses_sent),
                wide(qp.completions), wide(qp.failed), causes_of(qp).c_str());
}

}  // namespace

std::string drops_of(const Counters& counters) {
  Counters drops;
  for (const auto& counter : counters) {
    if (counter.first.starts_with("rx_drop_")) drops.push_back(counter);
  }
  const std::string text = line_of(drops);
  return text == "nothing" ? "" : text;
}

std::string to_json(const Statistics& s) {
  const auto nics = joined(s.nics, [](const NicStatistics& nic) {
    return "{\"name\":" + json_string(nic.name) + ",\"counters\":" + json_of(nic.counters) +
           ",\"qps\":[" + joined(nic.qps, [](const QueuePair& qp) { return to_json(qp); }) + "]}";
  });
  const auto ports = joined(s.ports, [](const PortStatistics& port) {
    return "{\"name\":" + json_string(port.name) + ",\"sent\":" + json_of(counters_of(port.sent)) +
           ",\"received\":" + json_of(counters_of(port.received)) + "}";
  });
  const auto foreign = joined(s.foreign, [](const ForeignResult& port) { return to_json(port); });
  return "{\"simulated_ns\":" + std::to_string(s.simulated_ns) + ",\"nics\":[" + nics +
         "],\"ports\":[" + ports + "],\"switch\":" +
         (s.in_switch ? json_of(counters_of(*s.in_switch)) : "null") + ",\"foreign\":[" + foreign +
         "],\"failures\":[" + joined(s.failures, json_string) + "]}\n";
}

std::string to_table(const Statistics& s) {
  constexpr double kNsPerMs = 1e6;
  std::string out = format("simulated %.6f ms\n", static_cast<double>(s.simulated_ns) / kNsPerMs);
  for (const NicStatistics& nic : s.nics) {
    out += "\n" + nic.name + "\n";
    for (const auto& [name, value] : nic.counters) {
      if (value != 0) out += format("  %-28s %14llu\n", name.c_str(), wide(value));
    }
    if (nic.qps.empty()) continue;
    out += "                            requests sent,  and what came back    for others\n"
           "  QP       state  peer          sent   again    ACKs   resp. received    ACKs   resp. "
           "completed failed\n";
    for (const QueuePair& qp : nic.qps) out += row_of(qp);
  }
  out += "\nlinks\n";
  for (const PortStatistics& port : s.ports) {
    out += "  " + port.name + " sent: " + line_of(counters_of(port.sent)) + "\n";
    out += "  " + port.name + " received: " + line_of(counters_of(port.received)) + "\n";
  }
  if (s.in_switch) out += "  switch: " + line_of(counters_of(*s.in_switch)) + "\n";
  for (const ForeignResult& port : s.foreign) {
    const ForeignCounters& c = port.counters;
    out += "  " + port.path + ": " +
           line_of({{"received", c.received},
                    {"sent", c.sent},
                    {"dropped: no peer", c.no_peer},
                    {"dropped: peer does not read", c.full},
                    {"dropped: damaged", c.bad_fcs},
                    {"dropped: too short", c.runt},
                    {"dropped: too long", c.oversize},
                    {"dropped: another socket", c.stranger}}) +
           "\n";
  }
  if (!s.failures.empty()) out += "\nfailed\n";
  for (const std::string& line : s.failures) out += "  " + line + "\n";
  return out;
}

}  // namespace roci::sim
