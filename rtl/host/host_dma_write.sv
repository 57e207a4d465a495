// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_dma_write: all writes to host memory, in one order with the tokens that wait for them
// (architecture.md rule 4).
//
// Four levels ask: 0 host_scatter, 1 queue_cq_writer, 2 queue_eq_writer, 3 cpu; and responder_atomic.
// In each cycle one request is granted, by priority 2, 1, 3, atomic, 0: a write becomes an AXI burst
// (two if it has more than 256 beats) and an entry of the commit FIFO, a token only an entry. With
// has_token a write brings its token along in its entry. Tokens come out when every write before them
// has its bus response.
//
// Data. A write is granted with its first data word, and its other words must follow without
// waiting for anything but data_ready_o: levels 1 and 2 have them in registers, level 0 in the
// packet buffer, and the copy engine of level 3 collects them first. So the write channel never
// waits for another level or for a read. Tokens are granted also while the last burst of a request
// runs.
//
// Writes of a disabled function (one in reset) do not go to the bus: their data is taken and dropped,
// and their entry counts as one with a bad response.
//
// Atomics. `written_o` shows every word that leaves, in its order (responder_atomic watches it). With
// lock_i the engine asks that no word leaves between its last look at memory and its own write. The lock
// is given in a cycle in which no burst runs and that a write could be granted in: bus slices, a
// response and a place in the commit FIFO are free. Nothing else is granted until the engine's request
// comes, so they stay free (a completion may hold one more place in that very cycle: the reserve of
// level 3 is above) and the request is granted at once. It comes within 5 cycles. One lock per atomic.
//
// No circle: the head of the commit FIFO waits for the bus or for a reader of tokens; readers wait
// for nothing below them (host_commit_fifo, host_commit_tokens); the bus limit WRITES counts
// responses, not entries. Level 2 before 1 before 3 before 0, so what a token causes overtakes what
// causes more tokens. No token waits for a grant of the atomics, so they have no reserve: they leave
// those of the levels alone, as level 0 does. They starve nobody: an atomic needs two grants and a
// lock, and comes at most every few cycles (responder_atomic); levels 2, 1 and 3 pass it, and their
// requests are caused by frames, posts and commands, which have gaps.
//
// Neighbours: as above; AXI4 AW, W, B with one ID. Token latency when idle: 3 cycles.
`default_nettype none

module host_dma_write #(
  parameter int unsigned WRITES = roci_config_pkg::DMA_WRITES,    // bursts outstanding
  parameter int unsigned ENTRIES = 2 * roci_config_pkg::DMA_WRITES   // of the commit FIFO
) (
  input  wire                                   clk_i,
  input  wire                                   rst_i,
  input  wire [2**roci_config_pkg::FN_BITS-1:0] fn_disabled_i,   // their writes fail

  // requests and data of the levels
  input  wire [3:0]                             req_valid_i,
  output logic [3:0]                            req_ready_o,
  input  wire roci_pkg::dma_write_req_t [3:0]   req_i,
  input  wire [3:0]                             data_valid_i,
  output logic [3:0]                            data_ready_o,
  input  roci_pkg::write_beat_t                 data_i [4],    // 2: EQEs, the same in all lanes

  // responder_atomic: a token, or while locked a write or token
  input  wire                                   atomic_valid_i,
  output logic                                  atomic_ready_o,
  input  wire host_pkg::atomic_write_t          atomic_i,
  input  wire                                   lock_i,        // wants the lock; stays until locked
  output logic                                  locked_o,      // until its request is granted
  output host_pkg::written_t                    written_o,     // words that leave

  // completions that do not come from tokens (host_commit_fifo)
  output logic                                  cqe_room_o,
  input  wire                                   cqe_reserve_i,

  input  wire roci_pkg::state_bcast_t           state_i,

  // tokens out; one payload for all readers
  output roci_pkg::token_t                      token_o,
  output logic                                  completion_valid_o,
  input  wire                                   completion_ready_i,
  output logic                                  respond_valid_o,
  input  wire                                   respond_ready_i,
  output logic                                  ack_event_valid_o,
  input  wire                                   ack_event_ready_i,
  output logic                                  cqe_done_valid_o,
  input  wire                                   cqe_done_ready_i,
  output logic                                  eqe_done_valid_o,
  input  wire                                   eqe_done_ready_i,
  output logic                                  cpu_done_valid_o,
  input  wire                                   cpu_done_ready_i,
  output logic                                  atomic_done_valid_o,
  input  wire                                   atomic_done_ready_i,
  output logic                                  end_valid_o,     // packet_end came out
  output roci_pkg::colour_t                     end_colour_o,

  // AXI4 write channels
  output logic                                  axi_awvalid_o,
  input  wire                                   axi_awready_i,
  output roci_pkg::addr_t                       axi_awaddr_o,    // multiple of DATA_BYTES
  output logic [7:0]                            axi_awlen_o,
  output logic [2:0]                            axi_awsize_o,
  output logic [1:0]                            axi_awburst_o,
  output roci_pkg::fn_t                         axi_awuser_o,    // function = DMA domain
  output logic                                  axi_wvalid_o,
  input  wire                                   axi_wready_i,
  output logic [roci_pkg::DATA_BITS-1:0]        axi_wdata_o,
  output logic [roci_pkg::DATA_BYTES-1:0]       axi_wstrb_o,
  output logic                                  axi_wlast_o,
  input  wire                                   axi_bvalid_i,
  output logic                                  axi_bready_o,    // constant 1
  input  wire [1:0]                             axi_bresp_i,

  // counters
  output roci_pkg::packet_len_t                 count_bytes_o,   // of the write granted
  output logic                                  count_error_o    // bad bus response
);

  localparam int unsigned LANE_BITS = roci_pkg::LANE_BITS;
  localparam int unsigned WORD_BITS = 12 - LANE_BITS;      // word number within 4 KB
  localparam int unsigned OUT_BITS = $clog2(WRITES + 1);
  localparam int unsigned EQE_BITS = roci_config_pkg::IS_WIDE ? 128 : 64;   // level 2, each beat

  typedef struct packed {
    logic [1:0] level;
    logic refused;                       // a write that did not go to the bus
    logic has_token;
    roci_pkg::token_t token;
  } entry_t;

  typedef struct packed {
    roci_pkg::fn_t fn;
    logic [7:0] len;
    logic [63:LANE_BITS] word;           // address in bus words
  } burst_t;

  typedef struct packed {
    logic last;
    logic [roci_pkg::DATA_BYTES-1:0] strobe;
    logic [roci_pkg::DATA_BITS-1:0] data;
  } wword_t;

  // A burst whose data is on its way, and the burst behind it of the same request.
  logic busy_q;                          // words of the running burst are still to come
  logic [1:0] level_q;
  logic [7:0] left_q;                    // words after the next one
  logic more_q;                          // another burst follows
  burst_t more_burst_q;
  entry_t more_entry_q;
  logic refused_q;                       // the running request does not go to the bus
  logic [OUT_BITS-1:0] outstanding_q;
  logic locked_q;                        // only the atomic is granted
  host_pkg::written_t written_q;

  logic [3:0] room, wants, grant;
  logic atomic, lock, cqe_room;
  logic write_free, write, token_only, extra, start;
  logic [1:0] level, word_level;
  roci_pkg::dma_write_req_t req;
  logic [WORD_BITS-1:0] first_word, last_word;
  logic [8:0] beats;                     // words of the request - 1
  logic split;
  logic refused;                         // the burst that starts does not go to the bus
  burst_t burst;
  entry_t entry;
  logic aw_ready, w_ready, word_take, leaves, b_take;
  wword_t word;
  roci_pkg::write_beat_t data [4];

  // -------------------------------------------------------------------------------------- grants
  assign write_free = !busy_q && aw_ready && w_ready && outstanding_q != OUT_BITS'(WRITES);

  always_comb begin
    for (int unsigned l = 0; l < 4; l++) begin
      wants[l] = req_valid_i[l] && room[l] && !more_q && !locked_q
                 && (req_i[l].is_token || (data_valid_i[l] && write_free));
    end
    grant = '0;
    atomic = 1'b0;
    lock = 1'b0;
    level = 2'd0;
    if (wants[2]) begin
      grant[2] = 1'b1;
      level = 2'd2;
    end else if (wants[1]) begin
      grant[1] = 1'b1;
      level = 2'd1;
    end else if (wants[3]) begin
      grant[3] = 1'b1;
      level = 2'd3;
    end else if (atomic_valid_i && (locked_q || (room[0] && !more_q))) begin
      atomic = 1'b1;
      level = 2'd2;                      // its data shares the place of the EQEs
    end else if (lock_i && !locked_q && room[0] && !more_q && write_free) begin
      lock = 1'b1;
    end else begin
      grant[0] = wants[0];
    end
  end

  assign req_ready_o = grant;
  assign atomic_ready_o = atomic;
  assign locked_o = locked_q;
  assign cqe_room_o = cqe_room && !locked_q;
  // The second burst of a long write follows before anything else is granted: a token accepted
  // behind the write must not come out between its bursts.
  assign extra = more_q && !busy_q && aw_ready && w_ready && outstanding_q != OUT_BITS'(WRITES)
                 && data_valid_i[level_q];

  always_comb begin
    req = req_i[level];
    if (atomic) begin
      req.is_token = atomic_i.is_token;
      req.fn = atomic_i.fn;
      req.addr = {atomic_i.addr, 3'd0};
      req.length = 13'd8;
    end
    write = (grant != '0 || atomic) && !req.is_token;
    token_only = (grant != '0 || atomic) && req.is_token;
    start = write || extra;

    first_word = req.addr[11:LANE_BITS];
    last_word = WORD_BITS'((13'(req.addr[11:0]) + req.length - 1'b1) >> LANE_BITS);
    beats = atomic ? '0 : 9'(last_word) - 9'(first_word);
    split = beats[8];

    burst = extra ? more_burst_q
                  : '{fn: req.fn, len: split ? 8'hff : beats[7:0], word: req.addr[63:LANE_BITS]};

    refused = extra ? refused_q : fn_disabled_i[req.fn];
    entry = '{level: level, refused: write && refused,
              has_token: req.is_token || (req.has_token && !split), token: req.token};
    if (!req.is_token) entry.token.qp = req.qp;
    if (atomic) begin
      // As entries of level 2, whose writes all bring their tokens too: an error is that of the write.
      entry.has_token = 1'b1;
      entry.token.kind = roci_pkg::TOKEN_ATOMIC;
      entry.token.packet_end = 1'b0;
      entry.token.body[$bits(host_pkg::atomic_tag_t)-1:0] = atomic_i.tag;
    end
    if (extra) entry = more_entry_q;
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      busy_q <= burst.len != '0;
      left_q <= burst.len - 1'b1;
    end else if (word_take) begin
      busy_q <= left_q != '0;
      left_q <= left_q - 1'b1;
    end
    if (write) begin
      level_q <= level;
      more_q <= split;
      refused_q <= refused;
      more_entry_q <= '{level: level, refused: refused, has_token: req.has_token,
                        token: req.token};
      more_entry_q.token.qp <= req.qp;
      more_burst_q <= '{fn: req.fn, len: beats[7:0], word: req.addr[63:LANE_BITS]
                        + (64-LANE_BITS)'(256)};
    end else if (extra) begin
      more_q <= 1'b0;
    end
    outstanding_q <= outstanding_q + OUT_BITS'(start && !refused) - OUT_BITS'(b_take);
    locked_q <= lock || (locked_q && !atomic);
    if (rst_i) begin
      busy_q <= 1'b0;
      more_q <= 1'b0;
      outstanding_q <= '0;
      locked_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------------------- AW, W and B
  common_skid #(.WIDTH($bits(burst_t))) u_aw (
    .clk_i, .rst_i, .in_valid_i(start && !refused), .in_ready_o(aw_ready), .in_i(burst),
    .out_valid_o(axi_awvalid_o), .out_ready_i(axi_awready_i),
    .out_o({axi_awuser_o, axi_awlen_o, axi_awaddr_o[63:LANE_BITS]})
  );
  assign axi_awaddr_o[LANE_BITS-1:0] = '0;
  assign axi_awsize_o = 3'(LANE_BITS);
  assign axi_awburst_o = 2'b01;

  assign word_level = busy_q || more_q ? level_q : level;
  assign word_take = start || (busy_q && w_ready && data_valid_i[level_q]);
  // Under the lock every word is the atomic's.
  always_comb begin
    data = data_i;
    data[2].data = {roci_pkg::DATA_BITS / EQE_BITS{
        locked_q ? {EQE_BITS / 64{atomic_i.data}} : data_i[2].data[EQE_BITS-1:0]}};
    for (int unsigned w = 0; w < roci_pkg::DATA_BYTES / 8; w++) begin
      if (locked_q) data[2].strobe[8*w +: 8] =
          {8{32'(atomic_i.addr[11:3]) % (roci_pkg::DATA_BYTES / 8) == w}};
    end
  end
  assign word = '{last: start ? burst.len == '0 : left_q == '0,
                  strobe: data[word_level].strobe, data: data[word_level].data};

  always_comb begin
    data_ready_o = '0;
    data_ready_o[word_level] = word_take && !locked_q;
  end

  common_skid #(.WIDTH($bits(wword_t))) u_w (
    .clk_i, .rst_i, .in_valid_i(leaves), .in_ready_o(w_ready), .in_i(word),
    .out_valid_o(axi_wvalid_o), .out_ready_i(axi_wready_i),
    .out_o({axi_wlast_o, axi_wstrb_o, axi_wdata_o})
  );

  assign leaves = word_take && !(start ? refused : refused_q);
  assign written_o = written_q;
  always_ff @(posedge clk_i) begin
    written_q.valid <= leaves;
    // No burst crosses 4 KB: the upper bits stay.
    if (start) begin
      written_q.place <= '{fn: burst.fn, word: burst.word};
    end else if (word_take) begin
      written_q.place.word[11:LANE_BITS] <= written_q.place.word[11:LANE_BITS] + 1'b1;
    end
    if (word_take) begin
      written_q.strobe <= word.strobe;
      written_q.data <= word.data;
    end
    if (rst_i) written_q.valid <= 1'b0;
  end

  assign axi_bready_o = 1'b1;
  assign b_take = axi_bvalid_i;
  assign count_bytes_o = write && !refused ? req.length : '0;
  assign count_error_o = b_take && axi_bresp_i[1];

  // -------------------------------------------------------------------------------------- commit
  entry_t out_entry;
  logic [$bits(entry_t)-1:0] out_entry_bits;
  logic out_valid, out_ready, out_write, out_failed;

  host_commit_fifo #(
    .WIDTH($bits(entry_t)), .DEPTH(ENTRIES)
  ) u_commit (
    .clk_i, .rst_i, .room_o(room), .cqe_room_o(cqe_room), .cqe_reserve_i,
    .push_valid_i(start || token_only), .push_level_i(atomic ? 2'd3 : entry.level),
    .push_extra_i(extra),
    .push_write_i(start && !refused),
    .push_completion_i(entry.has_token && entry.token.kind == roci_pkg::TOKEN_COMPLETION),
    .push_i(entry),
    .b_valid_i(b_take), .b_error_i(axi_bresp_i[1]),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_write_o(out_write),
    .out_failed_o(out_failed), .out_o(out_entry_bits)
  );

  assign out_entry = entry_t'(out_entry_bits);

  host_commit_tokens u_tokens (
    .clk_i, .rst_i,
    .entry_valid_i(out_valid), .entry_ready_o(out_ready),
    .entry_write_i(out_write || out_entry.refused),
    .entry_failed_i(out_entry.refused || out_failed), .entry_level_i(out_entry.level),
    .entry_has_token_i(out_entry.has_token), .entry_token_i(out_entry.token), .state_i,
    .token_o, .completion_valid_o, .completion_ready_i, .respond_valid_o, .respond_ready_i,
    .ack_event_valid_o, .ack_event_ready_i, .cqe_done_valid_o, .cqe_done_ready_i,
    .eqe_done_valid_o, .eqe_done_ready_i, .cpu_done_valid_o, .cpu_done_ready_i,
    .atomic_done_valid_o, .atomic_done_ready_i, .end_valid_o, .end_colour_o
  );

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (write) begin
        assert (req.length != '0 && 14'(req.addr[11:0]) + 14'(req.length) <= 14'd4096)
        else $error("host_dma_write: bad length, or the write crosses 4 KB");
        assert (atomic || !req.has_token || req.token.qp == req.qp)
        else $error("host_dma_write: a write and its token belong to different QPs");
      end
      // A word is the last of its request exactly when its last burst ends.
      if (word_take && !locked_q) begin
        assert (data_i[word_level].last
                == (word.last && !(busy_q || extra ? more_q && !extra : split)))
        else $error("host_dma_write: data and length differ");
      end
      if (b_take) assert (outstanding_q != '0);
      assert (!atomic || locked_q || atomic_i.is_token)
      else $error("host_dma_write: a write of the atomics without the lock");
      if (locked_q) begin
        a_lock_room: assert (room[3] && write_free && !more_q)
        else $error("host_dma_write: locked, and something has run out");
      end
      if (grant[2] && !req_i[2].is_token) begin
        assert (req_i[2].has_token
                && data_i[2].data == {roci_pkg::DATA_BITS / EQE_BITS{data_i[2].data[EQE_BITS-1:0]}})
        else $error("host_dma_write: level 2 writes EQEs: the same in all lanes, with a token");
      end
    end
  end

endmodule

`default_nettype wire
