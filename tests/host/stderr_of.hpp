// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What the host stack says to the user.
#pragma once

#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdio>
#include <string>

namespace roci::test {

/// What the host stack prints on stderr during `run`; with ROCI_LOG unset: warnings.
template <class Run>
std::string stderr_of(Run run) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int kept = dup(STDERR_FILENO);
  REQUIRE(dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
  run();
  REQUIRE(dup2(kept, STDERR_FILENO) == STDERR_FILENO);
  close(kept);
  std::rewind(file);
  std::string text(4096, 0);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace roci::test
