// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Which NICs there are: the sockets of a directory, each asked over a connection that takes no
// function.
#include "simulator.hpp"

#include <roci/error.hpp>
#include <roci/log.hpp>

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace roci {
namespace {

// Whether `name` is in the list; an empty list has all.
bool selected(const std::string& filter, const std::string& name) {
  if (filter.empty()) return true;
  size_t begin = 0;
  while (begin <= filter.size()) {
    size_t end = filter.find(',', begin);
    if (end == std::string::npos) end = filter.size();
    if (filter.compare(begin, end - begin, name) == 0) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

NicInfo query_simulated_nic(const std::string& socket) {
  const UniqueFd fd = vfio_user::connect_to(socket);
  if (!fd) fail(ENODEV, "no simulator at %s: %s", socket.c_str(), errno_text(errno).c_str());
  constexpr std::chrono::milliseconds patience{10000};
  negotiate(fd.get(), "query", patience);
  const vfio_user::Header header{2, static_cast<uint16_t>(vfio_user::Command::ROCI_NIC_INFO),
                                 sizeof(vfio_user::Header), 0, 0};
  vfio_user::Message reply;
  vfio_user::NicInfo info{};
  if (!vfio_user::send_message(fd.get(), header, {}, {}) ||
      !vfio_user::receive_message(fd.get(), reply) ||
      (reply.header.flags & vfio_user::FLAG_ERROR) != 0 || reply.body.size() < sizeof info) {
    fail(EPROTO, "the simulator at %s does not say what it is", socket.c_str());
  }
  std::memcpy(&info, reply.body.data(), sizeof info);
  if (reply.body.size() != sizeof info + info.gid_count * sizeof(vfio_user::NicGid) +
                               info.pkey_count * sizeof(uint16_t)) {
    fail(EPROTO, "the simulator at %s does not say what it is", socket.c_str());
  }
  NicInfo nic;
  nic.socket = socket;
  std::memcpy(nic.node_guid.bytes, info.node_guid, sizeof info.node_guid);
  std::memcpy(nic.mac.bytes, info.mac, sizeof info.mac);
  nic.link_up = info.link_up != 0;
  nic.speed_mbps = info.speed_mbps;
  nic.active_mtu = static_cast<hwif::Mtu>(info.active_mtu);
  nic.hwif_hash = info.hwif_hash;
  nic.functions_free = info.functions_free;
  nic.gid_table_length = info.gid_table_length;
  const uint8_t* next = reply.body.data() + sizeof info;
  for (unsigned i = 0; i < info.gid_count; ++i, next += sizeof(vfio_user::NicGid)) {
    vfio_user::NicGid entry{};
    std::memcpy(&entry, next, sizeof entry);
    PublishedGid gid{entry.index, {}, static_cast<hwif::GidType>(entry.type)};
    std::memcpy(gid.gid.bytes, entry.gid, sizeof entry.gid);
    nic.gids.push_back(gid);
  }
  for (unsigned i = 0; i < info.pkey_count; ++i, next += sizeof(uint16_t)) {
    uint16_t pkey = 0;
    std::memcpy(&pkey, next, sizeof pkey);
    nic.pkeys.push_back(pkey);
  }
  return nic;
}

std::vector<NicInfo> list_simulated_nics(const std::string& directory, const std::string& filter) {
  std::vector<NicInfo> nics;
  if (directory.empty()) return nics;
  DIR* dir = opendir(directory.c_str());
  if (dir == nullptr) {
    log(LogLevel::WARN, "ROCI_SIM=%s: %s; is `nicsim serve` running?", directory.c_str(),
        errno_text(errno).c_str());
    return nics;
  }
  std::vector<unsigned> numbers;
  while (const dirent* entry = readdir(dir)) {
    unsigned number = 0;
    int length = 0;
    if (sscanf(entry->d_name, "roci%u.sock%n", &number, &length) == 1 && length > 0 &&
        entry->d_name[length] == 0) {
      numbers.push_back(number);
    }
  }
  closedir(dir);
  std::sort(numbers.begin(), numbers.end());
  for (const unsigned number : numbers) {
    const std::string name = format("roci%u", number);
    if (!selected(filter, name)) continue;
    try {
      NicInfo nic = query_simulated_nic(format("%s/%s.sock", directory.c_str(), name.c_str()));
      nic.name = name;
      nic.number = number;
      nics.push_back(std::move(nic));
    } catch (const Error& error) {
      log(LogLevel::WARN, "%s is left out: %s", name.c_str(), error.what());
    }
  }
  return nics;
}

}  // namespace roci
