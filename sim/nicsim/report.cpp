// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/report.hpp"

#include <roci/error.hpp>
#include <roci_hwif_names.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace roci::sim {
namespace {

unsigned long long wide(uint64_t value) { return value; }

// Length of the UTF-8 sequence at `at`, 0 if it is none.
size_t utf8_length(const std::string& text, size_t at) {
  const auto first = static_cast<uint8_t>(text[at]);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xc2 && first < 0xe0 ? 2
                        : (first & 0xf0) == 0xe0        ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<uint8_t>(text[at + i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

template <class List, class Print>
std::string joined(const List& list, Print print) {
  std::string out;
  for (const auto& element : list) {
    if (!out.empty()) out += ",";
    out += print(element);
  }
  return out;
}

std::string to_json(const NicResult& nic) {
  const auto counters = joined(nic.counters, [](const auto& counter) {
    return json_string(counter.first) + ":" + std::to_string(counter.second);
  });
  const LatencySummary& l = nic.post_to_cqe_ns;
  return "{\"counters\":{" + counters + "},\"post_to_cqe_ns\":" +
         format("{\"min\":%llu,\"median\":%llu,\"max\":%llu,\"count\":%llu}", wide(l.min),
                wide(l.median), wide(l.max), wide(l.count)) +
         (nic.qps.empty() ? "}" : ",\"qps\":[" + joined(nic.qps, [](const QueuePair& qp) {
           return to_json(qp);
         }) + "]}");
}

std::string to_json(const NakCounts& naks) {
  return format("{\"sequence\":%llu,\"rnr\":%llu,\"invalid_request\":%llu,\"remote_access\":%llu,"
                "\"remote_operational\":%llu}",
                wide(naks.sequence), wide(naks.rnr), wide(naks.invalid_request),
                wide(naks.remote_access), wide(naks.remote_operational));
}

}  // namespace

std::string to_json(const QueuePair& qp) {
  const auto name = [](const char* text) { return json_string(text); };
  return format("{\"qpn\":%u,\"function\":%u,\"alive\":%s,\"state\":", qp.qpn, qp.function,
                qp.alive ? "true" : "false") +
         (qp.state ? name(to_string(*qp.state)) : "null") + ",\"dest_qpn\":" +
         (qp.dest_qpn ? std::to_string(*qp.dest_qpn) : "null") +
         format(",\"dest_mac\":\"%012llx\",\"requests\":{\"sent\":%llu,\"again\":%llu,\"lost\":%llu,"
                "\"received\":%llu},",
                wide(qp.dest_mac), wide(qp.requests_sent), wide(qp.requests_again),
                wide(qp.requests_lost), wide(qp.requests_received)) +
         format("\"rewinds\":{\"nak\":%llu,\"rnr\":%llu,\"other\":%llu},", wide(qp.rewinds_nak),
                wide(qp.rewinds_rnr), wide(qp.rewinds_other)) +
         format("\"acks\":{\"received\":%llu,\"sent\":%llu},\"responses\":{\"received\":%llu,"
                "\"sent\":%llu},\"answers_lost\":%llu,",
                wide(qp.acks_received), wide(qp.acks_sent), wide(qp.responses_received),
                wide(qp.responses_sent), wide(qp.answers_lost)) +
         "\"naks\":{\"received\":" + to_json(qp.naks_received) + ",\"sent\":" +
         to_json(qp.naks_sent) +
         format("},\"damaged\":%llu,\"completions\":%llu,\"failed\":%llu,\"flushed\":%llu,",
                wide(qp.damaged_received), wide(qp.completions), wide(qp.failed), wide(qp.flushed)) +
         "\"status\":" + name(to_string(qp.status)) +
         ",\"vendor_status\":" + name(to_string(qp.vendor_status)) + "}";
}

std::string to_json(const ForeignResult& port) {
  const ForeignCounters& c = port.counters;
  return "{\"path\":" + json_string(port.path) +
         format(",\"received\":%llu,\"sent\":%llu,\"dropped\":{\"no_peer\":%llu,\"full\":%llu,"
                "\"bad_fcs\":%llu,\"runt\":%llu,\"oversize\":%llu,\"stranger\":%llu}}",
                wide(c.received), wide(c.sent), wide(c.no_peer), wide(c.full), wide(c.bad_fcs),
                wide(c.runt), wide(c.oversize), wide(c.stranger));
}

namespace {

std::string to_json(const LinkCounters& link) {
  return format(
      "{\"frames\":%llu,\"dropped\":%llu,\"duplicated\":%llu,\"reordered\":%llu,\"corrupted\":%llu}",
      wide(link.frames), wide(link.dropped), wide(link.duplicated), wide(link.reordered),
      wide(link.corrupted));
}

}  // namespace

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const char c = text[at];
    if (length == 0) {
      out += "\\ufffd";
      ++at;
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<uint8_t>(c) < 0x20) {
      out += format("\\u%04x", static_cast<unsigned>(c));
    } else {
      out.append(text, at, length);
    }
    at += length;
  }
  return out + "\"";
}

std::string to_json(const RunReport& report) {
  const auto programs = joined(report.programs, [](const ProgramResult& program) {
    return "{\"argv\":[" + joined(program.argv, json_string) +
           "],\"exit\":" + std::to_string(program.exit) + "}";
  });
  const auto nics = joined(report.nics, [](const NicResult& nic) { return to_json(nic); });
  const auto links = joined(report.links, [](const LinkCounters& link) { return to_json(link); });
  // only of runs that have such ports: the others' format is older
  const auto foreign = joined(report.foreign, [](const auto& port) { return to_json(port); });
  return format("{\"seed\":%llu,\"simulated_ns\":%llu,\"cycles\":%llu,\"wall_s\":%.3f,",
                wide(report.seed), wide(report.simulated_ns), wide(report.cycles), report.wall_s) +
         "\"programs\":[" + programs + "],\"nics\":[" + nics + "],\"links\":[" + links + "]" +
         (report.foreign.empty() ? "" : ",\"foreign\":[" + foreign + "]") + "}\n";
}

std::string to_json(const std::vector<FrameFate>& frames) {
  const auto accepted = static_cast<uint64_t>(
      std::count_if(frames.begin(), frames.end(), [](const auto& f) { return f.accepted; }));
  uint64_t index = 0;
  const auto list = joined(frames, [&](const FrameFate& frame) {
    return format("{\"index\":%llu,\"fate\":\"%s\",\"counter\":", wide(index++),
                  frame.accepted ? "accepted" : "dropped") +
           (frame.counter.empty() ? "null" : json_string(frame.counter)) +
           ",\"reason\":" + json_string(frame.reason) + "}";
  });
  return format("{\"accepted\":%llu,\"dropped\":%llu,", wide(accepted),
                wide(frames.size() - accepted)) +
         "\"frames\":[" + list + "]}\n";
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(path + " cannot be written: " + errno_text(errno));
}

}  // namespace roci::sim
