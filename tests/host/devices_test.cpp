// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The list of devices that the preload library shows: entries that programs hold never change.
#include "world.hpp"

#include "../../host/preload/devices.hpp"
#include "fake_nic/fake_server.hpp"

#include <filesystem>

using namespace roci;
using namespace roci::test;

TEST_CASE("a device stays what it is; a NIC that changed is another device") {
  char path[] = "/tmp/roci-test-XXXXXX";
  REQUIRE(mkdtemp(path) != nullptr);
  setenv("ROCI_SIM", path, 1);
  {
    FakeServer server(path, 2);
    const auto first = preload::our_devices();
    REQUIRE(first.size() == 2);
    CHECK(preload::our_devices() == first);
    CHECK(preload::entry_of(&first[1]->device) == first[1]);
    CHECK(std::string(first[1]->device.name) == "roci1");
    const auto before = first[1]->nic.gids;
    REQUIRE_FALSE(before.empty());
    {
      const std::lock_guard lock(server.fabric().mutex());
      hwif::GidEntry entry = server.nic(1).gids()[0];
      entry.set<hwif::GidEntry::gid>(Gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9}});
      server.nic(1).set_gid(0, entry);
    }
    const auto second = preload::our_devices();
    REQUIRE(second.size() == 2);
    CHECK(second[0] == first[0]);
    REQUIRE(second[1] != first[1]);
    CHECK(first[1]->nic.gids[0].gid == before[0].gid);
    CHECK(second[1]->nic.gids[0].gid[8] == 9);
    // A program that comes takes a function: that is no change.
    auto taken = connect_simulator(second[1]->nic.socket);
    CHECK(preload::our_devices() == second);
  }
  unsetenv("ROCI_SIM");
  std::filesystem::remove_all(path);
}
