// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_dma_landing: where the read data of one DMA client lands, and comes out in request order.
//
// A ring of bus words. Space for a burst is taken at the tail before the burst is issued, so its
// data can always be written (rule 2: the read channel never stalls). Words arrive in any order;
// each has a "seen" bit that is written with the lap of its pointer, so nothing has to be cleared
// from lap to lap. The word at the head leaves as soon as it is there: a burst is not waited for.
//
// Neighbours: host_dma_read (allocates, writes).
`default_nettype none

module host_dma_landing #(
  parameter int unsigned DEPTH = 64,          // words, power of two, at least BURST_BEATS
  parameter int unsigned BURST_BEATS = 8      // longest burst, power of two
) (
  input  wire                              clk_i,
  input  wire                              rst_i,
  output logic                             ready_o,      // seen bits are cleared after reset

  // allocation, one burst per cycle
  output logic                             room_o,       // the longest burst fits; stays until used
  input  wire                              alloc_i,      // only with room_o and ready_o
  input  wire [7:0]                        alloc_len_i,  // beats - 1 of the client's next burst
  output logic [$clog2(DEPTH):0]           alloc_ptr_o,  // pointer of the burst's first word

  // arriving words
  input  wire                              write_i,
  input  wire [$clog2(DEPTH):0]            write_ptr_i,  // alloc_ptr_o + beat number
  input  wire roci_pkg::read_beat_t        write_beat_i,

  // to the client
  output logic                             beat_valid_o,
  input  wire                              beat_ready_i,
  output roci_pkg::read_beat_t             beat_o
);

  localparam int unsigned ADDR_BITS = $clog2(DEPTH);
  localparam int unsigned BURST_BITS = $clog2(BURST_BEATS);
  typedef logic [ADDR_BITS:0] ptr_t;          // the top bit counts laps

  if (DEPTH != 1 << ADDR_BITS || DEPTH < BURST_BEATS || BURST_BEATS != 1 << BURST_BITS) begin
    $error("%m: bad DEPTH or BURST_BEATS");
  end

  ptr_t head_q, tail_q;
  logic room_q;
  logic beat_valid_q;

  ptr_t used, used_then;                      // now, and when the next burst is allocated
  logic seen, present, issue;
  logic [$bits(roci_pkg::read_beat_t)-1:0] beat_bits;

  assign used = tail_q - head_q;
  assign used_then = used + ptr_t'(alloc_len_i) + 1'b1;
  assign room_o = room_q;
  assign alloc_ptr_o = tail_q;

  assign present = ready_o && seen != head_q[ADDR_BITS];
  assign issue = present && (!beat_valid_q || beat_ready_i);
  assign beat_valid_o = beat_valid_q;
  assign beat_o = roci_pkg::read_beat_t'(beat_bits);

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      head_q <= '0;
      tail_q <= '0;
      room_q <= 1'b0;
      beat_valid_q <= 1'b0;
    end else begin
      if (alloc_i) tail_q <= tail_q + ptr_t'(alloc_len_i) + 1'b1;
      // Both answers are ready before it is known who allocates (timing).
      room_q <= alloc_i ? used_then <= ptr_t'(DEPTH - BURST_BEATS)
                        : used <= ptr_t'(DEPTH - BURST_BEATS);
      if (issue) head_q <= head_q + 1'b1;
      if (!beat_valid_q || beat_ready_i) beat_valid_q <= issue;
    end
  end

  // In lap 0 a seen word reads 1, in lap 1 it reads 0, and so on.
  common_ram_cleared #(
    .WIDTH(1), .DEPTH(DEPTH), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_seen (
    .clk_i, .rst_i, .ready_o,
    .we_i(write_i), .waddr_i(write_ptr_i[ADDR_BITS-1:0]), .wdata_i(!write_ptr_i[ADDR_BITS]),
    .re_i(1'b1), .raddr_i(head_q[ADDR_BITS-1:0]), .rdata_o(seen)
  );

  // A word is read only after its seen bit is there: no collision with its write.
  common_ram_sdp #(
    .WIDTH($bits(roci_pkg::read_beat_t)), .DEPTH(DEPTH), .LATENCY(1), .BYPASS(1'b0), .STYLE("block")
  ) u_data (
    .clk_i,
    .we_i(write_i), .waddr_i(write_ptr_i[ADDR_BITS-1:0]), .wdata_i(write_beat_i),
    .re_i(issue), .raddr_i(head_q[ADDR_BITS-1:0]), .rdata_o(beat_bits)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (used <= ptr_t'(DEPTH));
      if (alloc_i) assert (ready_o && used <= ptr_t'(DEPTH - BURST_BEATS)
                           && alloc_len_i < 8'(BURST_BEATS));
      // Words land only in allocated space.
      if (write_i) assert (ptr_t'(write_ptr_i - head_q) < used);
    end
  end

endmodule

`default_nettype wire
