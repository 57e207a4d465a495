// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// roci_count_pkg: what blocks tell the counters about traffic: one-cycle pulses and amounts. The
// names are those of the enumeration `counter` in hwif/csr.toml where a pulse is one of them.
`default_nettype none

package roci_count_pkg;

  // Why a queue pair's sends stopped (requester_packetizer).
  typedef struct packed {
    logic tx_stall_window;
    logic tx_stall_read;
    logic tx_stall_fence;
  } stall_counters_t;

  // Doorbells that were taken, or not and why (host_doorbell).
  typedef struct packed {
    logic doorbells;
    logic doorbell_error_kind;
    logic doorbell_error_object;
    logic doorbell_error_page;
    logic doorbell_error_index;
  } doorbell_counters_t;

  // Frames that left (ethernet_route); `bytes` with their Ethernet header, without FCS.
  typedef struct packed {
    logic frame;
    logic loopback;
    logic multicast;
    logic [13:0] bytes;
  } tx_frame_count_t;

  // Packets whose headers were built (packet_tx_count): they leave whatever happens.
  typedef struct packed {
    roci_pkg::packet_len_t payload_bytes;
    logic ack;
    logic nak_sequence;
    logic nak_rnr;
    logic nak_invalid_request;
    logic nak_remote_access;
    logic nak_remote_operational;
  } tx_packet_count_t;

  // Frames with good FCS, loopback included (ethernet_rx_count).
  typedef struct packed {
    logic frame;
    logic [13:0] bytes;              // without FCS
  } rx_frame_count_t;

  // A frame's fate at the receive checks (packet_rx_buffer), one pulse per frame. All zero but
  // `valid`: accepted. Otherwise the first check that failed, in the order of these members.
  typedef struct packed {
    logic valid;
    logic loopback;
    logic overflow;                  // no room: dropped whatever it was
    logic fcs;
    logic oversize;                  // longer than the largest packet, padding included
    logic ipver;
    logic nxthdr;
    logic paylen, tver;
    logic gid;
    logic opcode;
    logic dest_qp;
    logic icrc;
  } rx_fate_t;

  // Frames dropped before the packet buffer (ethernet_rx), one-cycle pulses.
  typedef struct packed {
    logic fcs;
    logic ethertype;
    logic mac;
    logic vlan;
  } rx_l2_drop_t;

  // Frames dropped at QP lookup, by cause: one-cycle pulses for the counters.
  typedef struct packed {
    logic dest_qp;
    logic opcode;
    logic state;
    logic gid;
    logic vlan;
    logic pkey;
    logic qkey;
    logic mad;
  } rx_dispatch_count_t;

  // Packets that passed all checks before QP lookup (packet_rx_count).
  typedef struct packed {
    logic multicast;
    logic ecn_marked;
    roci_pkg::packet_len_t payload_bytes;
  } rx_packet_count_t;

  // Bytes of a frame without FCS: its packet behind MACs and Ethertype, and the tag of 802.1Q.
  function automatic logic [13:0] frame_bytes(input logic [13:0] packet_bytes, input logic vlan);
    return packet_bytes + (vlan ? 14'd18 : 14'd14);
  endfunction

  // Verdicts of packet_rx_commit.
  typedef struct packed {
    logic requests_write;
    logic requests_read;
    logic requests_atomic;
    logic requests_send;
    logic rx_drop_after_error;
  } rx_commit_count_t;

endpackage

`default_nettype wire
