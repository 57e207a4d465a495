// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Writes a pcapng of all vectors and of random frames of every opcode, and a JSON list of what a
// reader must find in it: input of tshark_check.py and scapy_check.py.
//   make_capture OUT.pcapng OUT.json
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/pcapng_writer.hpp"
#include "wire/random_frames.hpp"
#include "wire/vectors.hpp"

namespace {

using namespace roci::wirecodec;
using nlohmann::json;

std::string hex(std::span<const uint8_t> bytes) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  for (uint8_t byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

json to_json(const Frame& f, uint64_t time_ns, const std::string& comment) {
  json out = {
      {"time_ns", time_ns},
      {"comment", comment},
      {"name", f.info()->name},
      {"xrc", f.info()->transport == Transport::xrc},
      {"bytes", hex(encode(f))},
      {"eth.dst", to_string(f.eth.dst)},
      {"eth.src", to_string(f.eth.src)},
      {"vlan", nullptr},
      {"ipver", f.grh.ip_version},
      {"tclass", f.grh.traffic_class},
      {"flowlabel", f.grh.flow_label},
      {"paylen", f.grh.pay_len},
      {"nxthdr", f.grh.next_header},
      {"hoplmt", f.grh.hop_limit},
      {"sgid", hex(f.grh.sgid)},
      {"dgid", hex(f.grh.dgid)},
      {"opcode", f.bth.opcode},
      {"se", f.bth.solicited},
      {"m", f.bth.mig_req},
      {"padcnt", f.bth.pad_count},
      {"tver", f.bth.tver},
      {"pkey", f.bth.pkey},
      {"resv8a", f.bth.resv8a},
      {"destqp", f.bth.dest_qp},
      {"a", f.bth.ack_req},
      {"resv7", f.bth.resv7},
      {"psn", f.bth.psn},
      {"icrc", f.icrc},
      {"ext", json::object()},
  };
  if (f.eth.vlan) {
    out["vlan"] = {{"pcp", f.eth.vlan->pcp}, {"dei", f.eth.vlan->dei}, {"vid", f.eth.vlan->vid}};
  }
  json& ext = out["ext"];
  if (f.reth)
    ext["reth"] = {{"va", f.reth->va}, {"rkey", f.reth->rkey}, {"dmalen", f.reth->dma_len}};
  if (f.aeth) ext["aeth"] = {{"syndrome", f.aeth->syndrome}, {"msn", f.aeth->msn}};
  if (f.atomiceth) {
    ext["atomiceth"] = {{"va", f.atomiceth->va},
                        {"rkey", f.atomiceth->rkey},
                        {"swap_add", f.atomiceth->swap_add},
                        {"compare", f.atomiceth->compare}};
  }
  if (f.atomicacketh) ext["atomicacketh"] = {{"original", f.atomicacketh->original}};
  if (f.immdt) ext["immdt"] = hex(f.immdt->bytes);
  if (f.ieth) ext["ieth"] = f.ieth->rkey;
  if (f.deth) ext["deth"] = {{"qkey", f.deth->qkey}, {"srcqp", f.deth->src_qp}};
  return out;
}

void make(const char* pcap_path, const char* json_path) {
  roci::sim::PcapngWriter capture(pcap_path, {"roci0", "roci1"}, "rocinante wire test");
  json list = json::array();
  auto add = [&](const Frame& frame, const std::string& comment) {
    // Odd nanoseconds beyond 32 bits show that the resolution survives.
    const uint64_t time_ns = 5'000'000'000 + list.size() * 1237;
    capture.write(list.size() % 2, time_ns, encode(frame), roci::sim::CaptureDirection::outbound,
                  false, comment);
    list.push_back(to_json(frame, time_ns, comment));
  };
  for (const Vector& v : vectors().good) add(v.fields, v.id);
  RandomFrames random(roci::test_seed(4));
  for (int round = 0; round < 4; ++round) {
    for (const OpcodeInfo& info : all_opcodes()) add(random.next(info), "");
  }
  capture.flush();
  std::ofstream(json_path) << list.dump(0) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_capture OUT.pcapng OUT.json\n");
    return 2;
  }
  try {
    make(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_capture: %s\n", error.what());
    return 1;
  }
  return 0;
}
