// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "wire/vectors.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace roci::wirecodec {
namespace {

using nlohmann::json;

uint64_t number(const json& value) {
  if (value.is_string()) return std::stoull(value.get<std::string>(), nullptr, 0);
  return value.get<uint64_t>();
}

template <typename T>
void assign(T& field, const json& value) {
  field = static_cast<T>(number(value));
}
void assign(bool& field, const json& value) { field = number(value) != 0; }

Gid gid(const json& value) {
  const Bytes bytes = from_hex(value.get<std::string>());
  Gid out;
  if (bytes.size() != out.size()) throw std::invalid_argument("GID of wrong length");
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

void extended_header(Frame& frame, const std::string& name, const json& h) {
  if (name == "XRCETH") {
    assign(frame.xrceth.emplace().srqn, h.at("srqn"));
  } else if (name == "DETH") {
    Deth& deth = frame.deth.emplace();
    assign(deth.qkey, h.at("qkey"));
    assign(deth.src_qp, h.at("src_qpn"));
  } else if (name == "RETH") {
    Reth& reth = frame.reth.emplace();
    assign(reth.va, h.at("va"));
    assign(reth.rkey, h.at("rkey"));
    assign(reth.dma_len, h.at("dmalen"));
  } else if (name == "ATOMIC") {
    AtomicEth& atomic = frame.atomiceth.emplace();
    assign(atomic.va, h.at("va"));
    assign(atomic.rkey, h.at("rkey"));
    assign(atomic.swap_add, h.at("swap_add"));
    assign(atomic.compare, h.at("compare"));
  } else if (name == "AETH") {
    Aeth& aeth = frame.aeth.emplace();
    assign(aeth.syndrome, h.at("syndrome"));
    assign(aeth.msn, h.at("msn"));
  } else if (name == "ATOMICACK") {
    assign(frame.atomicacketh.emplace().original, h.at("orig"));
  } else if (name == "IMM") {
    const uint64_t value = number(h.at("imm"));
    for (unsigned i = 0; i < 4; ++i) {
      if (i == 0) frame.immdt.emplace();
      frame.immdt->bytes[i] = static_cast<uint8_t>(value >> (24 - 8 * i));
    }
  } else if (name == "IETH") {
    assign(frame.ieth.emplace().rkey, h.at("rkey"));
  } else {
    throw std::invalid_argument("unknown extended header " + name);
  }
}

Frame fields(const json& v, const Bytes& bytes) {
  Frame f;
  const json& eth = v.at("eth");
  f.eth.dst = parse_mac(eth.at("dst"));
  f.eth.src = parse_mac(eth.at("src"));
  assign(f.eth.ethertype, eth.at("ethertype"));
  if (const json& vlan = eth.at("vlan"); !vlan.is_null()) {
    f.eth.vlan.emplace();
    assign(f.eth.vlan->pcp, vlan.at("pcp"));
    assign(f.eth.vlan->dei, vlan.at("dei"));
    assign(f.eth.vlan->vid, vlan.at("vid"));
  }
  const json& grh = v.at("grh");
  assign(f.grh.ip_version, grh.at("ipver"));
  assign(f.grh.traffic_class, grh.at("tclass"));
  assign(f.grh.flow_label, grh.at("flowlabel"));
  assign(f.grh.pay_len, grh.at("paylen"));
  assign(f.grh.next_header, grh.at("nxthdr"));
  assign(f.grh.hop_limit, grh.at("hoplmt"));
  f.grh.sgid = gid(grh.at("sgid"));
  f.grh.dgid = gid(grh.at("dgid"));
  const json& bth = v.at("bth");
  assign(f.bth.opcode, bth.at("opcode"));
  assign(f.bth.solicited, bth.at("se"));
  assign(f.bth.mig_req, bth.at("migreq"));
  assign(f.bth.pad_count, bth.at("padcnt"));
  assign(f.bth.tver, bth.at("tver"));
  assign(f.bth.pkey, bth.at("pkey"));
  assign(f.bth.resv8a, bth.at("resv8a"));
  assign(f.bth.dest_qp, bth.at("dest_qp"));
  assign(f.bth.ack_req, bth.at("ackreq"));
  assign(f.bth.resv7, bth.at("resv7"));
  assign(f.bth.psn, bth.at("psn"));
  for (const auto& [name, header] : v.at("ext").items()) extended_header(f, name, header);

  const auto offset = v.at("payload_offset").get<size_t>();
  const auto length = v.at("payload_len").get<size_t>();
  const auto payload = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
  f.payload.assign(payload, payload + static_cast<std::ptrdiff_t>(length));
  f.pad.assign(f.bth.pad_count, 0);
  assign(f.icrc, v.at("icrc_u32_le"));
  return f;
}

}  // namespace

Bytes from_hex(const std::string& text) {
  if (text.size() % 2 != 0) throw std::invalid_argument("odd number of hex digits");
  Bytes out;
  out.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    size_t used = 0;
    out.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), &used, 16)));
    if (used != 2) throw std::invalid_argument("not hex: " + text.substr(i, 2));
  }
  return out;
}

VectorFile load_vectors(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot open " + path);
  const json file = json::parse(in);
  VectorFile out;
  for (const json& v : file.at("vectors")) {
    Vector vector;
    vector.id = v.at("id");
    vector.name = v.at("name");
    vector.bytes = from_hex(v.at("frame_hex"));
    vector.fields = fields(v, vector.bytes);
    vector.transport = v.at("bth").at("transport");
    assign(vector.icrc, v.at("icrc_u32_le"));
    const Bytes fcs = from_hex(v.at("fcs_wire"));
    for (unsigned i = 0; i < 4; ++i) vector.fcs |= uint32_t{fcs.at(i)} << (8 * i);
    out.good.push_back(std::move(vector));
  }
  for (const json& v : file.at("negative")) {
    NegativeVector vector;
    vector.id = v.at("id");
    vector.name = v.at("name");
    vector.bytes = from_hex(v.at("frame_hex"));
    vector.expect_accept = v.at("expect") == "accept";
    vector.reason = v.at("reason");
    out.negative.push_back(std::move(vector));
  }
  if (out.good.size() != file.at("count").get<size_t>()) {
    throw std::runtime_error(path + ": count does not match");
  }
  return out;
}

const VectorFile& vectors() {
  static const VectorFile file = load_vectors(ROCI_VECTORS);
  return file;
}

}  // namespace roci::wirecodec
