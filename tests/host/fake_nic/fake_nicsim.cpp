// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// fake_nicsim DIR NICS: serves FakeNics until standard input ends. For tests of whole programs; says
// "ready" on standard output, and at its end every violation of the interface, with exit status 1.
#include "fake_server.hpp"

#include <roci/error.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: fake_nicsim DIR NICS [messages]\n");
    return 2;
  }
  roci::test::FakeConfig config;
  config.functions = 16;
  config.qps = 1024;
  config.cqs = 1024;
  config.mrs = 16384;
  const auto nics = static_cast<unsigned>(atoi(argv[2]));
  roci::test::FakeServerOptions options;
  options.no_process_vm = argc > 3;
  try {
    roci::test::FakeServer server(argv[1], nics, config, options);
    printf("ready\n");
    fflush(stdout);
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    size_t violations = 0;
    for (unsigned i = 0; i < nics; ++i) {
      const std::lock_guard lock(server.fabric().mutex());
      for (const auto& text : server.nic(i).violations()) {
        fprintf(stderr, "fake_nicsim: roci%u: %s\n", i, text.c_str());
        ++violations;
      }
    }
    return violations == 0 ? 0 : 1;
  } catch (const roci::Error& error) {
    fprintf(stderr, "fake_nicsim: %s\n", error.what());
    return 125;
  }
}
