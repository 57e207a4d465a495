// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mr_check: the one place where a key is judged (programming.md 4).
//
// Looks the key's MPT entry up (column MPT) and checks, the first failure counts: index in range,
// entry valid and key byte right; function; local use only of regions, not of windows; PD (a type 2B
// window belongs to one QP instead); rights; bounds without overflow (IBTA 10.6.3, wire.md 2.14). Good
// requests leave with what context_mtt_cache needs to find the address; ACCESS_NONE passes unchecked.
// A revoked entry (state written by firmware) grants nothing from the next look-up on; what was
// granted before is waited for by a fence (rule 8). An entry that is written with incarnation 0 begins
// numbers anew that cached pages may still bear: the cache must forget them (`wrap_o`).
//
// Two clients, TX and RX: in order per client, one look-up per cycle in all. A request is taken only
// if its client's result FIFO has room for it, so neither client can hold up the other (rule 2).
// Does not: translate; bind or invalidate by work request (a later block writes through here).
`default_nettype none

module context_mr_check (
  input  wire                         clk_i,
  input  wire                         rst_i,
  input  roci_pkg::ctx_req_t          ctx_i,           // column MPT, words 0 to 4 of mpt_entry
  output roci_pkg::ctx_rsp_t          ctx_o,

  input  wire  [1:0]                  req_valid_i,     // client 0 TX, 1 RX
  output logic [1:0]                  req_ready_o,
  input  wire roci_pkg::xlat_req_t [1:0] req_i,

  output logic [1:0]                  checked_valid_o,
  input  wire  [1:0]                  checked_ready_i,
  output roci_pkg::mr_checked_t [1:0] checked_o,

  output logic                        wrap_o,          // pulse: incarnations of an entry begin anew
  output logic                        key_error_o,     // pulse: a check failed (counter)
  output logic                        ready_o          // table is cleared after reset
);

  localparam int unsigned ENTRIES = 2 ** roci_config_pkg::MR_BITS;
  localparam int unsigned WORDS = 5;
  localparam int unsigned LATENCY = 2;
  localparam int unsigned RESULTS = 16;                // per client, > stages of the pipeline
  localparam int unsigned CREDIT_BITS = $clog2(RESULTS + 1);

  // ------------------------------------------------------------------- choose a client, or the bus
  typedef struct packed {
    logic valid;
    logic is_ctx;
    logic client;
    logic in_range;
    roci_pkg::xlat_req_t req;
  } slot_t;
  slot_t slot0, slot_q[LATENCY];

  logic [CREDIT_BITS-1:0] credit_q[2];                 // free places in the client's result FIFO
  logic turn_q;
  logic [1:0] may;
  logic chosen;
  logic ctx_selected, ctx_read, ctx_busy_q;
  logic [WORDS-1:0] we;

  assign ctx_selected = ctx_i.valid && !ctx_o.done && !ctx_busy_q && ready_o
                        && ctx_i.column == roci_hwif_pkg::CTX_COLUMN_MPT;
  assign ctx_read = ctx_selected && !ctx_i.write;

  always_comb begin
    for (int unsigned c = 0; c < 2; c++) begin
      may[c] = req_valid_i[c] && credit_q[c] != '0 && ready_o && !ctx_selected;
    end
    chosen = may[turn_q] ? turn_q : !turn_q;
    req_ready_o = '0;
    req_ready_o[chosen] = may[chosen];

    slot0 = '0;
    slot0.valid = ctx_read || may[chosen];
    slot0.is_ctx = ctx_read;
    slot0.client = chosen;
    slot0.req = req_i[chosen];
    slot0.in_range = slot0.req.piece.key[31:8] < 24'(ENTRIES);

    for (int unsigned w = 0; w < WORDS; w++) begin
      we[w] = ctx_selected && ctx_i.write && ctx_i.word == 4'(w);
    end
  end

  // the word with the incarnation
  roci_hwif_pkg::mpt_entry_t written;
  assign written = {{(512 - WORDS * 64){1'b0}}, {WORDS{ctx_i.wdata}}};
  assign wrap_o = we[4] && written.incarnation == '0;

  // ---------------------------------------------------------------------------------------- table
  roci_pkg::mr_t read_index;
  logic [WORDS*64-1:0] entry_bits;
  roci_hwif_pkg::mpt_entry_t entry;

  assign read_index = ctx_read ? roci_pkg::mr_t'(ctx_i.index)
                               : roci_pkg::mr_t'(slot0.req.piece.key[31:8]);

  common_ram_cleared #(
    .WIDTH(WORDS * 64), .DEPTH(ENTRIES), .GRANULE(64), .LATENCY(LATENCY), .BYPASS(1'b0),
    .STYLE(roci_config_pkg::IS_WIDE ? "ultra" : "block")
  ) u_table (
    .clk_i, .rst_i, .ready_o,
    .we_i(we), .waddr_i(roci_pkg::mr_t'(ctx_i.index)), .wdata_i({WORDS{ctx_i.wdata}}),
    .re_i(1'b1), .raddr_i(read_index), .rdata_o(entry_bits)
  );
  assign entry = roci_hwif_pkg::mpt_entry_t'({{(512 - WORDS * 64){1'b0}}, entry_bits});

  // -------------------------------------------------------------------------- check, stage A and B
  slot_t slot;
  assign slot = slot_q[LATENCY-1];

  typedef struct packed {
    logic valid;
    logic client;
    logic unchecked;                                   // ACCESS_NONE
    roci_pkg::xlat_status_e early;                     // key, PD, rights
    logic below;                                       // va < iova
    logic [63:0] offset;                               // va - iova
    logic unbounded;
    logic [63:0] length;                               // of the region
    roci_pkg::xlat_req_t req;
    logic contiguous;
    logic [31:0] first_byte_offset;
    logic [4:0] page_shift;
    logic [7:0] incarnation;
    roci_pkg::addr_t table_address;
  } looked_up_t;
  looked_up_t looked_up_d, looked_up_q;

  logic is_window, is_local, right;

  always_comb begin
    is_window = entry.kind == roci_hwif_pkg::MR_KIND_MW1
                || entry.kind == roci_hwif_pkg::MR_KIND_MW2B;
    is_local = slot.req.piece.access == roci_pkg::ACCESS_LOCAL_READ
               || slot.req.piece.access == roci_pkg::ACCESS_LOCAL_WRITE;
    unique case (slot.req.piece.access)
      roci_pkg::ACCESS_LOCAL_READ: right = 1'b1;
      roci_pkg::ACCESS_LOCAL_WRITE: right = entry.rights.local_write;
      roci_pkg::ACCESS_REMOTE_READ: right = entry.rights.remote_read;
      roci_pkg::ACCESS_REMOTE_WRITE: right = entry.rights.remote_write;
      roci_pkg::ACCESS_REMOTE_ATOMIC: right = entry.rights.remote_atomic;
      default: right = 1'b0;
    endcase

    looked_up_d = '0;
    looked_up_d.valid = slot.valid && !slot.is_ctx;
    looked_up_d.client = slot.client;
    looked_up_d.unchecked = slot.req.piece.access == roci_pkg::ACCESS_NONE;
    looked_up_d.req = slot.req;
    {looked_up_d.below, looked_up_d.offset} = {1'b0, slot.req.piece.va} - {1'b0, entry.iova};
    looked_up_d.unbounded = entry.unbounded;
    looked_up_d.length = entry.length;
    looked_up_d.contiguous = entry.contiguous;
    looked_up_d.first_byte_offset = entry.first_byte_offset;
    looked_up_d.page_shift = entry.page_shift;
    looked_up_d.incarnation = entry.incarnation;
    looked_up_d.table_address = entry.table_address;

    if (!slot.in_range || entry.state != roci_hwif_pkg::MR_STATE_VALID
        || entry.key_byte != slot.req.piece.key[7:0]
        || roci_pkg::fn_t'(entry.function_number) != slot.req.fn || (is_local && is_window)) begin
      looked_up_d.early = roci_pkg::XLAT_BAD_KEY;
    end else if (entry.kind == roci_hwif_pkg::MR_KIND_MW2B
                 ? roci_pkg::qp_t'(entry.bound_qpn) != slot.req.qp
                 : roci_pkg::pd_t'(entry.pd) != slot.req.pd) begin
      looked_up_d.early = roci_pkg::XLAT_BAD_PD;
    end else if (!right) begin
      looked_up_d.early = roci_pkg::XLAT_BAD_RIGHTS;
    end else begin
      looked_up_d.early = roci_pkg::XLAT_OK;
    end
  end

  logic out_of_bounds;
  roci_pkg::mr_checked_t checked;

  always_comb begin
    // length is below 2^32 and the offset below 2^64: one bit more holds their sum
    out_of_bounds = !looked_up_q.unbounded
        && (looked_up_q.below
            || {1'b0, looked_up_q.offset} + 65'(looked_up_q.req.piece.length)
               > {1'b0, looked_up_q.length});

    checked.status = roci_pkg::XLAT_OK;
    if (!looked_up_q.unchecked) begin
      if (looked_up_q.early != roci_pkg::XLAT_OK) begin
        checked.status = looked_up_q.early;
      end else if (out_of_bounds) begin
        checked.status = roci_pkg::XLAT_BAD_BOUNDS;
      end
    end
    checked.check_only = looked_up_q.req.piece.check_only;
    checked.paged = !looked_up_q.unchecked && !looked_up_q.contiguous;
    checked.fn = looked_up_q.req.fn;
    checked.length = roci_pkg::packet_len_t'(looked_up_q.req.piece.length);
    if (looked_up_q.unchecked) begin
      checked.addr = looked_up_q.req.piece.va;
    end else if (looked_up_q.contiguous) begin
      checked.addr = looked_up_q.table_address + looked_up_q.offset;
    end else begin
      checked.addr = looked_up_q.offset + 64'(looked_up_q.first_byte_offset);
    end
    checked.page_shift = looked_up_q.page_shift;
    checked.mr = roci_pkg::mr_t'(looked_up_q.req.piece.key[31:8]);
    checked.incarnation = looked_up_q.incarnation;
    checked.table_address = looked_up_q.table_address;
  end

  // ------------------------------------------------------------------------- results, per client
  logic result_valid_q, result_client_q;
  roci_pkg::mr_checked_t result_q;

  for (genvar c = 0; c < 2; c++) begin : gen_client
    logic [$bits(roci_pkg::mr_checked_t)-1:0] bits;
    common_fifo #(
      .WIDTH($bits(roci_pkg::mr_checked_t)), .DEPTH(RESULTS), .STYLE("distributed")
    ) u_results (
      .clk_i, .rst_i,
      .in_valid_i(result_valid_q && result_client_q == 1'(c)), .in_ready_o(), .in_i(result_q),
      .out_valid_o(checked_valid_o[c]), .out_ready_i(checked_ready_i[c]), .out_o(bits), .usage_o()
    );
    assign checked_o[c] = roci_pkg::mr_checked_t'(bits);

    always_ff @(posedge clk_i) begin
      if (rst_i) begin
        credit_q[c] <= CREDIT_BITS'(RESULTS);
      end else begin
        credit_q[c] <= credit_q[c] - CREDIT_BITS'(req_valid_i[c] && req_ready_o[c])
                       + CREDIT_BITS'(checked_valid_o[c] && checked_ready_i[c]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    slot_q[0] <= slot0;
    for (int unsigned i = 1; i < LATENCY; i++) begin
      slot_q[i] <= slot_q[i-1];
    end
    looked_up_q <= looked_up_d;
    result_q <= checked;
    result_client_q <= looked_up_q.client;
    if (rst_i) begin
      for (int unsigned i = 0; i < LATENCY; i++) begin
        slot_q[i].valid <= 1'b0;
      end
      looked_up_q.valid <= 1'b0;
      result_valid_q <= 1'b0;
      key_error_o <= 1'b0;
      turn_q <= 1'b0;
      ctx_busy_q <= 1'b0;
      ctx_o <= '0;
    end else begin
      result_valid_q <= looked_up_q.valid;
      key_error_o <= looked_up_q.valid && checked.status != roci_pkg::XLAT_OK;
      if (may[chosen]) begin
        turn_q <= !chosen;
      end

      ctx_busy_q <= (ctx_busy_q || ctx_read) && !ctx_o.done;
      ctx_o.done <= (ctx_selected && ctx_i.write) || (slot.valid && slot.is_ctx);
      ctx_o.rdata <= '0;
      if (slot.valid && slot.is_ctx) begin
        for (int unsigned w = 0; w < WORDS; w++) begin
          if (ctx_i.word == 4'(w)) begin
            ctx_o.rdata <= entry_bits[64*w+:64];
          end
        end
      end
    end
  end

endmodule

`default_nettype wire
