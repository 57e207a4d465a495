// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "figures.hpp"

#include <array>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace roci::bench {

namespace {

// Limits: wire bytes of a frame over the link's rate (wire.md: Ethernet 14 + 24, GRH 40, BTH 12,
// RETH 16, ICRC 4), memory and link latencies of the models, or the budget of the design.
constexpr std::array kFigures = {
    Figure{"write_bytes_per_cycle", "WRITE payload, MTU 4096, 64 KB messages, one QP", "B/cycle",
           48.9, true, 0.99 * 48.9, 0.95 * 48.9, 48.4},
    Figure{"read_bytes_per_cycle", "READ payload, same", "B/cycle", 48.9, true, 0.99 * 48.9,
           0.90 * 48.9, 48.4},
    Figure{"narrow_write_bytes_per_cycle", "narrow: WRITE payload, link 1 B/cycle", "B/cycle",
           0.977, true, 0.99 * 0.977, std::nullopt, 0.968},
    Figure{"narrow_read_bytes_per_cycle", "narrow: READ payload, link 1 B/cycle", "B/cycle", 0.977,
           true, 0.99 * 0.977, std::nullopt, 0.968},
    Figure{"write64_one_qp_cycles", "64 B WRITE, one QP, list posts", "cycles/msg", 3.48, false,
           4.0, 8.0, 3.6},
    Figure{"write64_64qp_cycles", "64 B WRITE, 64 QPs", "cycles/msg", 3.48, false, 3.5, 5.0,
           3.6},
    Figure{"send64_64qp_cycles", "64 B SEND, 64 QPs (receive side)", "cycles/msg", 3.16, false,
           3.3, 6.0, 3.3},
    // one request out and one in, their ACKs not counted
    Figure{"write64_both_ways_cycles", "64 B WRITE both ways at once, 64 QPs", "cycles/msg", 3.48,
           false, std::nullopt, std::nullopt, 5.0},
    Figure{"first_beat_64_cycles", "doorbell to first beat on the wire, 64 B WRITE", "cycles", 500,
           false, 533.0, 560.0, 555.0},
    Figure{"first_beat_4096_cycles", "doorbell to first beat on the wire, 4 KB WRITE", "cycles",
           500, false, 533.0, 560.0, 555.0},
    // two reads, two links, payload's and completion's write responses
    Figure{"write64_post_to_cqe_cycles", "64 B WRITE, post to CQE", "cycles", 950, false, 1200.0,
           std::nullopt, 1150.0},
    Figure{"write64_1qp_per_1024qp_ratio", "64 B rate with 1024 QPs over that with one", "", 1,
           true, 0.95, std::nullopt, 0.98},
    Figure{"admin_command_cycles", "slowest admin command but MODIFY_QP", "cycles", 3000, false,
           3000.0, std::nullopt, 2950.0},
    Figure{"modify_qp_cycles", "slowest MODIFY_QP", "cycles", 6000, false, 6000.0, std::nullopt,
           4600.0},
    Figure{"sim_khz_one_wide_nic", "simulation of one busy wide NIC on one core", "kHz", 320, true,
           300.0, 100.0, std::nullopt, true},
};

std::string number(double value) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(value < 10 ? 3 : value < 100 ? 2 : 0) << value;
  return out.str();
}

std::string target(const Figure& figure, const std::optional<double>& value) {
  if (!value) return "report";
  return (figure.more_is_better ? "≥ " : "≤ ") + number(*value);
}

// Pads by characters, not bytes ("≥" has three).
std::string pad(const std::string& text, size_t width, bool left = false) {
  size_t shown = 0;
  for (const char c : text) shown += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  const std::string blanks(width > shown ? width - shown : 0, ' ');
  return left ? text + blanks : blanks + text;
}

}  // namespace

std::span<const Figure> figures() { return kFigures; }

void progress(const std::string& text) { std::cerr << "bench: " << text << std::endl; }

bool reaches(const Figure& figure, double value, const std::optional<double>& target) {
  if (!target) return true;
  return figure.more_is_better ? value >= *target : value <= *target;
}

void print_table(std::ostream& out, const Results& results) {
  const auto row = [&](const std::array<std::string, 8>& cells) {
    static constexpr size_t kWidths[8] = {50, 11, 8, 9, 7, 9, 12, 6};
    for (size_t i = 0; i < cells.size(); ++i) {
      out << (i == 0 ? "" : "  ") << pad(cells[i], kWidths[i], i < 2);
    }
    out << "\n";
  };
  row({"figure", "unit", "limit", "value", "ratio", "goal", "first slice", ""});
  for (const Figure& figure : kFigures) {
    const auto found = results.values.find(figure.key);
    if (found == results.values.end()) continue;
    const double value = found->second;
    const bool ok = reaches(figure, value, figure.first_slice);
    row({figure.title, figure.unit, number(figure.limit), number(value),
         number(value / figure.limit), target(figure, figure.goal),
         target(figure, figure.first_slice), !figure.first_slice ? "" : ok ? "ok" : "below"});
  }
  for (const auto& [key, note] : results.notes) out << key << ": " << note << "\n";
}

std::vector<std::string> behind(const Results& results,
                                std::optional<double> Figure::*target_of) {
  std::vector<std::string> lines;
  for (const Figure& figure : kFigures) {
    const auto found = results.values.find(figure.key);
    if (found == results.values.end() || figure.wall_time) continue;
    if (reaches(figure, found->second, figure.*target_of)) continue;
    lines.push_back(std::string(figure.key) + " is " + number(found->second) + ", not " +
                    target(figure, figure.*target_of));
  }
  return lines;
}

void write_json(std::ostream& out, const Results& results) {
  const auto object = [&](const char* indent, const auto& value_of) {
    bool first = true;
    for (const Figure& figure : kFigures) {
      const auto found = results.values.find(figure.key);
      if (found == results.values.end()) continue;
      out << (first ? "" : ",\n") << indent << '"' << figure.key
          << "\": " << value_of(figure, found->second);
      first = false;
    }
  };
  out << std::setprecision(8) << "{\n";
  object("  ", [](const Figure&, double value) { return value; });
  out << (results.values.empty() ? "" : ",\n") << "  \"limits\": {\n";
  object("    ", [](const Figure& figure, double) { return figure.limit; });
  out << "\n  },\n  \"ratios\": {\n";
  object("    ", [](const Figure& figure, double value) { return value / figure.limit; });
  out << "\n  }\n}\n";
}

void merge_json(const std::string& text, Results& results) {
  const size_t end = text.find("\"limits\"");
  if (end == std::string::npos) throw std::runtime_error("no figures");
  for (const Figure& figure : kFigures) {
    const std::string name = '"' + std::string(figure.key) + "\": ";
    const size_t at = text.find(name);
    if (at >= end || results.values.contains(figure.key)) continue;
    results.values[figure.key] = std::stod(text.substr(at + name.size(), 32));
  }
}

}  // namespace roci::bench
