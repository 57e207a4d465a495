// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/report.hpp"

#include "conformance/text.hpp"

#include <algorithm>
#include <array>

namespace roci::conformance {

namespace {

constexpr std::array<size_t, 5> kWidths{2, 30, 44, 56, 7};

// Bytes that begin a character of UTF-8 take a column.
size_t columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// Lines of at most `width` columns, broken between words.
std::vector<std::string> wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && columns(lines.back()) + 1 + columns(word) > width) {
      lines.emplace_back();
    }
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

void row(std::string& out, const std::array<std::string, 5>& cells) {
  std::array<std::vector<std::string>, 5> lines;
  size_t height = 0;
  for (size_t c = 0; c < cells.size(); ++c) {
    lines[c] = wrap(cells[c], kWidths[c]);
    height = std::max(height, lines[c].size());
  }
  for (size_t l = 0; l < height; ++l) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string text = l < lines[c].size() ? lines[c][l] : "";
      line += text;
      if (c + 1 < cells.size()) {
        line += std::string(kWidths[c] - std::min(columns(text), kWidths[c]), ' ') + " | ";
      }
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

std::string table(const std::vector<Result>& results) {
  std::string out;
  row(out, {"#", "scenario", "expected", "seen", "verdict"});
  std::string rule;
  for (size_t c = 0; c < kWidths.size(); ++c) {
    rule += std::string(kWidths[c], '-') + (c + 1 < kWidths.size() ? "-+-" : "\n");
  }
  for (const Result& r : results) {
    out += rule;
    row(out, {say(r.scenario->id), r.scenario->name, r.scenario->expected, r.seen,
              r.pass ? "pass" : "FAIL"});
  }
  return out;
}

std::string json(const std::vector<Result>& results, const std::string& device, uint64_t seed) {
  std::string out = say("{\"device\":", quoted(device), ",\"seed\":", seed, ",\"of\":",
                        kAllScenarios, ",\"scenarios\":[");
  for (const Result& r : results) {
    out += say(&r == results.data() ? "\n" : ",\n", "{\"id\":", r.scenario->id, ",\"name\":",
               quoted(r.scenario->name), ",\"verdict\":\"", r.pass ? "pass" : "fail",
               "\",\"expected\":", quoted(r.scenario->expected), ",\"seen\":", quoted(r.seen), "}");
  }
  return out + "]}\n";
}

}  // namespace roci::conformance
