// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_trim: cuts a received packet at the end that its GRH gives.
//
// The packet ends 40 + PayLen bytes behind its start, not at the end of the frame: what follows is
// padding (wire.md 1, conformance 50). The packet's last beat is marked there; later beats of the
// frame are swallowed. The verdict over the whole frame (FCS, or fewer bytes than PayLen promises)
// comes with `end_valid_o` when the frame really ends, in the cycle of the packet's last beat or later.
// A frame that ends early gets its last beat where it ends. A frame longer than the largest packet there
// is, with its padding, is told as such; of it that much goes on, or up to a beat more.
//
// Valid-only stream, one beat per cycle, no back-pressure: the packet buffer takes or drops everything.
// Neighbours: ethernet_rx and ethernet_loopback (merged) → here → packet_icrc_check,
// packet_header_check, packet_rx_buffer.
`default_nettype none

module packet_rx_trim (
  input  wire              clk_i,
  input  wire              rst_i,

  input  wire              frame_valid_i,
  input  roci_pkg::beat_t  frame_i,         // GRH at byte 0, until the frame's end; err = bad FCS

  output logic             beat_valid_o,
  output logic             first_o,         // first beat of a packet
  output roci_pkg::beat_t  beat_o,          // until the packet's end; err unused
  output logic             end_valid_o,     // the frame has ended
  output logic             end_fcs_bad_o,
  output logic             end_short_o,     // the frame has fewer bytes than 40 + PayLen
  output logic             end_long_o       // or more than the largest packet
);

  localparam int unsigned BYTES = roci_pkg::DATA_BYTES;
  typedef logic [16:0] length_t;            // 40 + PayLen
  typedef logic [$clog2(packet_pkg::PACKET_BYTES+1)-1:0] size_t;

  logic first_q;                            // the next frame beat is the first
  logic ended_q;                            // the packet of this frame has ended
  length_t left_q, left;                    // bytes of the packet from this beat on
  size_t room_q, room;                      // bytes of the largest packet from this beat on
  logic packet_ends;
  logic long_q, long;                       // the frame has more

  always_comb begin
    // GRH bytes 4 and 5, in the first beat of both widths
    left = first_q ? length_t'(packet_pkg::GRH_BYTES)
                     + length_t'({frame_i.data[39:32], frame_i.data[47:40]})
                   : left_q;
    packet_ends = left <= length_t'(frame_i.bytes);
    room = first_q ? size_t'(packet_pkg::PACKET_BYTES) : room_q;
    long = (long_q && !first_q) || size_t'(frame_i.bytes) > room;
  end

  always_ff @(posedge clk_i) begin
    beat_o.data <= frame_i.data;
    beat_o.err <= 1'b0;
    beat_o.last <= packet_ends || long || frame_i.last;
    beat_o.bytes <= packet_ends ? roci_pkg::BYTES_BITS'(left) : frame_i.bytes;
    first_o <= first_q;
    end_fcs_bad_o <= frame_i.err;
    end_short_o <= !packet_ends && !ended_q;
    end_long_o <= long;
    if (frame_valid_i) begin
      left_q <= left - length_t'(BYTES);
      room_q <= room - size_t'(BYTES);
      long_q <= long;
    end
    if (rst_i) begin
      first_q <= 1'b1;
      ended_q <= 1'b0;
      beat_valid_o <= 1'b0;
      end_valid_o <= 1'b0;
    end else begin
      beat_valid_o <= frame_valid_i && !ended_q;
      end_valid_o <= frame_valid_i && frame_i.last;
      if (frame_valid_i) begin
        first_q <= frame_i.last;
        ended_q <= (ended_q || packet_ends || long) && !frame_i.last;
      end
    end
  end

endmodule

`default_nettype wire
