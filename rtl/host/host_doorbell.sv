// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_doorbell: checks doorbells and tells the good ones to all queues.
//
// A doorbell names a kind, an object and an index (hwif `doorbell`). The object's row (columns QP_DB,
// CQ_DB, EQ_DB, SRQ_DB; layout ctx_qp_db) says its full number, function and page and whether it
// takes this kind now. Order of checks: kind known; object exists, of this incarnation, and takes the
// kind; function and page are its own; bits beyond the width of the index are zero. A bad one is
// counted, its function reported, and nothing else happens: a program can ring only for its own
// objects (architecture.md rule 9).
//
// One doorbell per cycle; never waits once the rows are cleared after reset.
// Does not: know whether an index is plausible for its ring (the queue does).
// Neighbours: host_csr → here → queue_sq_scheduler, queue_rq_fetch, queue_cq_writer, queue_eq_writer.
`default_nettype none

module host_doorbell (
  input  wire                          clk_i,
  input  wire                          rst_i,

  input  wire roci_pkg::ctx_req_t      ctx_i,            // columns QP_DB, CQ_DB, EQ_DB, SRQ_DB
  output roci_pkg::ctx_rsp_t           ctx_o,

  input  wire                          ring_valid_i,     // a write to a doorbell page
  output logic                         ring_ready_o,     // low only while clearing after reset
  input  wire cpu_pkg::bar_doorbell_t  ring_i,

  output logic                         doorbell_valid_o, // always accepted
  output roci_pkg::doorbell_t          doorbell_o,

  output logic                         error_valid_o,    // a doorbell of this function was ignored
  output roci_pkg::fn_t                error_fn_o,
  output roci_count_pkg::doorbell_counters_t count_o           // pulses
);

  // One RAM for all kinds: its two top address bits say which.
  localparam int unsigned INDEX_BITS =
      roci_config_pkg::QP_BITS > roci_config_pkg::CQ_BITS ? roci_config_pkg::QP_BITS
                                                          : roci_config_pkg::CQ_BITS;
  typedef enum logic [1:0] {TABLE_QP, TABLE_CQ, TABLE_EQ, TABLE_SRQ} table_e;
  typedef struct packed {
    table_e which;
    logic [INDEX_BITS-1:0] index;
  } address_t;

  typedef struct packed {
    roci_pkg::fn_t fn;
    logic takes_receive;
    logic takes_send;
    logic [3:0] page;
    logic [23:0] number;
  } row_t;

  // An index beyond its table reads the row of another object, whose number differs.
  function automatic logic [INDEX_BITS-1:0] clip(input table_e which, input logic [23:0] number);
    unique case (which)
      TABLE_QP: return INDEX_BITS'(number[roci_config_pkg::QP_BITS-1:0]);
      TABLE_CQ: return INDEX_BITS'(number[roci_config_pkg::CQ_BITS-1:0]);
      TABLE_EQ: return INDEX_BITS'(number[roci_config_pkg::EQ_BITS-1:0]);
      default: return INDEX_BITS'(number[roci_config_pkg::SRQ_BITS-1:0]);
    endcase
  endfunction

  // -------------------------------------------------------------------------- stage 0: read the row
  roci_hwif_pkg::doorbell_t ring0;
  logic kind_known0;
  table_e table0, ctx_table;
  address_t ring_address, ctx_address;
  logic ctx_selected, ctx_read, ctx_read_q;
  logic ready;
  logic take0;

  assign ring0 = roci_hwif_pkg::doorbell_t'(ring_i.data);
  assign ring_ready_o = ready;
  assign take0 = ring_valid_i && ready;

  always_comb begin
    kind_known0 = 1'b1;
    table0 = TABLE_QP;
    unique case (ring0.kind)
      roci_hwif_pkg::DOORBELL_KIND_SQ, roci_hwif_pkg::DOORBELL_KIND_RQ: table0 = TABLE_QP;
      roci_hwif_pkg::DOORBELL_KIND_SRQ: table0 = TABLE_SRQ;
      roci_hwif_pkg::DOORBELL_KIND_CQ_CONSUMED,
      roci_hwif_pkg::DOORBELL_KIND_CQ_ARM: table0 = TABLE_CQ;
      roci_hwif_pkg::DOORBELL_KIND_EQ_CONSUMED_ARM: table0 = TABLE_EQ;
      default: kind_known0 = 1'b0;
    endcase
    ring_address = '{which: table0, index: clip(table0, ring0.object)};
  end

  always_comb begin
    ctx_selected = ctx_i.valid && !ctx_o.done && !ctx_read_q && ready;
    ctx_table = TABLE_QP;
    unique case (ctx_i.column)
      roci_hwif_pkg::CTX_COLUMN_QP_DB: ctx_table = TABLE_QP;
      roci_hwif_pkg::CTX_COLUMN_CQ_DB: ctx_table = TABLE_CQ;
      roci_hwif_pkg::CTX_COLUMN_EQ_DB: ctx_table = TABLE_EQ;
      roci_hwif_pkg::CTX_COLUMN_SRQ_DB: ctx_table = TABLE_SRQ;
      default: ctx_selected = 1'b0;
    endcase
    ctx_address = '{which: ctx_table, index: clip(ctx_table, 24'(ctx_i.index))};
    // a doorbell goes first: an access waits for a cycle without one
    ctx_read = ctx_selected && !ctx_i.write && !take0;
  end

  roci_hwif_pkg::ctx_qp_db_t ctx_row;
  row_t new_row, row1;
  logic [$bits(row_t)-1:0] row_bits;

  assign ctx_row = roci_hwif_pkg::ctx_qp_db_t'(ctx_i.wdata);
  assign new_row = '{fn: roci_pkg::fn_t'(ctx_row.fn), takes_receive: ctx_row.takes_receive,
                     takes_send: ctx_row.takes_send, page: ctx_row.page, number: ctx_row.number};

  common_ram_cleared #(
    .WIDTH($bits(row_t)), .DEPTH(2 ** $bits(address_t)), .LATENCY(1), .BYPASS(1'b1),
    .STYLE("block")
  ) u_rows (
    .clk_i, .rst_i, .ready_o(ready),
    .we_i(ctx_selected && ctx_i.write), .waddr_i(ctx_address), .wdata_i(new_row),
    .re_i(1'b1), .raddr_i(take0 ? ring_address : ctx_address), .rdata_o(row_bits)
  );
  assign row1 = row_t'(row_bits);

  // ------------------------------------------------------------------------------ stage 1: verdict
  logic valid1_q, kind_known1_q;
  table_e table1_q;
  roci_pkg::fn_t fn1_q;
  logic [3:0] page1_q;
  roci_hwif_pkg::doorbell_t ring1_q;

  logic object_ok, owner_ok, index_ok;
  logic [15:0] index_mask;
  roci_pkg::doorbell_t doorbell1;
  roci_count_pkg::doorbell_counters_t count1;

  always_comb begin
    doorbell1.kind = roci_pkg::DOORBELL_SQ;
    index_mask = 16'hffff;
    object_ok = row1.takes_send;
    unique case (ring1_q.kind)
      roci_hwif_pkg::DOORBELL_KIND_SQ: doorbell1.kind = roci_pkg::DOORBELL_SQ;
      roci_hwif_pkg::DOORBELL_KIND_RQ: begin
        doorbell1.kind = roci_pkg::DOORBELL_RQ;
        object_ok = row1.takes_receive;
      end
      roci_hwif_pkg::DOORBELL_KIND_SRQ: doorbell1.kind = roci_pkg::DOORBELL_SRQ;
      default: begin
        index_mask = 16'hff00;                     // CQ and EQ indices have 24 bits
        unique case (ring1_q.kind)
          roci_hwif_pkg::DOORBELL_KIND_CQ_CONSUMED:
            doorbell1.kind = roci_pkg::DOORBELL_CQ_CONSUMED;
          roci_hwif_pkg::DOORBELL_KIND_CQ_ARM: doorbell1.kind = roci_pkg::DOORBELL_CQ_ARM;
          default: doorbell1.kind = roci_pkg::DOORBELL_EQ_CONSUMED_ARM;
        endcase
      end
    endcase
    object_ok = object_ok && row1.number == ring1_q.object;
    owner_ok = row1.fn == fn1_q && row1.page == page1_q;
    index_ok = (ring1_q.index[31:16] & index_mask) == 16'h0;

    count1 = '0;
    if (valid1_q) begin
      if (!kind_known1_q) count1.doorbell_error_kind = 1'b1;
      else if (!object_ok) count1.doorbell_error_object = 1'b1;
      else if (!owner_ok) count1.doorbell_error_page = 1'b1;
      else if (!index_ok) count1.doorbell_error_index = 1'b1;
      else count1.doorbells = 1'b1;
    end
    doorbell1.object_index = 16'(clip(table1_q, ring1_q.object));   // without incarnation
    doorbell1.solicited_only = ring1_q.solicited_only;
    doorbell1.keep_consumed = ring1_q.keep_consumed;
    doorbell1.index = ring1_q.index;
  end

  always_ff @(posedge clk_i) begin
    fn1_q <= ring_i.fn;
    page1_q <= ring_i.page;
    ring1_q <= ring0;
    kind_known1_q <= kind_known0;
    table1_q <= table0;
    doorbell_o <= doorbell1;
    error_fn_o <= fn1_q;
    if (rst_i) begin
      valid1_q <= 1'b0;
      ctx_read_q <= 1'b0;
      ctx_o <= '0;
      doorbell_valid_o <= 1'b0;
      error_valid_o <= 1'b0;
      count_o <= '0;
    end else begin
      valid1_q <= take0;
      doorbell_valid_o <= count1.doorbells;
      error_valid_o <= valid1_q && !count1.doorbells;
      count_o <= count1;

      ctx_read_q <= ctx_read;
      ctx_o.done <= (ctx_selected && ctx_i.write) || ctx_read_q;
      ctx_o.rdata <= '0;
      if (ctx_read_q) begin
        ctx_o.rdata <= {24'h0, 8'(row1.fn), 2'b00, row1.takes_receive, row1.takes_send, row1.page,
                        row1.number};
      end
    end
  end

endmodule

`default_nettype wire
