// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// FakeServer: FakeNics behind sockets, as `nicsim serve` has RTL ones (host/transport/README.md). One
// thread does everything.
#pragma once

#include "fake_nic.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace roci::test {

/// Behaviour of a server that tests need.
struct FakeServerOptions {
  /// Says that it cannot read clients' memory, so that data goes by messages.
  bool no_process_vm = false;
  /// Answers DMA_MAP of the n-th range (from 1) of a client with ENOMEM; 0: none.
  unsigned fail_map = 0;
  /// Version of our protocol that it claims.
  unsigned protocol = 1;
};

/// Serves `nics` NICs as DIR/roci<i>.sock until it is destroyed.
class FakeServer {
 public:
  FakeServer(std::string directory, unsigned nics, FakeConfig config = {},
             FakeServerOptions options = {});
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;
  ~FakeServer();

  /// The NIC; lock fabric().mutex() for it.
  FakeNic& nic(unsigned i) { return *nics_[i]; }
  FakeFabric& fabric() { return fabric_; }
  /// Cuts all connections, as a crash would.
  void cut_connections();
  /// Answers no more reads of registers.
  void ignore_reads() { ignore_reads_ = true; }
  /// Reads that got no answer.
  unsigned ignored_reads() const { return ignored_reads_.load(); }
  /// Ranges mapped by clients of a NIC now.
  size_t maps(unsigned nic);
  /// DMA_READ and DMA_WRITE messages so far.
  uint64_t dma_messages() const { return dma_messages_.load(); }
  /// Connections of clients with a function now.
  unsigned clients() const { return clients_count_.load(); }

 private:
  class Client;
  void run();
  void accept_one(unsigned nic);

  const std::string directory_;
  const FakeServerOptions options_;
  FakeFabric fabric_;
  std::vector<std::unique_ptr<FakeNic>> nics_;
  std::vector<int> listeners_;
  std::vector<std::unique_ptr<Client>> clients_;
  int wake_ = -1;
  std::atomic<bool> stop_{false};
  std::atomic<bool> cut_{false};
  std::atomic<bool> ignore_reads_{false};
  std::atomic<unsigned> ignored_reads_{0};
  std::atomic<uint64_t> dma_messages_{0};
  std::atomic<unsigned> clients_count_{0};
  std::thread thread_;
};

}  // namespace roci::test
