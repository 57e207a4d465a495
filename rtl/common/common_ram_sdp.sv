// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_ram_sdp: simple dual-port RAM, one write port and one read port, one clock.
//
// A read started in a cycle sees every write of earlier cycles. What it sees of a write in the same
// cycle to the same address is set by BYPASS: the new data, or nothing defined (then no logic is
// spent, and simulation returns inverted bits so that a user who relies on it is found).
// rdata_o holds its value until the next read arrives.
//
// Does not: clear itself (common_ram_cleared does), check addresses (a DEPTH that is no power of
// two leaves some without a word). Contents are undefined after power-up and survive reset.
// Neighbours: base of common_fifo, common_object_queue and of all tables.
`default_nettype none

module common_ram_sdp #(
  parameter int unsigned WIDTH = 64,         // bits of a word
  parameter int unsigned DEPTH = 512,        // words, >= 2
  parameter int unsigned GRANULE = WIDTH,    // bits per write enable, divides WIDTH
  parameter int unsigned LATENCY = 1,        // cycles from read to data, 0..3; 0 only where the
                                             // device has LUT RAM; 3 suits cascaded URAM
  parameter bit BYPASS = 1'b1,               // read of a word just written: 1 new, 0 undefined
  parameter string STYLE = "auto"            // ram_style: auto, distributed, block, ultra
) (
  input  wire                     clk_i,

  // write port: one enable per granule
  input  wire [WIDTH/GRANULE-1:0] we_i,
  input  wire [$clog2(DEPTH)-1:0] waddr_i,
  input  wire [WIDTH-1:0]         wdata_i,

  // read port: rdata_o follows LATENCY cycles after re_i (LATENCY = 0: at once, re_i ignored)
  input  wire                     re_i,
  input  wire [$clog2(DEPTH)-1:0] raddr_i,
  output logic [WIDTH-1:0]        rdata_o
);

  localparam int unsigned ENABLES = WIDTH / GRANULE;

  if (DEPTH < 2) $error("%m: DEPTH must be at least 2");
  if (WIDTH % GRANULE != 0) $error("%m: GRANULE must divide WIDTH");
  if (STYLE != "auto" && STYLE != "distributed" && STYLE != "block" && STYLE != "ultra") begin
    $error("%m: unknown STYLE");
  end
  if (LATENCY > 3) $error("%m: LATENCY must be 0..3");
  if (LATENCY == 0 && BYPASS) $error("%m: LATENCY 0 reads before the write, BYPASS must be 0");

  // A collision is either bypassed below or of no interest: tools need not protect it.
  (* ram_style = STYLE, no_rw_check *) logic [WIDTH-1:0] mem [DEPTH];

  always_ff @(posedge clk_i) begin
    for (int unsigned e = 0; e < ENABLES; e++) begin
      if (we_i[e]) mem[waddr_i][e*GRANULE +: GRANULE] <= wdata_i[e*GRANULE +: GRANULE];
    end
  end

  if (LATENCY == 0) begin : gen_async

    assign rdata_o = mem[raddr_i];

    wire unused_re = &{1'b0, re_i};

  end else begin : gen_sync

    logic [WIDTH-1:0] ram_q;
    logic [WIDTH-1:0] first;         // data of the first stage, collisions resolved
    wire collision = re_i && we_i != '0 && waddr_i == raddr_i;

    if (BYPASS) begin : gen_bypass

      logic [ENABLES-1:0] hit_q;
      logic [WIDTH-1:0] wdata_q;

      always_ff @(posedge clk_i) begin
        if (re_i) begin
          ram_q <= mem[raddr_i];
          hit_q <= collision ? we_i : '0;
          wdata_q <= wdata_i;
        end
      end

      always_comb begin
        for (int unsigned e = 0; e < ENABLES; e++) begin
          first[e*GRANULE +: GRANULE] =
              hit_q[e] ? wdata_q[e*GRANULE +: GRANULE] : ram_q[e*GRANULE +: GRANULE];
        end
      end

    end else begin : gen_plain

      always_ff @(posedge clk_i) begin
        if (re_i) begin
          ram_q <= mem[raddr_i];
`ifndef SYNTHESIS
          for (int unsigned e = 0; e < ENABLES; e++) begin
            if (collision && we_i[e]) begin
              ram_q[e*GRANULE +: GRANULE] <= ~mem[raddr_i][e*GRANULE +: GRANULE];
            end
          end
`endif
        end
      end

      assign first = ram_q;
`ifdef SYNTHESIS
      wire unused_collision = &{1'b0, collision};
`endif

    end

    if (LATENCY == 1) begin : gen_one

      assign rdata_o = first;

    end else begin : gen_more

      // Registers behind the RAM, absorbed by BRAM and URAM output registers where BYPASS = 0.
      logic [LATENCY-2:0] re_q;
      logic [LATENCY-2:0][WIDTH-1:0] pipe_q;

      always_ff @(posedge clk_i) begin
        re_q[0] <= re_i;
        if (re_q[0]) pipe_q[0] <= first;
        for (int unsigned s = 1; s < LATENCY - 1; s++) begin
          re_q[s] <= re_q[s-1];
          if (re_q[s]) pipe_q[s] <= pipe_q[s-1];
        end
      end

      assign rdata_o = pipe_q[LATENCY-2];

    end
  end

endmodule

`default_nettype wire
