// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_packet_fifo: FIFO of the beats of packets, with one side record per packet.
//
// What rides beside a packet is the same in all of its beats: it is taken with the first one and kept
// once, in a FIFO of its own, and offered beside every beat again. So the big memory is as wide as a
// beat only. A packet that finds PACKETS others inside waits.
//
// Does not: keep packets whole (a beat leaves as soon as it can), drop, flush except by reset.
// Neighbours: common_fifo (both memories); the buffers of ethernet_* and packet_icrc_insert.
`default_nettype none

module common_packet_fifo #(
  parameter int unsigned WIDTH = 8,          // bits of a beat, without `last`
  parameter int unsigned SIDE_WIDTH = 8,     // bits of the side record
  parameter int unsigned DEPTH = 16,         // beats
  parameter int unsigned PACKETS = 16,       // side records, at most 64 for LUT RAM
  parameter string STYLE = "auto"            // of the memory of beats, as in common_fifo
) (
  input  wire                       clk_i,
  input  wire                       rst_i,        // synchronous, active high: empties

  input  wire                       in_valid_i,
  output logic                      in_ready_o,
  input  wire [WIDTH-1:0]           in_i,
  input  wire                       in_last_i,    // last beat of its packet
  input  wire [SIDE_WIDTH-1:0]      in_side_i,    // counts in the first beat

  output logic                      out_valid_o,
  input  wire                       out_ready_i,
  output logic [WIDTH-1:0]          out_o,
  output logic                      out_last_o,
  output logic [SIDE_WIDTH-1:0]     out_side_o,   // of the packet that out_o belongs to

  output logic [$clog2(DEPTH+1)-1:0] usage_o      // beats inside
);

  logic first_q;                             // the next beat that comes is the first of its packet
  logic beat_ready, side_ready, beat_valid, side_valid;

  // The side record is written before its beats can come out: side_valid never waits.
  assign in_ready_o = beat_ready && (side_ready || !first_q);
  assign out_valid_o = beat_valid && side_valid;

  common_fifo #(.WIDTH(WIDTH + 1), .DEPTH(DEPTH), .STYLE(STYLE)) u_beats (
    .clk_i, .rst_i,
    .in_valid_i(in_valid_i && (side_ready || !first_q)), .in_ready_o(beat_ready),
    .in_i({in_last_i, in_i}),
    .out_valid_o(beat_valid), .out_ready_i(out_ready_i && side_valid),
    .out_o({out_last_o, out_o}), .usage_o
  );
  common_fifo #(.WIDTH(SIDE_WIDTH), .DEPTH(PACKETS), .STYLE("distributed")) u_sides (
    .clk_i, .rst_i,
    .in_valid_i(in_valid_i && first_q && beat_ready), .in_ready_o(side_ready), .in_i(in_side_i),
    .out_valid_o(side_valid), .out_ready_i(beat_valid && out_ready_i && out_last_o),
    .out_o(out_side_o), .usage_o()
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      first_q <= 1'b1;
    end else begin
      if (in_valid_i && in_ready_o) first_q <= in_last_i;
      assert (!beat_valid || side_valid);
    end
  end

endmodule

`default_nettype wire
