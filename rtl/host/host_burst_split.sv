// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_burst_split: cuts a DMA request into AXI INCR bursts.
//
// A request of 1..4096 bytes that stays within 4 KB becomes bursts that stay within aligned pieces
// of BURST_BYTES (AXI A3.4.1: no burst crosses 4 KB, none is longer than 256 beats). Burst
// addresses are aligned down to the data width: beat n of a burst is the n-th word of memory.
// One burst per cycle, first burst one cycle after the request.
//
// Does not: wait for data or room; its users (host_dma_read, host_dma_write) hold burst_ready_i.
`default_nettype none

module host_burst_split #(
  parameter int unsigned DATA_BYTES = roci_pkg::DATA_BYTES,   // bus width
  parameter int unsigned BURST_BYTES = 512,   // power of two, 2 * DATA_BYTES..256 * DATA_BYTES, and
                                              // at most 4096
  parameter int unsigned INFO_BITS = 1        // what rides along with a request
) (
  input  wire                         clk_i,
  input  wire                         rst_i,

  // request
  input  wire                         req_valid_i,
  output logic                        req_ready_o,
  input  wire roci_pkg::addr_t        req_addr_i,      // any alignment
  input  wire roci_pkg::packet_len_t  req_length_i,    // bytes, 1..4096, not across 4 KB
  input  wire [INFO_BITS-1:0]         req_info_i,

  // bursts
  output logic                        burst_valid_o,
  input  wire                         burst_ready_i,
  output roci_pkg::addr_t             burst_addr_o,    // multiple of DATA_BYTES
  output logic [7:0]                  burst_len_o,     // beats - 1, as in AxLEN
  output roci_pkg::packet_len_t       burst_bytes_o,   // bytes of the request in this burst
  output logic                        burst_last_o,    // last burst of the request
  output logic [INFO_BITS-1:0]        burst_info_o
);

  localparam int unsigned LANE_BITS = $clog2(DATA_BYTES);
  localparam int unsigned BURST_BITS = $clog2(BURST_BYTES);

  if (BURST_BYTES != 1 << BURST_BITS || BURST_BYTES > 4096 || BURST_BYTES > 256 * DATA_BYTES
      || BURST_BYTES < 2 * DATA_BYTES) begin
    $error("%m: BURST_BYTES is no legal burst");
  end

  logic valid_q;
  roci_pkg::addr_t addr_q;
  roci_pkg::packet_len_t left_q;          // bytes not yet sent
  logic [INFO_BITS-1:0] info_q;

  logic [13:0] end_offset;                // end of the rest, from the start of the burst's piece
  logic last, take;
  roci_pkg::packet_len_t stop_offset;     // end of this burst, likewise
  logic [BURST_BITS-1:0] first_offset, last_offset;

  always_comb begin
    first_offset = addr_q[BURST_BITS-1:0];
    end_offset = 14'(first_offset) + 14'(left_q);
    last = end_offset <= 14'(BURST_BYTES);
    stop_offset = last ? 13'(end_offset) : 13'(BURST_BYTES);
    last_offset = BURST_BITS'(stop_offset - 1'b1);

    burst_valid_o = valid_q;
    burst_addr_o = {addr_q[63:LANE_BITS], LANE_BITS'(0)};
    burst_len_o = 8'(last_offset[BURST_BITS-1:LANE_BITS])
                  - 8'(first_offset[BURST_BITS-1:LANE_BITS]);
    burst_bytes_o = stop_offset - 13'(first_offset);
    burst_last_o = last;
    burst_info_o = info_q;
  end

  assign take = valid_q && burst_ready_i;
  assign req_ready_o = !valid_q || (take && last);

  always_ff @(posedge clk_i) begin
    if (req_ready_o) begin
      valid_q <= req_valid_i;
      addr_q <= req_addr_i;
      left_q <= req_length_i;
      info_q <= req_info_i;
    end else if (take) begin
      // The request stays within 4 KB: no carry beyond bit 11.
      addr_q[11:0] <= (addr_q[11:0] | 12'(BURST_BYTES - 1)) + 1'b1;
      left_q <= 13'(end_offset - 14'(BURST_BYTES));
    end
    if (rst_i) valid_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && req_valid_i) begin
      assert (req_length_i != '0 && req_length_i <= 13'd4096)
      else $error("host_burst_split: length %0d", req_length_i);
      assert (14'(req_addr_i[11:0]) + 14'(req_length_i) <= 14'd4096)
      else $error("host_burst_split: request crosses 4 KB");
    end
  end

endmodule

`default_nettype wire
