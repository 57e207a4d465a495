// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The figures of merit: what each is called, what it is measured against, and where the numbers go.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace roci::bench {

/// A figure. Its goals are the columns of docs/performance.md.
struct Figure {
  const char* key;    ///< in build/bench.json
  const char* title;  ///< in the table
  const char* unit;
  /// What physics or the budget allows; `ratio` is value / limit.
  double limit;
  /// More is better (bytes per cycle), otherwise less is (cycles).
  bool more_is_better;
  /// What it shall reach in the end, and at least now; nothing: only reported.
  std::optional<double> goal;
  std::optional<double> first_slice;
  /// What it has reached and --check does not let go again; nothing: not asserted.
  std::optional<double> held = std::nullopt;
  /// It depends on the machine: shown, never asserted.
  bool wall_time = false;
};

/// All figures in the order of the table.
std::span<const Figure> figures();

/// What was measured; a note says more (the worst command's name). Keys are those of figures().
struct Results {
  std::map<std::string, double> values;
  std::map<std::string, std::string> notes;
  void set(const std::string& key, double value, const std::string& note = {}) {
    values[key] = value;
    if (!note.empty()) notes[key] = note;
  }
};

/// How a run is done.
struct Options {
  std::set<std::string> only;  ///< keys; empty: all
  bool quick = false;          ///< shorter runs, fewer queue pairs, no figure with 1024 of them
  bool verbose = false;        ///< counters of the NICs after every load
  bool wants(const std::string& key) const { return only.empty() || only.contains(key); }
};

/// Says on stderr what is going on.
void progress(const std::string& text);

/// The value is at least as good as a target; no target is always reached.
bool reaches(const Figure& figure, double value, const std::optional<double>& target);

/// The table.
void print_table(std::ostream& out, const Results& results);
/// Lines about the figures that are behind one of their targets; empty if there are none. Figures that
/// were not measured or are wall time do not count.
std::vector<std::string> behind(const Results& results,
                                std::optional<double> Figure::*target);
/// Flat key → number, and the objects `limits` and `ratios` under the same keys.
void write_json(std::ostream& out, const Results& results);
/// Takes over from what write_json() wrote earlier the figures that `results` does not have.
/// @throws std::runtime_error if the text is something else
void merge_json(const std::string& text, Results& results);

/// Brings up the NICs of each configuration and measures what `options` wants, group by group.
void measure_wide(const Options& options, Results& results);
void measure_narrow(const Options& options, Results& results);

}  // namespace roci::bench
