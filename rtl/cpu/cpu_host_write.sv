// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_host_write: copies from the CPU's RAM to host memory, level 3 of the ordered writer.
//
// Two users: 0 completions of the admin engine, 1 the firmware (output buffers). One copy at a time, in
// the order of acceptance, so an output is in memory before the completion that tells of it. A copy
// becomes one write per 64-byte line it touches (no write crosses 4 KB), each collected whole before it
// is asked for, as host_dma_write demands. The last one carries a token that comes back with the tag
// when all of the copy is in memory, or failed. For a completion the phase bit is put in, so that the
// 32 bytes, which are in one line, are one bus write.
//
// copy_ready_o means taken; busy_o falls when its RAM words may be reused.
// Neighbours: cpu_admin_queue, cpu_registers, cpu_ram, host_dma_write.
`default_nettype none

module cpu_host_write (
  input  wire                            clk_i,
  input  wire                            rst_i,

  input  wire [1:0]                      copy_valid_i,
  output logic [1:0]                     copy_ready_o,
  input  wire cpu_pkg::copy_t [1:0]      copy_i,
  input  wire cpu_pkg::write_tag_t [1:0] tag_i,
  input  wire                            phase_i,          // of user 0: last bit of its last byte
  output logic                           busy_o,

  // RAM
  output logic                           read_valid_o,
  input  wire                            read_ready_i,
  output cpu_pkg::ram_addr_t             read_addr_o,
  input  wire [63:0]                     rdata_i,          // one cycle after the grant

  // host_dma_write, level 3
  output logic                           req_valid_o,
  input  wire                            req_ready_i,
  output roci_pkg::dma_write_req_t       req_o,
  output logic                           data_valid_o,
  input  wire                            data_ready_i,
  output roci_pkg::write_beat_t          data_o
);

  localparam int unsigned LANES = roci_pkg::DATA_BYTES / 8;
  typedef logic [cpu_pkg::COPY_BITS-1:0] bytes_t;

  logic busy_q;                                // a copy is being read from RAM
  logic user, user_q, phase_q, take;
  cpu_pkg::copy_t copy, copy_q;                // copy_q: what is left
  cpu_pkg::write_tag_t tag_q;

  // The line in hand: its words are read, then it is offered as one write.
  bytes_t line_room, line_bytes;               // bytes of the copy in this line
  logic [3:0] line_words;
  logic [3:0] asked_q, got_q;                  // words read from RAM: asked for, stored
  logic arriving_q;                            // rdata_i holds word got_q
  logic complete, last_line;
  // The finished line stands in registers before it is offered: what grants it hangs on it, and the
  // other levels' data on that (timing).
  logic offered_q;
  logic [7:0] word_strobe;
  logic [63:0] word;
  logic line_taken;                            // request and all of its data have gone
  logic req_gone_q, data_gone_q;
  logic req_take, data_last_take;
  roci_pkg::token_t token;
  roci_pkg::dma_write_req_t req, req_q;

  assign user = !copy_valid_i[0];
  assign take = !busy_q && copy_valid_i != '0;
  assign copy = copy_i[user];
  assign busy_o = busy_q;
  always_comb begin
    copy_ready_o = '0;
    copy_ready_o[user] = !busy_q;
  end

  assign line_room = bytes_t'(64) - bytes_t'(copy_q.addr[5:0]);
  assign last_line = copy_q.bytes <= line_room;
  assign line_bytes = last_line ? copy_q.bytes : line_room;
  assign line_words = 4'((line_bytes + bytes_t'(7)) >> 3);
  assign complete = busy_q && got_q == line_words;

  assign read_valid_o = busy_q && asked_q != line_words;
  assign read_addr_o = copy_q.ram + cpu_pkg::ram_addr_t'(asked_q);

  always_comb begin
    word_strobe = 8'hff;
    word = rdata_i;
    if (last_line && got_q == line_words - 4'd1) begin
      if (line_bytes[2:0] != '0) word_strobe = 8'hff >> (4'd8 - {1'b0, line_bytes[2:0]});
      if (!user_q) word[63] = phase_q;
    end
  end

  always_comb begin
    token = '0;
    token.kind = roci_pkg::TOKEN_CPU;
    token.body = roci_pkg::TOKEN_BODY_BITS'(tag_q);
    req = '{is_token: 1'b0, has_token: last_line, fn: copy_q.fn, qp: '0,
            length: roci_pkg::packet_len_t'(line_bytes), addr: copy_q.addr, token: token};
  end

  assign req_o = req_q;
  assign req_valid_o = offered_q && !req_gone_q;
  assign req_take = req_valid_o && req_ready_i;
  assign line_taken = offered_q && (req_gone_q || req_take) && (data_gone_q || data_last_take);

  always_ff @(posedge clk_i) begin
    req_q <= req;
    if (take) begin
      user_q <= user;
      copy_q <= copy;
      tag_q <= tag_i[user];
      phase_q <= phase_i;
    end else if (line_taken) begin
      copy_q.addr <= {copy_q.addr[63:6] + 58'd1, 6'h0};
      copy_q.bytes <= copy_q.bytes - line_bytes;
      copy_q.ram <= copy_q.ram + cpu_pkg::ram_addr_t'(line_words);
    end
    if (rst_i) begin
      busy_q <= 1'b0;
      asked_q <= '0;
      got_q <= '0;
      arriving_q <= 1'b0;
      offered_q <= 1'b0;
      req_gone_q <= 1'b0;
      data_gone_q <= 1'b0;
    end else begin
      arriving_q <= read_valid_o && read_ready_i;
      offered_q <= complete && !line_taken;
      if (take) busy_q <= 1'b1;
      if (read_valid_o && read_ready_i) asked_q <= asked_q + 4'd1;
      if (arriving_q) got_q <= got_q + 4'd1;
      if (req_take) req_gone_q <= 1'b1;
      if (data_last_take) data_gone_q <= 1'b1;
      if (line_taken) begin
        asked_q <= '0;
        got_q <= '0;
        req_gone_q <= 1'b0;
        data_gone_q <= 1'b0;
        if (last_line) busy_q <= 1'b0;
      end
    end
  end

  // --------------------------------------------------------------------------------- data of the line
  if (LANES == 1) begin : gen_narrow

    // A beat per word.
    logic [64+8-1:0] out;
    logic out_valid;
    logic [3:0] sent_q, words_q;

    common_fifo #(.WIDTH(64 + 8), .DEPTH(8), .STYLE("distributed")) u_words (
      .clk_i, .rst_i, .in_valid_i(arriving_q), .in_ready_o(), .in_i({word_strobe, word}),
      .out_valid_o(out_valid), .out_ready_i(data_valid_o && data_ready_i), .out_o(out), .usage_o()
    );

    assign data_valid_o = offered_q && !data_gone_q && out_valid;
    assign data_o = '{last: sent_q == words_q - 4'd1, strobe: out[64 +: 8], data: out[63:0]};
    assign data_last_take = data_valid_o && data_ready_i && data_o.last;

    always_ff @(posedge clk_i) begin
      words_q <= line_words;
      if (rst_i || data_last_take) sent_q <= '0;
      else if (data_valid_o && data_ready_i) sent_q <= sent_q + 4'd1;
    end

  end else begin : gen_wide

    // One beat.
    logic [roci_pkg::DATA_BITS-1:0] data_q;
    logic [roci_pkg::DATA_BYTES-1:0] strobe_q;
    logic [2:0] lane;

    assign lane = copy_q.addr[5:3] + got_q[2:0];
    assign data_valid_o = offered_q && !data_gone_q;
    assign data_o = '{last: 1'b1, strobe: strobe_q, data: data_q};
    assign data_last_take = data_valid_o && data_ready_i;

    always_ff @(posedge clk_i) begin
      for (int unsigned l = 0; l < LANES; l++) begin
        if (arriving_q && lane == 3'(l)) begin
          data_q[64*l +: 64] <= word;
          strobe_q[8*l +: 8] <= word_strobe;
        end
      end
      if (take || line_taken) strobe_q <= '0;
    end

    if (LANES != 8) begin : gen_lanes_check
      $error("%m: a line of 64 bytes must be one word or eight");
    end

  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && take) begin
      assert (copy.addr[2:0] == '0 && copy.bytes != '0)
      else $error("cpu_host_write: bad address or length");
    end
  end

endmodule

`default_nettype wire
