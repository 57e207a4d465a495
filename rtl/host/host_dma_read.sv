// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_dma_read: all reads of host memory, for CLIENTS independent clients.
//
// A request (1..4096 bytes within 4 KB) is split into bursts within aligned BURST_BYTES, each with
// an AXI ID of its own, so memory may answer in any order. Space in the client's landing ring is
// taken before a burst is issued (rule 2): rready is constant and no client can block another. The
// client gets the words of its requests in request order, each as soon as it is there; `last` marks
// the end of a request. A SLVERR or DECERR marks its beats `err` and changes nothing else, so the
// number of beats is always that of the request.
//
// Bursts of a disabled function (one in reset) do not go to the bus: their beats are made here, with
// `err`, in cycles in which the bus has none. If they wait for too long, no bursts are issued until
// one of theirs is through. What is on the bus already is answered by it.
//
// One burst and one beat per cycle. Request to arvalid 2 cycles, R beat to client beat 3 cycles.
// Clients share bursts round robin; OUTSTANDING bounds the IDs of each.
//
// Does not: read what was not asked for beyond the words of the first and last byte; check
// addresses (context_mr_check did). After reset it takes requests once its tables are cleared.
// Neighbours: host_gather, queue_wqe_fetch, queue_rq_fetch, context_mtt_cache, cpu, responder_atomic;
// AXI4 AR and R.
`default_nettype none

module host_dma_read #(
  parameter int unsigned CLIENTS = 6,   // 0 payload, 1 WQE, 2 RQ, 3 MTT, 4 CPU, 5 atomic
  parameter int unsigned READS = roci_config_pkg::DMA_READS,           // bursts outstanding = IDs
  parameter int unsigned BURST_BYTES = roci_config_pkg::IS_WIDE ? 512 : 256,
  // bytes of the landing ring of each client; powers of two, at least BURST_BYTES
  parameter int unsigned LANDING_BYTES [CLIENTS] = '{
    roci_config_pkg::PAYLOAD_LANDING_BYTES,
    64 * roci_config_pkg::WQE_LANDING_BLOCKS,
    roci_config_pkg::IS_WIDE ? 8192 : 2048,     // 64 B SENDs at 3.2 cycles: 80 WQEs under way
    64 * roci_config_pkg::MTT_MISSES,
    roci_config_pkg::IS_WIDE ? 4096 : 1024,
    roci_config_pkg::IS_WIDE ? 2048 : 512},     // the atomics' words, and room for a burst
  // Words of payload on their way. Memory answers in the order it was asked: in narrow, where a burst
  // takes 32 cycles, a full ring of them would keep RX waiting for its page addresses and WQEs.
  parameter int unsigned PAYLOAD_WORDS = roci_config_pkg::IS_WIDE ? 512 : 384,
  // bursts outstanding of each client
  parameter int unsigned OUTSTANDING [CLIENTS] = '{
    READS / 2, READS / 4, READS / (roci_config_pkg::IS_WIDE ? 4 : 8), roci_config_pkg::MTT_MISSES,
    roci_config_pkg::IS_WIDE ? 8 : 4, 2 ** host_pkg::ATOMIC_SLOT_BITS}
) (
  input  wire                                     clk_i,
  input  wire                                     rst_i,
  input  wire [2**roci_config_pkg::FN_BITS-1:0]   fn_disabled_i,    // these get only errors

  // clients
  input  wire [CLIENTS-1:0]                       req_valid_i,
  output logic [CLIENTS-1:0]                      req_ready_o,
  input  wire roci_pkg::dma_read_req_t [CLIENTS-1:0] req_i,
  output logic [CLIENTS-1:0]                      beat_valid_o,
  input  wire [CLIENTS-1:0]                       beat_ready_i,
  output roci_pkg::read_beat_t [CLIENTS-1:0]      beat_o,

  // AXI4 read channels; sizes of AxSIZE = data width, AxBURST = INCR
  output logic                                    axi_arvalid_o,
  input  wire                                     axi_arready_i,
  output roci_pkg::addr_t                         axi_araddr_o,
  output logic [$clog2(READS)-1:0]                axi_arid_o,
  output logic [7:0]                              axi_arlen_o,
  output logic [2:0]                              axi_arsize_o,
  output logic [1:0]                              axi_arburst_o,
  output roci_pkg::fn_t                           axi_aruser_o,     // function = DMA domain
  input  wire                                     axi_rvalid_i,
  output logic                                    axi_rready_o,     // constant 1
  input  wire [roci_pkg::DATA_BITS-1:0]           axi_rdata_i,
  input  wire [$clog2(READS)-1:0]                 axi_rid_i,
  input  wire [1:0]                               axi_rresp_i,
  input  wire                                     axi_rlast_i,

  // counters
  output roci_pkg::packet_len_t                   count_bytes_o,    // bytes of the burst issued
  output logic                                    count_error_o     // a burst ended with an error
);

  localparam int unsigned BURST_BEATS = BURST_BYTES / roci_pkg::DATA_BYTES;
  localparam int unsigned BEAT_BITS = $clog2(BURST_BEATS);
  localparam int unsigned ID_BITS = $clog2(READS);
  localparam int unsigned CLIENT_BITS = $clog2(CLIENTS);
  localparam int unsigned PTR_BITS = $clog2(largest_ring() / roci_pkg::DATA_BYTES) + 1;

  function automatic int unsigned largest_ring();
    largest_ring = 0;
    for (int unsigned c = 0; c < CLIENTS; c++) begin
      if (LANDING_BYTES[c] > largest_ring) largest_ring = LANDING_BYTES[c];
    end
  endfunction

  typedef logic [ID_BITS-1:0] id_t;

  // What is known of a burst on its way.
  typedef struct packed {
    logic [CLIENT_BITS-1:0] client;
    logic last;                          // last burst of its request
    logic [PTR_BITS-1:0] ptr;            // landing pointer of its first word
  } slot_t;

  // A burst that a client may issue.
  typedef struct packed {
    logic off;                           // of a disabled function: not for the bus
    roci_pkg::fn_t fn;
    roci_pkg::addr_t addr;
    logic [7:0] len;
    roci_pkg::packet_len_t bytes;
    logic last;
    logic [PTR_BITS-1:0] ptr;
  } burst_t;

  logic [CLIENTS-1:0] landing_ready, burst_valid, burst_ready, issued;
  logic [CLIENTS-1:0] returned, returned_q;   // a burst of this client has ended
  logic [CLIENTS-1:0] land;              // the arriving word is of this client
  burst_t [CLIENTS-1:0] burst;
  logic tables_ready_q;                  // cleared after reset

  // ---------------------------------------------------------------------------- IDs and slots
  logic [ID_BITS:0] fresh_q;             // IDs never used so far are handed out first
  logic free_valid, id_valid, id_take;
  id_t free_id, id;

  logic issue_valid, issue;
  burst_t issue_burst;
  logic [$bits(burst_t)-1:0] issue_bits;
  logic [CLIENT_BITS-1:0] issue_client;

  logic ar_valid_q;
  burst_t ar_q;
  id_t ar_id_q;

  logic r_valid_q, r_last_q, r_error_q, r_made_q;
  id_t r_id_q;
  logic [roci_pkg::DATA_BITS-1:0] r_data_q;
  slot_t issue_slot, r_slot;
  logic [$bits(slot_t)-1:0] r_slot_bits;
  logic [BEAT_BITS-1:0] r_beat;          // number of this beat within its burst
  logic beats_ready;
  logic [PTR_BITS-1:0] r_ptr;
  roci_pkg::read_beat_t r_word;

  assign id_valid = fresh_q[ID_BITS] ? free_valid : 1'b1;
  assign id = fresh_q[ID_BITS] ? free_id : fresh_q[ID_BITS-1:0];

  common_arbiter #(.N(CLIENTS), .WIDTH($bits(burst_t))) u_arbiter (
    .clk_i, .rst_i,
    .in_valid_i(burst_valid), .in_ready_o(burst_ready), .in_last_i('1), .in_i(burst),
    .out_valid_o(issue_valid), .out_ready_i(id_take), .out_o(issue_bits),
    .out_index_o(issue_client)
  );

  // Errors of disabled functions wait here for a cycle without a beat of the bus.
  localparam int unsigned MADE = 16;
  localparam int unsigned PATIENCE_BITS = 8;
  typedef struct packed {
    id_t id;
    logic [BEAT_BITS-1:0] len;           // beats - 1
  } made_t;
  made_t made;
  logic [$bits(made_t)-1:0] made_bits;
  logic ar_done, made_room, made_valid, make, make_last;
  logic [BEAT_BITS-1:0] make_beat_q;
  logic [PATIENCE_BITS:0] waited_q;      // cycles that a made burst waits, stops at its top bit

  assign issue_burst = burst_t'(issue_bits);
  assign ar_done = ar_q.off ? made_room : axi_arready_i;
  assign id_take = id_valid && !waited_q[PATIENCE_BITS] && (!ar_valid_q || ar_done);
  assign issue = issue_valid && id_take;
  assign issued = burst_valid & burst_ready;
  assign issue_slot = '{client: issue_client, last: issue_burst.last, ptr: issue_burst.ptr};

  common_fifo #(.WIDTH($bits(made_t)), .DEPTH(MADE), .STYLE("distributed")) u_made (
    .clk_i, .rst_i,
    .in_valid_i(ar_valid_q && ar_q.off), .in_ready_o(made_room),
    .in_i({ar_id_q, BEAT_BITS'(ar_q.len)}),
    .out_valid_o(made_valid), .out_ready_i(make && make_last), .out_o(made_bits), .usage_o()
  );
  assign made = made_t'(made_bits);
  assign make = made_valid && !axi_rvalid_i;
  assign make_last = make_beat_q == made.len;

  common_fifo #(.WIDTH(ID_BITS), .DEPTH(READS), .STYLE("distributed")) u_free (
    .clk_i, .rst_i,
    .in_valid_i(r_valid_q && r_last_q), .in_ready_o(), .in_i(r_id_q),
    .out_valid_o(free_valid), .out_ready_i(issue && fresh_q[ID_BITS]), .out_o(free_id), .usage_o()
  );

  common_ram_sdp #(
    .WIDTH($bits(slot_t)), .DEPTH(READS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_slots (
    .clk_i, .we_i(issue), .waddr_i(id), .wdata_i(issue_slot),
    .re_i(1'b1), .raddr_i(r_id_q), .rdata_o(r_slot_bits)
  );

  // Beats of different IDs may be mixed (AXI A5.3), so each burst counts its own; a finished one
  // leaves zero for the next user of its ID.
  common_ram_cleared #(
    .WIDTH(BEAT_BITS), .DEPTH(READS), .LATENCY(0), .BYPASS(1'b0), .STYLE("distributed")
  ) u_beats (
    .clk_i, .rst_i, .ready_o(beats_ready),
    .we_i(r_valid_q), .waddr_i(r_id_q), .wdata_i(r_last_q ? '0 : r_beat + 1'b1),
    .re_i(1'b1), .raddr_i(r_id_q), .rdata_o(r_beat)
  );

  assign r_slot = slot_t'(r_slot_bits);
  assign r_ptr = r_slot.ptr + PTR_BITS'(r_beat);
  assign r_word = '{err: r_error_q, last: r_last_q && r_slot.last, data: r_data_q};

  always_comb begin
    returned = '0;
    land = '0;
    land[r_slot.client] = r_valid_q;
    returned[r_slot.client] = r_valid_q && r_last_q;
  end

  // -------------------------------------------------------------------------------- per client
  for (genvar c = 0; c < CLIENTS; c++) begin : gen_client
    localparam int unsigned DEPTH = LANDING_BYTES[c] / roci_pkg::DATA_BYTES;
    localparam int unsigned COUNT_BITS = $clog2(OUTSTANDING[c] + 1);

    logic [COUNT_BITS-1:0] outstanding_q;
    logic [COUNT_BITS-1:0] kept, more;     // outstanding after this cycle without, with a burst
    logic allowed_q;                       // another burst may be issued
    logic room, split_valid;
    logic few;                             // not too many words on their way
    roci_pkg::fn_t fn;
    roci_pkg::addr_t addr;
    logic [7:0] len;
    roci_pkg::packet_len_t bytes;
    logic last;
    logic [$clog2(DEPTH):0] ptr;

    host_burst_split #(.BURST_BYTES(BURST_BYTES), .INFO_BITS(roci_config_pkg::FN_BITS)) u_split (
      .clk_i, .rst_i,
      .req_valid_i(req_valid_i[c]), .req_ready_o(req_ready_o[c]),
      .req_addr_i(req_i[c].addr), .req_length_i(req_i[c].length), .req_info_i(req_i[c].fn),
      .burst_valid_o(split_valid), .burst_ready_i(issued[c]),
      .burst_addr_o(addr), .burst_len_o(len), .burst_bytes_o(bytes), .burst_last_o(last),
      .burst_info_o(fn)
    );

    // Once true it stays so until issued: room and IDs only come back.
    assign burst_valid[c] = split_valid && room && allowed_q && few;
    assign burst[c] = '{off: fn_disabled_i[fn], fn: fn, addr: addr, len: len, bytes: bytes, last: last,
                        ptr: PTR_BITS'(ptr)};

    assign kept = outstanding_q - COUNT_BITS'(returned_q[c]);
    assign more = kept + 1'b1;
    always_ff @(posedge clk_i) begin
      // Both answers are ready before it is known who issues (timing).
      outstanding_q <= issued[c] ? more : kept;
      allowed_q <= tables_ready_q && (issued[c] ? more != COUNT_BITS'(OUTSTANDING[c])
                                                : kept != COUNT_BITS'(OUTSTANDING[c]));
      if (rst_i) begin
        outstanding_q <= '0;
        allowed_q <= 1'b0;
      end
    end

    if (c == 0 && PAYLOAD_WORDS < DEPTH) begin : gen_words
      typedef logic [$clog2(PAYLOAD_WORDS + 1)-1:0] words_t;
      words_t words_q;                       // asked for and not yet here
      words_t kept_words, more_words;
      logic few_q;

      assign few = few_q;
      assign kept_words = words_q - words_t'(land[c]);
      assign more_words = kept_words + words_t'(len) + 1'b1;
      always_ff @(posedge clk_i) begin
        words_q <= issued[c] ? more_words : kept_words;
        few_q <= (issued[c] ? more_words : kept_words) <= words_t'(PAYLOAD_WORDS - BURST_BEATS);
        if (rst_i) begin
          words_q <= '0;
          few_q <= 1'b0;
        end else begin
          assert (words_q <= words_t'(PAYLOAD_WORDS));
        end
      end
    end else begin : gen_words
      assign few = 1'b1;
    end

    host_dma_landing #(.DEPTH(DEPTH), .BURST_BEATS(BURST_BEATS)) u_landing (
      .clk_i, .rst_i, .ready_o(landing_ready[c]),
      .room_o(room), .alloc_i(issued[c]), .alloc_len_i(len), .alloc_ptr_o(ptr),
      .write_i(land[c]), .write_ptr_i(r_ptr[$clog2(DEPTH):0]), .write_beat_i(r_word),
      .beat_valid_o(beat_valid_o[c]), .beat_ready_i(beat_ready_i[c]), .beat_o(beat_o[c])
    );

    if (LANDING_BYTES[c] < BURST_BYTES || OUTSTANDING[c] == 0) begin
      $error("%m: landing ring or outstanding bursts too small");
    end
  end

  // ----------------------------------------------------------------------------------- AR and R
  assign axi_arvalid_o = ar_valid_q && !ar_q.off;
  assign axi_araddr_o = ar_q.addr;
  assign axi_arid_o = ar_id_q;
  assign axi_arlen_o = ar_q.len;
  assign axi_arsize_o = 3'($clog2(roci_pkg::DATA_BYTES));
  assign axi_arburst_o = 2'b01;
  assign axi_aruser_o = ar_q.fn;
  assign axi_rready_o = 1'b1;
  assign count_error_o = r_valid_q && r_error_q && r_last_q && !r_made_q;

  always_ff @(posedge clk_i) begin
    count_bytes_o <= issue && !issue_burst.off && !rst_i ? issue_burst.bytes : '0;
    if (!ar_valid_q || ar_done) begin
      ar_valid_q <= issue;
      ar_q <= issue_burst;
      ar_id_q <= id;
    end
    if (issue && !fresh_q[ID_BITS]) fresh_q <= fresh_q + 1'b1;
    tables_ready_q <= beats_ready && landing_ready == '1;
    returned_q <= returned;
    r_valid_q <= axi_rvalid_i || make;
    r_id_q <= make ? made.id : axi_rid_i;
    r_data_q <= axi_rdata_i;
    r_error_q <= make || axi_rresp_i[1];
    r_last_q <= make ? make_last : axi_rlast_i;
    r_made_q <= make;
    if (make) make_beat_q <= make_last ? '0 : make_beat_q + 1'b1;
    if (!made_valid || (make && make_last)) waited_q <= '0;
    else if (!waited_q[PATIENCE_BITS]) waited_q <= waited_q + 1'b1;
    if (rst_i) begin
      make_beat_q <= '0;
      waited_q <= '0;
      tables_ready_q <= 1'b0;
      ar_valid_q <= 1'b0;
      returned_q <= '0;
      r_valid_q <= 1'b0;
      fresh_q <= '0;
    end
  end

  if (READS != 1 << ID_BITS) $error("%m: READS must be a power of two");

endmodule

`default_nettype wire
