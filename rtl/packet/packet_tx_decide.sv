// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_tx_decide: the point from which a packet always leaves (architecture.md rule 5).
//
// Every item's piece goes to the address check; the answers come back in order. When all pieces of a
// packet are good its translated pieces become visible to host_gather and its descriptor to
// packet_header_build in one step: the packet is decided. If one is bad the packet is refused:
// - `refused` tells its source {QP, WQE, PSN, status};
// - {QP, source} is poisoned at that PSN: later items of it with psn >= that PSN are discarded
//   silently, since their source was ahead; earlier ones (retransmissions) still pass, so that
//   everything before the failure completes. ACKNOWLEDGE packets pass always: the NAK that answers a
//   refused response has its very PSN. The poison ends with INIT, the way out of RESET:
//   items of the old life are gone by then; that of requests also with SQE → RTS, for the same reason;
// - ERR and SQE poison all requests of their QP: none is decided any more, so that nothing reads the
//   program's memory behind the flush (packet_tx_drain waits for those that are decided). Responses
//   pass: the ones before a fatal NAK are still sent in ERR (architecture.md 3.2);
// - a request waits here until its source has judged the refusal: a retransmission that was overtaken
//   by its acknowledgement may find its region gone. It vanishes and poisons nothing;
// - so does a response to a READ that was answered to its end before: its requester may have gone on
//   when it saw the first answer, and the region with it (wire.md 2.9).
//
// Counts payload that is ahead, in dense beats, from a packet's first item until host_gather has
// given it: PAYLOAD_LANDING_BYTES at most (`full_o` before that), so that an ACK is soon sent. The
// landing space itself is in words: what ragged pieces take, TX_DESCRIPTORS and PIECES bound.
// Counts what is on its way to the wire by colour (rule 8): from the first item of a packet until it
// is discarded or its last beat has left (`done_i`).
//
// Does not: reorder; bring a refused QP to ERR (its source does).
// Neighbours: packet_tx_arbiter → here ⇄ context_mr_check (client TX); → packet_header_build,
// host_gather, packet_tx_drain; refusals → requester_ack, responder_respond.
`default_nettype none

module packet_tx_decide #(
  parameter int unsigned ITEMS = roci_config_pkg::IS_WIDE ? 128 : 16,  // waiting for their answers
  parameter int unsigned PIECES = roci_config_pkg::IS_WIDE ? 512 : 64  // > 30 = pieces of a packet
) (
  input  wire                      clk_i,
  input  wire                      rst_i,

  input  wire                      item_valid_i,
  output logic                     item_ready_o,
  input  roci_pkg::tx_item_t       item_i,

  output logic                     full_o,      // enough payload is ahead
  input  wire                      gathered_i,  // a beat of payload goes on from host_gather

  // address check, client TX
  output logic                     xlat_valid_o,
  input  wire                      xlat_ready_i,
  output roci_pkg::xlat_req_t      xlat_o,
  input  wire                      answer_valid_i,
  output logic                     answer_ready_o,
  input  roci_pkg::xlat_rsp_t      answer_i,

  // decided packets
  output logic                     desc_valid_o,
  input  wire                      desc_ready_i,
  output roci_pkg::tx_desc_t       desc_o,
  output logic                     piece_valid_o,
  input  wire                      piece_ready_i,
  output roci_pkg::gather_piece_t  piece_o,

  // refused packets, one stream per source
  output logic                     refused_request_valid_o,
  input  wire                      refused_request_ready_i,
  output roci_pkg::tx_refused_t    refused_request_o,
  input  wire                      refused_request_stale_i,  // a cycle later: acknowledged long ago
  output logic                     refused_response_valid_o,
  input  wire                      refused_response_ready_i,
  output roci_pkg::tx_refused_t    refused_response_o,

  input  roci_pkg::state_bcast_t   state_i,     // INIT ends a poison, ERR and SQE are one for requests
  output logic                     decided_o,   // pulse: a packet is decided
  input  wire                      done_valid_i,
  input  roci_pkg::tx_done_t       done_i,      // a packet has left, or was aborted
  output roci_pkg::fence_busy_t    fence_busy_o,
  output logic                     ready_o      // the poison table is cleared after reset
);

  localparam int unsigned POISON_ROWS = 2 ** (roci_config_pkg::QP_BITS + 1);

  typedef struct packed {
    logic valid;
    logic all;                         // ERR, SQE: at any PSN
    roci_pkg::psn_t psn;
  } poison_t;

  typedef logic [roci_config_pkg::QP_BITS:0] poison_index_t;   // {source, qp}

  typedef struct packed {
    logic last;
    logic has_piece;
    roci_pkg::tx_desc_t desc;
  } waiting_t;

  // ------------------------------------------------- entry: to the check and into the waiting line
  logic waiting_in_ready;
  logic item_has_to_check;
  logic xlat_valid, xlat_ready;
  roci_pkg::xlat_req_t xlat;
  logic first_q;                     // the next item begins a packet
  logic enter;
  logic [$bits(waiting_t)-1:0] waiting_bits;
  logic waiting_valid;
  logic waiting_ready;
  waiting_t waiting_in;

  assign item_has_to_check = item_i.has_piece;
  assign item_ready_o = ready_o && waiting_in_ready && (xlat_ready || !item_has_to_check);
  assign xlat_valid = item_valid_i && item_has_to_check && waiting_in_ready && ready_o;
  assign xlat = '{piece: item_i.piece, fn: item_i.desc.fn, pd: item_i.desc.pd,
                  qp: item_i.desc.qp};

  // Timing: which packet comes and whether the check takes it are not decided in one cycle. In `wide` a
  // cycle counts more.
  if (roci_config_pkg::IS_WIDE) begin : gen_direct
    assign xlat_ready = xlat_ready_i;
    assign xlat_valid_o = xlat_valid;
    assign xlat_o = xlat;
  end else begin : gen_sliced
    logic [$bits(roci_pkg::xlat_req_t)-1:0] xlat_bits;
    common_half_slice #(.WIDTH($bits(roci_pkg::xlat_req_t))) u_xlat (
      .clk_i, .rst_i,
      .in_valid_i(xlat_valid), .in_ready_o(xlat_ready), .in_i(xlat),
      .out_valid_o(xlat_valid_o), .out_ready_i(xlat_ready_i), .out_o(xlat_bits)
    );
    assign xlat_o = roci_pkg::xlat_req_t'(xlat_bits);
  end
  assign waiting_in = '{last: item_i.last, has_piece: item_i.has_piece, desc: item_i.desc};

  common_fifo #(.WIDTH($bits(waiting_t)), .DEPTH(ITEMS)) u_waiting (
    .clk_i, .rst_i,
    .in_valid_i(item_valid_i && item_ready_o), .in_ready_o(waiting_in_ready),
    .in_i(waiting_in),
    .out_valid_o(waiting_valid), .out_ready_i(waiting_ready), .out_o(waiting_bits), .usage_o()
  );

  // ------------------------------------------------------------ poison row of the item in front
  // One item in hand with its poison row read; `item_q` is replaced when it is finished.
  logic item_valid_q;
  waiting_t item_q;
  poison_t poison;                   // row of item_q
  logic dead_q;                      // ERR or SQE came since it was read: a request
  logic item_finished;

  logic bad_q;                       // an earlier piece of this packet failed
  roci_pkg::xlat_status_e status_q;  // its status

  typedef enum logic [1:0] {
    ASK_IDLE, ASK_TELL, ASK_ANSWER, ASK_KNOWN    // refusal of a request: told, judged in the next cycle
  } ask_e;
  ask_e ask_q;
  logic stale_q;                     // ASK_KNOWN: it is of what is acknowledged already

  waiting_t waiting;
  poison_index_t waiting_index, item_index;
  logic is_acknowledge;
  logic poisoned;
  logic piece_bad, packet_bad;
  roci_pkg::xlat_status_e packet_status;
  logic packet_end, packet_end_ok, refuse, is_request, is_again;
  logic refused_ready;
  roci_pkg::tx_refused_t refused;
  logic decide, discard;
  logic init_now, recover_now, error_now, mark_now, poison_write;
  poison_index_t init_index_request, init_index_response;

  assign waiting = waiting_t'(waiting_bits);
  assign waiting_index = {waiting.desc.source, waiting.desc.qp};
  assign item_index = {item_q.desc.source, item_q.desc.qp};
  assign waiting_ready = !item_valid_q || item_finished;

  // -------------------------------------------------------------------------- judge the front item
  logic piece_store_ready, desc_store_ready;
  logic piece_write, commit, rollback;
  logic init_pending_q;
  roci_pkg::qp_t init_qp_q;

  always_comb begin
    is_request = item_q.desc.source == roci_pkg::TX_REQUEST;
    // wire.md 1.4: ACKNOWLEDGE of RC is 0x11
    is_acknowledge = item_q.desc.source == roci_pkg::TX_RESPONSE && item_q.desc.opcode == 8'h11;
    // a refusal that is told already goes its way
    poisoned = (poison.valid && !is_acknowledge
                && (poison.all || !(24'(item_q.desc.psn - poison.psn) >> 23 != 24'd0)))
               || (dead_q && ask_q == ASK_IDLE);

    piece_bad = item_q.has_piece && answer_i.status != roci_pkg::XLAT_OK;
    packet_bad = bad_q || piece_bad;
    packet_status = bad_q ? status_q : answer_i.status;

    // does the answer in front end the item, and the item the packet?
    packet_end = item_valid_q && item_q.last
                 && (!item_q.has_piece || (answer_valid_i && answer_i.last));
    is_again = !is_request && !is_acknowledge && item_q.desc.wqe_index[roci_pkg::RESPONSE_AGAIN];
    refuse = packet_end && packet_bad && !poisoned && !is_again;
    refused_ready = is_request ? ask_q == ASK_KNOWN : !refused_response_valid_o;
    packet_end_ok = refuse ? (refused_ready && !mark_now)
                  : (packet_bad || poisoned) ? 1'b1
                  : desc_store_ready;

    // an answer is taken when its translated piece can be stored and, at the end, the verdict goes
    answer_ready_o = item_valid_q && item_q.has_piece && piece_store_ready
                     && (!packet_end || packet_end_ok);
    item_finished = item_valid_q
                    && (item_q.has_piece ? (answer_valid_i && answer_ready_o && answer_i.last)
                                         : (!item_q.last || packet_end_ok));

    piece_write = answer_valid_i && answer_ready_o;
    decide = packet_end && item_finished && !packet_bad && !poisoned;
    discard = packet_end && item_finished && !decide;
    commit = decide;
    rollback = discard;
    poison_write = discard && refuse && !(is_request && stale_q);
  end

  // an INIT clears both rows of its QP: requests in its own cycle, responses in the next one; SQE → RTS
  // clears that of requests, ERR and SQE fill it
  assign init_now = (state_i.valid && state_i.state == roci_pkg::QPS_INIT) || init_pending_q;
  assign recover_now = state_i.valid && state_i.state == roci_pkg::QPS_RTS
                       && state_i.from == roci_pkg::QPS_SQE;
  assign error_now = state_i.valid && (state_i.state == roci_pkg::QPS_ERR
                                       || state_i.state == roci_pkg::QPS_SQE);
  assign mark_now = init_now || recover_now || error_now;
  assign init_index_request = {roci_pkg::TX_REQUEST, state_i.qp};
  assign init_index_response = {roci_pkg::TX_RESPONSE, init_qp_q};

  poison_index_t poison_waddr;
  poison_t poison_wdata;
  logic [$bits(poison_t)-1:0] poison_bits;

  always_comb begin
    poison_waddr = init_pending_q ? init_index_response
                 : mark_now ? init_index_request : item_index;
    poison_wdata = '{valid: !(init_now || recover_now), all: error_now || dead_q, psn: item_q.desc.psn};
  end

  // a row written in the cycle in which it is read comes out new
  common_ram_cleared #(.WIDTH($bits(poison_t)), .DEPTH(POISON_ROWS)) u_poison (
    .clk_i, .rst_i, .ready_o,
    .we_i(mark_now || poison_write), .waddr_i(poison_waddr), .wdata_i(poison_wdata),
    .re_i(waiting_ready), .raddr_i(waiting_index), .rdata_o(poison_bits)
  );
  assign poison = poison_t'(poison_bits);

  always_ff @(posedge clk_i) begin
    if (waiting_ready) begin
      item_q <= waiting;
    end
    if (item_valid_q && answer_valid_i && answer_ready_o && !bad_q) begin
      status_q <= answer_i.status;
    end
    if (ask_q == ASK_IDLE) begin
      refused_request_o <= refused;
    end
    if (ask_q == ASK_ANSWER) begin
      stale_q <= refused_request_stale_i;
    end
    if (poison_write && !is_request) begin
      refused_response_o <= refused;
    end
  end

  assign refused_request_valid_o = ask_q == ASK_TELL;
  assign refused = '{qp: item_q.desc.qp, wqe_index: item_q.desc.wqe_index, psn: item_q.desc.psn,
                     status: packet_status};

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      item_valid_q <= 1'b0;
      bad_q <= 1'b0;
      init_pending_q <= 1'b0;
      init_qp_q <= '0;
      dead_q <= 1'b0;
      ask_q <= ASK_IDLE;
      refused_response_valid_o <= 1'b0;
    end else begin
      init_pending_q <= state_i.valid && state_i.state == roci_pkg::QPS_INIT;
      init_qp_q <= state_i.qp;
      if (waiting_ready) begin
        dead_q <= 1'b0;
      end else if (error_now && is_request && item_q.desc.qp == state_i.qp) begin
        dead_q <= 1'b1;
      end
      assert (!(init_pending_q && state_i.valid))
      else $error("packet_tx_decide: state broadcasts in consecutive cycles");

      unique case (ask_q)
        ASK_IDLE: if (refuse && is_request) ask_q <= ASK_TELL;
        ASK_TELL: if (refused_request_ready_i) ask_q <= ASK_ANSWER;
        ASK_ANSWER: ask_q <= ASK_KNOWN;
        default: if (discard) ask_q <= ASK_IDLE;
      endcase
      if (poison_write && !is_request) begin
        refused_response_valid_o <= 1'b1;
      end else if (refused_response_ready_i) begin
        refused_response_valid_o <= 1'b0;
      end

      if (waiting_ready) begin
        item_valid_q <= waiting_valid;
      end
      if (packet_end && item_finished) begin
        bad_q <= 1'b0;
      end else if (answer_valid_i && answer_ready_o && piece_bad) begin
        bad_q <= 1'b1;
      end
    end
  end

  // --------------------------------------------------------------------------- decided packets
  roci_pkg::gather_piece_t piece_in;
  logic [$bits(roci_pkg::gather_piece_t)-1:0] piece_bits;
  logic [$bits(roci_pkg::tx_desc_t)-1:0] desc_bits;

  assign piece_in = '{last: item_q.last && answer_i.last, fn: item_q.desc.fn,
                      length: answer_i.length, addr: answer_i.addr};

  common_commit_fifo #(.WIDTH($bits(roci_pkg::gather_piece_t)), .DEPTH(PIECES)) u_pieces (
    .clk_i, .rst_i,
    .write_valid_i(piece_write), .write_ready_o(piece_store_ready), .write_i(piece_in),
    .commit_i(commit), .rollback_i(rollback),
    .read_valid_o(piece_valid_o), .read_ready_i(piece_ready_i), .read_o(piece_bits),
    .usage_o()
  );
  assign piece_o = roci_pkg::gather_piece_t'(piece_bits);

  common_fifo #(.WIDTH($bits(roci_pkg::tx_desc_t)), .DEPTH(roci_config_pkg::TX_DESCRIPTORS)) u_descs (
    .clk_i, .rst_i,
    .in_valid_i(decide), .in_ready_o(desc_store_ready), .in_i(item_q.desc),
    .out_valid_o(desc_valid_o), .out_ready_i(desc_ready_i), .out_o(desc_bits), .usage_o()
  );
  assign desc_o = roci_pkg::tx_desc_t'(desc_bits);
  assign decided_o = decide;

  // ------------------------------------------------------------------------- payload ahead, in beats
  localparam int unsigned BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned LANDING_BEATS = roci_config_pkg::PAYLOAD_LANDING_BYTES / BYTES;
  localparam int unsigned PREFIX_BYTES = 48;                   // of datagrams (packet_header_build)
  localparam int unsigned PACKET_BEATS = (PREFIX_BYTES + 4096 + BYTES - 1) / BYTES;   // of the largest
  typedef logic [$clog2(LANDING_BEATS+1)-1:0] beats_t;
  beats_t ahead_q, ahead_d;

  // every packet comes out in beats of its own; a datagram with its address vector before it
  function automatic beats_t beats(input roci_pkg::tx_desc_t desc);
    return beats_t'((32'(desc.payload_length) + BYTES - 1
                     + (desc.opcode[7:5] == roci_hwif_pkg::TRANSPORT_UD ? PREFIX_BYTES : 0)) / BYTES);
  endfunction

  always_comb begin
    ahead_d = ahead_q - beats_t'(gathered_i);
    if (enter) ahead_d = ahead_d + beats(item_i.desc);
    if (discard) ahead_d = ahead_d - beats(item_q.desc);
  end

  always_ff @(posedge clk_i) begin
    ahead_q <= ahead_d;
    full_o <= 32'(ahead_d) > LANDING_BEATS - PACKET_BEATS;
    if (rst_i) begin
      ahead_q <= '0;
      full_o <= 1'b0;
    end
  end

  // -------------------------------------------------------------------------------------- fence
  localparam int unsigned COUNT_BITS = $clog2(roci_config_pkg::TX_DESCRIPTORS + ITEMS + 64) + 1;
  typedef logic [COUNT_BITS-1:0] count_t;
  count_t held_q[2];
  assign enter = item_valid_i && item_ready_o && first_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      first_q <= 1'b1;
      held_q[0] <= '0;
      held_q[1] <= '0;
    end else begin
      if (item_valid_i && item_ready_o) begin
        first_q <= item_i.last;
      end
      for (int unsigned c = 0; c < 2; c++) begin
        held_q[c] <= held_q[c]
            + count_t'(enter && item_i.desc.colour == 1'(c))
            - count_t'(discard && item_q.desc.colour == 1'(c))
            - count_t'(done_valid_i && done_i.colour == 1'(c));
      end
    end
  end
  assign fence_busy_o = {held_q[1] != '0, held_q[0] != '0};

  // ------------------------------------------------------------------------------------ assertions
  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (32'(ahead_q) <= LANDING_BEATS);                        // never more, never below zero
      if (fence_busy_o == '0) assert (ahead_q == '0);                // nothing is forgotten
    end
  end

endmodule

`default_nettype wire
