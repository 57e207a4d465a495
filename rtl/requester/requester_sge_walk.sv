// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_sge_walk: the SGEs of the WQE at work, one in hand, the others in line.
//
// `cur_o` is what is left of the SGE in hand. Orders, at most one per cycle but for next + skip:
//   start   a new WQE with `count_i` SGEs in line begins; none is in hand
//   next    the next one comes into hand
//   take    so many bytes of it are used; when it is used up the next one follows at once
//   skip    so many bytes of the WQE are passed over, one SGE per cycle (`skipping_o`)
//   drop    the rest of the WQE's SGEs goes, one per cycle, until `dropped_o`
// No SGE has length 0. The user never asks for more than the WQE has (asserted).
//
// Does not: know packets. Neighbours: requester_wqe_front → here ⇄ requester_packetizer.
`default_nettype none

module requester_sge_walk #(
  parameter int unsigned DEPTH = roci_config_pkg::IS_WIDE ? 32 : 16   // SGEs in line, > 15
) (
  input  wire                    clk_i,
  input  wire                    rst_i,

  input  wire                    sge_valid_i,
  output logic                   sge_ready_o,
  input  wire roci_pkg::sge_t    sge_i,

  input  wire                    start_i,
  input  wire [3:0]              count_i,
  input  wire                    next_i,
  input  wire                    take_i,
  input  wire roci_pkg::packet_len_t take_bytes_i,   // 1..cur_o.length
  input  wire                    take_all_i,         // that is all of it
  input  wire                    skip_i,
  input  wire [31:0]             skip_bytes_i,       // less than the WQE has from here on
  input  wire                    drop_i,

  output roci_pkg::sge_t         cur_o,
  output logic [3:0]             left_o,             // SGEs of the WQE in line
  output logic                   skipping_o,
  output logic                   dropped_o           // with drop: none is left after this cycle
);

  roci_pkg::sge_t head, cur_q;
  logic head_valid, pop;
  logic [3:0] left_q;
  logic skip_q;
  logic [31:0] skip_left_q;

  logic used_up;                       // by this take
  logic pass;                          // the SGE in hand is skipped whole
  logic load;                          // the next one comes into hand

  common_fifo #(.WIDTH($bits(roci_pkg::sge_t)), .DEPTH(DEPTH), .STYLE("distributed")) u_line (
    .clk_i, .rst_i,
    .in_valid_i(sge_valid_i), .in_ready_o(sge_ready_o), .in_i(sge_i),
    .out_valid_o(head_valid), .out_ready_i(pop), .out_o(head), .usage_o()
  );

  assign cur_o = cur_q;
  assign left_o = left_q;
  assign skipping_o = skip_q;
  assign dropped_o = left_q <= 4'd1;

  assign used_up = take_i && take_all_i;
  assign pass = skip_q && skip_left_q >= cur_q.length;
  assign load = next_i || (used_up && left_q != '0) || pass;
  assign pop = load || (drop_i && left_q != '0);

  always_ff @(posedge clk_i) begin
    if (start_i) left_q <= count_i;
    else if (pop) left_q <= left_q - 1'b1;

    if (load) begin
      cur_q <= head;
    end else if (take_i) begin
      cur_q.va <= cur_q.va + 64'(take_bytes_i);
      cur_q.length <= cur_q.length - 32'(take_bytes_i);
    end else if (skip_q) begin
      cur_q.va <= cur_q.va + 64'(skip_left_q);
      cur_q.length <= cur_q.length - skip_left_q;
    end

    if (skip_i) begin
      skip_q <= 1'b1;
      skip_left_q <= skip_bytes_i;
    end else if (skip_q) begin
      skip_q <= pass;
      skip_left_q <= skip_left_q - cur_q.length;
    end
    if (rst_i) begin
      left_q <= '0;
      skip_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (pop) assert (head_valid && left_q != '0);
      if (take_i) begin
        assert (32'(take_bytes_i) <= cur_q.length && take_bytes_i != '0);
        assert (take_all_i == (32'(take_bytes_i) == cur_q.length));
      end
      if (start_i) assert (left_q == '0 || (left_q == 4'd1 && pop));
      if (skip_q) assert (!next_i && !take_i && !skip_i && !drop_i && !start_i);
    end
  end

endmodule

`default_nettype wire
