// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_read: the replay table: READs and atomics that were accepted, for their responses and for
// duplicates (wire.md 2.9).
//
// Listens to the actions on their way to responder_receive. A READ or atomic is written to the entry
// region base + (ordinal mod region). A duplicate goes to a search outside the receive path
// (RX never waits, rule 2): the newest entries first, one per cycle. A READ is answered again if
// it is a subset of an entry: same key, start on a PMTU boundary of it, same end; an atomic if PSN, key
// and opcode are the same. Found: `lower_o` moves the response cursor back. Not found: silence; the
// requester asks again.
// When an atomic is done, its result takes the place of its address, which nobody needs any more.
//
// One search per queue pair at a time, the queue pairs in turn (rule 6): a peer that floods one of
// them delays the others by one search. A duplicate that comes while an earlier one of its queue
// pair waits or is looked for is dropped, not put in its place: a requester goes back to the oldest
// response that it lacks and asks again for that READ first, then for those behind it (wire.md 2.4).
// The cursor that the first one moves back gives the responses of all of them; the newest instead
// would leave the oldest out, and cost the requester another retry.
//
// Entries hold no claim on memory: keys are checked again with each response packet.
// Does not: answer, count outstanding READs (responder_judge does).
// Neighbours: responder_check → here → responder_respond, which reads entries with priority.
`default_nettype none

module responder_read (
  input  wire                            clk_i,
  input  wire                            rst_i,           // synchronous, active high

  input  wire                            action_valid_i,  // an action passes (valid and ready)
  input  responder_pkg::action_t         action_i,

  // entries for responder_respond: data REPLAY_LATENCY cycles later; it always has the port. An entry
  // that is written in the very cycle has the ordinal of the new one, and else nothing defined.
  input  wire                            entry_read_i,
  input  roci_pkg::replay_slot_t         entry_slot_i,
  output responder_pkg::replay_entry_t   entry_o,

  // results of atomics; not ready in a cycle in which an action needs the table
  input  wire                            result_valid_i,
  output logic                           result_ready_o,
  input  wire roci_pkg::atomic_done_t    result_i,

  output logic                           lower_valid_o,
  input  wire                            lower_ready_i,
  output responder_pkg::lower_t          lower_o,

  output logic                           count_duplicate_o,  // duplicate READs answered again
  output logic                           count_ignored_o,    // not found
  output roci_pkg::fence_busy_t          fence_busy_o,       // searches of that colour
  output logic                           ready_o             // the queue is cleared after reset
);

  localparam int unsigned LATENCY = responder_pkg::REPLAY_LATENCY;
  localparam int unsigned REPLAY_BITS = roci_config_pkg::REPLAY_BITS;
  localparam int unsigned QP_BITS = roci_config_pkg::QP_BITS;
  localparam int unsigned ENTRY_BITS = $bits(responder_pkg::replay_entry_t);
  // Few entries leave half of their block RAMs empty: the searches lie behind them.
  localparam bit SHARED = 2 ** REPLAY_BITS + 2 ** QP_BITS <= 512;

  // What a search needs of its request. It lies where an entry has the same.
  typedef struct packed {
    roci_pkg::read_ordinal_t reads;     // READs accepted so far
    roci_pkg::psn_t psn;
    logic [47-$bits(roci_pkg::replay_slot_t)-7:0] unused;
    roci_pkg::colour_t colour;
    logic [2:0] mtu;
    logic [2:0] replay_log2;
    roci_pkg::replay_slot_t replay_base;
    roci_pkg::mkey_t rkey;
    logic [31:0] length;
    logic [7:0] unused_end;
    roci_pkg::addr_t va;
  } search_t;

  // Region slot of an ordinal.
  function automatic roci_pkg::replay_slot_t slot_of(input roci_pkg::replay_slot_t base,
                                                     input logic [2:0] log2,
                                                     input roci_pkg::read_ordinal_t ordinal);
    roci_pkg::read_ordinal_t offset_in_region;
    offset_in_region = ordinal & ~(8'hff << log2);
    return base | roci_pkg::replay_slot_t'(offset_in_region);
  endfunction

  // -------------------------------------------------------------------------------- new entries
  logic write;
  responder_pkg::replay_entry_t entry_new;
  roci_pkg::replay_slot_t write_slot;

  always_comb begin
    write = action_valid_i && action_i.kind == responder_pkg::ACTION_READ;
    write_slot = slot_of(action_i.replay_base, action_i.replay_log2, action_i.respond.entry[7:0]);
    entry_new.ordinal = action_i.respond.entry[7:0];
    entry_new.first_psn = action_i.psn;
    entry_new.packets = action_i.packets;
    entry_new.unused = '0;
    entry_new.done = 1'b0;
    entry_new.msn = action_i.respond.msn;
    entry_new.va = action_i.va;
    entry_new.rkey = action_i.rkey;
    entry_new.length = action_i.length;
  end

  // ------------------------------------------------------------------------------------- search
  search_t search_in, search;
  logic search_push, search_pop;
  logic search_new;                        // no other of its queue pair is there
  logic queued;                            // the oldest search is of queue pair search_qp
  roci_pkg::qp_t search_qp;

  always_comb begin
    search_push = action_valid_i && action_i.kind == responder_pkg::ACTION_DUP_READ;
    search_in = '{reads: action_i.respond.entry[7:0], psn: action_i.psn, unused: '0,
                  colour: action_i.colour, mtu: action_i.mtu, replay_log2: action_i.replay_log2,
                  replay_base: action_i.replay_base, rkey: action_i.rkey,
                  length: action_i.length, unused_end: '0, va: action_i.va};
  end

  common_object_queue #(.N(2 ** QP_BITS)) u_queue (
    .clk_i, .rst_i,
    .push_valid_i(search_push), .push_ready_o(ready_o), .push_i(action_i.qp),
    .push_new_o(search_new),
    .pop_valid_o(queued), .pop_ready_i(search_pop), .pop_o(search_qp), .usage_o()
  );

  logic fetch;                             // the search is read in this cycle
  logic fetched_q;                         // or was
  logic [LATENCY-1:0] fetching_q;
  logic search_valid;                      // `search` is the oldest one
  logic started_q;                         // `step_q` is of this search
  logic [7:0] step_q;                      // entries asked for so far
  logic [7:0] step, region;
  logic ask;                               // an entry is asked for in this cycle
  roci_pkg::read_ordinal_t ask_ordinal;
  logic [LATENCY-1:0] asked_q;
  roci_pkg::read_ordinal_t [LATENCY-1:0] asked_ordinal_q;

  logic arrived, found, finished;
  logic [23:0] packet;                     // first response packet wanted, within the entry
  logic [31:0] offset;
  logic lower_valid_q;
  responder_pkg::lower_t lower_q;

  assign search_valid = fetched_q && fetching_q == '0;

  always_comb begin
    fetch = queued && !fetched_q && !entry_read_i;
    step = started_q ? step_q : 8'd0;
    region = 8'd1 << search.replay_log2;
    ask = search_valid && !lower_valid_q && step != region && !entry_read_i;
    ask_ordinal = search.reads - 8'd1 - step;

    arrived = asked_q[LATENCY-1];
    packet = search.psn - entry_o.first_psn;
    unique case (search.mtu)
      3'd1: offset = {packet, 8'd0};
      3'd2: offset = {packet[22:0], 9'd0};
      3'd3: offset = {packet[21:0], 10'd0};
      3'd4: offset = {packet[20:0], 11'd0};
      default: offset = {packet[19:0], 12'd0};
    endcase
    found = arrived && entry_o.ordinal == asked_ordinal_q[LATENCY-1]
            && packet < entry_o.packets
            && search.rkey == entry_o.rkey
            && (responder_pkg::is_atomic(entry_o.length)
                || search.va == entry_o.va + 64'(offset))
            && search.length == entry_o.length - offset;
    // given up when all entries were asked for and the last answer is here
    finished = search_valid && !lower_valid_q
               && (found || (step == region && asked_q == '0));
    search_pop = lower_valid_q ? lower_ready_i : (finished && !found);
  end

  // ------------------------------------------------------------------------------------- tables
  localparam int unsigned GRANULE = responder_pkg::REPLAY_GRANULE;
  localparam int unsigned GRANULES = ENTRY_BITS / GRANULE;
  roci_pkg::replay_slot_t read_slot;
  responder_pkg::replay_entry_t stored, written;
  logic result_write;
  logic [GRANULES-1:0] write_granules;

  assign read_slot = entry_read_i ? entry_slot_i
                                  : slot_of(search.replay_base, search.replay_log2, ask_ordinal);

  assign result_ready_o = !write && !search_push;
  assign result_write = result_valid_i && result_ready_o;
  assign write_granules = {{(GRANULES-1){write}}, write || result_write};
  always_comb begin
    written = entry_new;
    if (!write) begin
      written.done = !result_i.failed;
      written.va = result_i.value;
    end
  end
  wire unused_result = &{1'b0, result_i.qp, result_i.ordinal, result_i.psn};

  if (SHARED) begin : gen_shared

    localparam int unsigned INDEX_BITS = $clog2(2 ** REPLAY_BITS + 2 ** QP_BITS);
    search_t search_q;

    common_ram_sdp #(
      .WIDTH(ENTRY_BITS), .DEPTH(2 ** REPLAY_BITS + 2 ** QP_BITS), .GRANULE(GRANULE),
      .LATENCY(LATENCY), .BYPASS(1'b0)
    ) u_table (
      .clk_i,
      .we_i(write_granules | {GRANULES{search_new}}),
      .waddr_i(write ? INDEX_BITS'(write_slot)
               : result_write ? INDEX_BITS'(result_i.slot)
                              : INDEX_BITS'(2 ** REPLAY_BITS) | INDEX_BITS'(action_i.qp)),
      .wdata_i(search_push ? search_in : written),
      .re_i(entry_read_i || ask || fetch),
      .raddr_i(fetch ? INDEX_BITS'(2 ** REPLAY_BITS) | INDEX_BITS'(search_qp)
                     : INDEX_BITS'(read_slot)),
      .rdata_o(stored)
    );

    always_ff @(posedge clk_i) begin
      if (fetching_q[LATENCY-1]) search_q <= stored;
    end
    assign search = search_q;

  end else begin : gen_apart

    common_ram_sdp #(
      .WIDTH(ENTRY_BITS), .DEPTH(2 ** REPLAY_BITS), .GRANULE(GRANULE), .LATENCY(LATENCY),
      .BYPASS(1'b0)
    ) u_entries (
      .clk_i, .we_i(write_granules), .waddr_i(write ? write_slot : result_i.slot), .wdata_i(written),
      .re_i(entry_read_i || ask), .raddr_i(read_slot), .rdata_o(stored)
    );

    common_ram_sdp #(
      .WIDTH($bits(search_t)), .DEPTH(2 ** QP_BITS), .LATENCY(LATENCY), .BYPASS(1'b0)
    ) u_searches (
      .clk_i, .we_i(search_new), .waddr_i(action_i.qp), .wdata_i(search_in),
      .re_i(fetch), .raddr_i(search_qp), .rdata_o(search)
    );

  end

  // An entry that is written while it is read: the ordinal tells that the old one is gone. A result that
  // comes in that cycle has not come yet: responder_respond hears of it behind the read.
  logic [LATENCY-1:0] replaced_q, undone_q;
  roci_pkg::read_ordinal_t [LATENCY-1:0] replaced_by_q;

  always_ff @(posedge clk_i) begin
    replaced_q <= {replaced_q[LATENCY-2:0], write && write_slot == read_slot};
    replaced_by_q <= {replaced_by_q[LATENCY-2:0], entry_new.ordinal};
    undone_q <= {undone_q[LATENCY-2:0], result_write && result_i.slot == read_slot};
  end

  always_comb begin
    entry_o = stored;
    if (replaced_q[LATENCY-1]) entry_o.ordinal = replaced_by_q[LATENCY-1];
    if (undone_q[LATENCY-1]) entry_o.done = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    asked_q <= {asked_q[LATENCY-2:0], ask && !finished};
    asked_ordinal_q <= {asked_ordinal_q[LATENCY-2:0], ask_ordinal};
    fetching_q <= {fetching_q[LATENCY-2:0], fetch};
    if (fetch) fetched_q <= 1'b1;
    if (search_pop) begin
      fetched_q <= 1'b0;
      started_q <= 1'b0;
    end else if (ask) begin
      started_q <= 1'b1;
      step_q <= step + 8'd1;
    end
    if (finished && found) begin
      lower_valid_q <= 1'b1;
      lower_q <= '{qp: search_qp,
                   ordinal: asked_ordinal_q[LATENCY-1], packet: packet};
    end else if (lower_ready_i) begin
      lower_valid_q <= 1'b0;
    end
    if (finished) asked_q <= '0;           // answers on their way are of this search
    if (rst_i) begin
      asked_q <= '0;
      fetching_q <= '0;
      fetched_q <= 1'b0;
      started_q <= 1'b0;
      lower_valid_q <= 1'b0;
    end
  end

  assign lower_valid_o = lower_valid_q;
  assign lower_o = lower_q;
  assign count_duplicate_o = finished && found;
  assign count_ignored_o = finished && !found;

  // -------------------------------------------------------------------------------------- fence
  localparam int unsigned COUNT_BITS = QP_BITS + 1;
  logic [1:0][COUNT_BITS-1:0] held_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      held_q[c] <= held_q[c]
          + COUNT_BITS'(search_new && action_i.colour == 1'(c))
          - COUNT_BITS'(search_pop && search.colour == 1'(c));
    end
    if (rst_i) held_q <= '0;
  end
  assign fence_busy_o = {held_q[1] != '0, held_q[0] != '0};

  always_ff @(posedge clk_i) begin
    if (!rst_i && write) begin
      // the region is aligned to its size (hwif ctx_qp_rq)
      assert (slot_of('0, action_i.replay_log2, action_i.replay_base[7:0]) == '0);
    end
    if (!rst_i && action_valid_i) assert (ready_o);
  end

endmodule

`default_nettype wire
