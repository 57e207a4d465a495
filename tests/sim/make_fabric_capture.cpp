// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Sends RoCEv1 frames through an impaired fabric and captures them: input of tshark_capture.py.
//   make_fabric_capture OUT.pcapng
#include <cstdio>
#include <exception>

#include "capture/fabric_capture.hpp"
#include "fabric_bench.hpp"

int main(int argc, char** argv) {
  using namespace roci::sim;
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_fabric_capture OUT.pcapng\n");
    return 2;
  }
  try {
    FabricConfig config;
    config.ports = 3;
    Fabric fabric(config);
    FabricCapture capture(fabric, argv[1], {"roci0", "roci1", "roci2"}, 4);
    for (size_t p = 0; p < 3; ++p) fabric.learn(mac_number(p), p);
    fabric.add_rule(Rule().psn(3).drop());
    fabric.add_rule(Rule().psn(5).to_port(1).drop());
    fabric.add_rule(Rule().psn(7).corrupt_icrc());
    fabric.add_rule(Rule().psn(8).to_port(1).corrupt_fcs());
    for (uint32_t psn = 0; psn < 10; ++psn) {
      fabric.port(0).send(roci::wirecodec::encode(roce(0, 1, 0x0a, 5, psn, 1000)));
    }
    while (fabric.busy()) fabric.step();
    capture.finish();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_fabric_capture: %s\n", error.what());
    return 1;
  }
  return 0;
}
