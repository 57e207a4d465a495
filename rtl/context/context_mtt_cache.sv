// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mtt_cache: turns checked requests into DMA addresses, one answer per 4 KB page.
//
// Page tables lie in host memory (programming.md 4); lines of 8 page addresses are kept in a direct-
// mapped cache with the tag {region, incarnation, line number}, so that a line of an earlier life of
// a region never matches; before the incarnations of a region begin anew all lines are forgotten
// (`wrap_i`; look-ups wait for a cycle per line). Contiguous regions and unchecked addresses need no
// table.
//
// Two clients, TX and RX, each answered in its own order. A part is looked up when it enters; a line
// that is not there is fetched at once and marked as pending, so that many misses are under way while
// earlier parts wait (context_mtt_client). Misses are limited by MTT_MISSES; TX may have ¾ of them, so
// RX always finds a place (rule 2). An entering part reserves its miss before its look-up: the look-up
// itself never waits. Fetches are host reads, which wait for nobody.
// Stamps the colour on each fetch (rule 8).
// Neighbours: context_mr_check → here → packet_tx_decide, packet_rx_commit; host_dma_read.
`default_nettype none

module context_mtt_cache #(
  parameter int unsigned MISSES = roci_config_pkg::MTT_MISSES
) (
  input  wire                         clk_i,
  input  wire                         rst_i,
  input  roci_pkg::colour_t           colour_i,
  input  wire                         wrap_i,            // incarnations begin anew: forget all lines

  input  wire  [1:0]                  checked_valid_i,   // client 0 TX, 1 RX
  output logic [1:0]                  checked_ready_o,
  input  wire roci_pkg::mr_checked_t [1:0] checked_i,

  output logic [1:0]                  rsp_valid_o,
  input  wire  [1:0]                  rsp_ready_i,
  output roci_pkg::xlat_rsp_t [1:0]   rsp_o,

  // DMA client MTT: lines of 64 bytes
  output logic                        dma_valid_o,
  input  wire                         dma_ready_i,
  output roci_pkg::dma_read_req_t     dma_o,
  input  wire                         beat_valid_i,
  output logic                        beat_ready_o,
  input  roci_pkg::read_beat_t        beat_i,

  output roci_pkg::fence_busy_t       fence_busy_o,
  output logic                        hit_o,             // pulses, per entering part
  output logic                        miss_o,
  output logic                        ready_o            // cache is cleared after reset
);

  localparam int unsigned LINES = 2 ** context_pkg::INDEX_BITS;
  localparam int unsigned TX_MISSES = (3 * MISSES) / 4;
  localparam int unsigned COUNT_BITS = $clog2(MISSES + 1);
  localparam int unsigned LINE_BEATS = 64 / roci_pkg::DATA_BYTES;
  localparam int unsigned BEAT_BITS = (LINE_BEATS > 1) ? $clog2(LINE_BEATS) : 1;
  localparam int unsigned WORD_BITS = $clog2(LINES * LINE_BEATS);
  typedef logic [COUNT_BITS-1:0] count_t;
  typedef logic [WORD_BITS-1:0] word_t;

  // Spreads regions over the cache: neighbouring lines of one region never collide, and the first
  // lines of neighbouring regions are far apart, since the number of the region counts from the top.
  function automatic context_pkg::mtt_index_t line_index(input context_pkg::mtt_tag_t tag);
    context_pkg::mtt_index_t index;
    for (int unsigned b = 0; b < context_pkg::INDEX_BITS; b++) begin
      index[b] = tag.line[b] ^ tag.mr[context_pkg::INDEX_BITS-1-b];
    end
    return index;
  endfunction

  // The beat of a line that brings a page.
  function automatic logic [BEAT_BITS-1:0] page_beat(input logic [2:0] page);
    return BEAT_BITS'(32'(page) / context_pkg::WORD_PAGES);
  endfunction

  // Where the pages of a beat are kept.
  function automatic word_t page_word(input context_pkg::mtt_tag_t tag,
                                      input logic [BEAT_BITS-1:0] beat);
    return word_t'(32'(line_index(tag)) * LINE_BEATS + 32'(beat));
  endfunction

  // ---------------------------------------------------------------------- parts of both clients
  logic [1:0] split_valid, split_ready;
  context_pkg::mtt_part_t [1:0] split;
  logic [1:0] queue_ready;                             // room in the client's FIFO

  for (genvar c = 0; c < 2; c++) begin : gen_split
    context_mtt_split u_split (
      .clk_i, .rst_i,
      .checked_valid_i(checked_valid_i[c]), .checked_ready_o(checked_ready_o[c]),
      .checked_i(checked_i[c]),
      .part_valid_o(split_valid[c]), .part_ready_i(split_ready[c]), .part_o(split[c])
    );
  end

  // ------------------------------------------------- entry: look up, fetch ahead (one part a cycle)
  // Cycle 0: a client's part is chosen, enters its FIFO, reserves a miss, its key is read.
  // Cycle 1: hit or pending: the reservation is given back. Miss: fetch, line marked pending.
  logic ready;                                         // keys can be read and written
  logic turn_q;                                        // client served last waits
  logic [1:0] may;
  logic chosen, enter, enter_paged;
  logic entered_q, entered_client_q;
  context_pkg::mtt_part_t entered_part_q;
  context_pkg::mtt_key_t entry_key;
  logic [$bits(context_pkg::mtt_key_t)-1:0] entry_key_bits;
  logic entry_match, entry_miss;
  count_t reserved_q[2];                               // misses reserved or under way, per client
  logic [1:0] reservation_back;

  // fetches that are asked for
  logic [1:0] own_fetch, own_fetch_ready, own_may;
  logic own_chosen;
  context_pkg::mtt_part_t [1:0] look_part;
  logic line_done;                                     // a fetched line is complete
  logic line_touch;                                    // it begins or is complete: its key is written

  // ------------------------------------------------------------------------- fetches under way
  typedef struct packed {
    logic own;                                         // for the client's front part itself
    logic client;
    roci_pkg::colour_t colour;
    roci_pkg::fn_t fn;
    context_pkg::mtt_tag_t tag;
    logic [2:0] page;                                  // of the part in front
    roci_pkg::addr_t address;
  } fetch_t;
  fetch_t fetch_in, ask, under_way;
  logic [$bits(fetch_t)-1:0] ask_bits, under_way_bits;
  logic fetch_push, ask_valid, under_way_valid;
  count_t total;

  assign total = reserved_q[0] + reserved_q[1];

  always_comb begin
    may[0] = split_valid[0] && queue_ready[0] && ready
             && (!split[0].paged || (reserved_q[0] < count_t'(TX_MISSES)
                                     && total < count_t'(MISSES)));
    may[1] = split_valid[1] && queue_ready[1] && ready
             && (!split[1].paged || total < count_t'(MISSES));
    chosen = may[!turn_q] ? !turn_q : turn_q;
    // a miss that cannot be marked now (another line's key is written) holds its cycle
    enter = may[chosen] && !(entry_miss && line_touch);
    enter_paged = enter && split[chosen].paged;
    split_ready = '0;
    split_ready[chosen] = enter;
  end

  assign entry_match = entry_key.tag == entered_part_q.tag
                       && entry_key.state != context_pkg::LINE_EMPTY;
  assign entry_miss = entered_q && !entry_match;

  // a part's own fetch waits while an entering one misses, and for a place
  always_comb begin
    own_may[0] = own_fetch[0] && reserved_q[0] < count_t'(TX_MISSES) && total < count_t'(MISSES);
    own_may[1] = own_fetch[1] && total < count_t'(MISSES);
    own_chosen = own_may[1];
    own_fetch_ready = '0;
    own_fetch_ready[own_chosen] = own_may[own_chosen] && !entry_miss && !enter_paged;

    fetch_in.own = !entry_miss;
    fetch_in.client = entry_miss ? entered_client_q : own_chosen;
    fetch_in.colour = colour_i;
    fetch_in.fn = entry_miss ? entered_part_q.fn : look_part[own_chosen].fn;
    fetch_in.tag = entry_miss ? entered_part_q.tag : look_part[own_chosen].tag;
    fetch_in.page = look_part[own_chosen].page;
    fetch_in.address = entry_miss ? entered_part_q.line_address
                                  : look_part[own_chosen].line_address;
    fetch_push = (entry_miss && !line_touch) || own_fetch_ready != '0;

    reservation_back = '0;
    if (entered_q && !entry_miss) begin
      reservation_back[entered_client_q] = 1'b1;
    end
  end

  common_fifo #(.WIDTH($bits(fetch_t)), .DEPTH(MISSES)) u_ask (
    .clk_i, .rst_i,
    .in_valid_i(fetch_push), .in_ready_o(), .in_i(fetch_in),
    .out_valid_o(ask_valid), .out_ready_i(dma_ready_i), .out_o(ask_bits), .usage_o()
  );
  common_fifo #(.WIDTH($bits(fetch_t)), .DEPTH(MISSES)) u_under_way (
    .clk_i, .rst_i,
    .in_valid_i(ask_valid && dma_ready_i), .in_ready_o(), .in_i(ask),
    .out_valid_o(under_way_valid), .out_ready_i(line_done), .out_o(under_way_bits), .usage_o()
  );
  assign ask = fetch_t'(ask_bits);
  assign under_way = fetch_t'(under_way_bits);
  assign dma_valid_o = ask_valid;
  assign dma_o = '{fn: ask.fn, length: roci_pkg::packet_len_t'(64), addr: ask.address};

  // ---------------------------------------------------------------------------------- a line comes
  // Its words are written as they come. So its key says "pending" from the first one on: the line
  // that was there before is gone.
  logic beat, err_q, line_err;
  logic [BEAT_BITS-1:0] beat_q;
  context_pkg::mtt_pages_t pages, own_pages_q, own_pages;   // of this beat; of the part in front

  assign beat_ready_o = under_way_valid;
  assign beat = beat_valid_i && beat_ready_o;
  assign line_done = beat && beat_i.last;
  assign line_touch = line_done || (beat && beat_q == '0);
  assign line_err = err_q || beat_i.err;

  always_comb begin
    for (int unsigned p = 0; p < context_pkg::WORD_PAGES; p++) begin
      pages[p] = beat_i.data[64*p+12+:context_pkg::PAGE_BITS];
    end
    own_pages = (beat_q == page_beat(under_way.page)) ? pages : own_pages_q;
  end

  always_ff @(posedge clk_i) begin
    if (beat) begin
      own_pages_q <= own_pages;
    end
    if (rst_i) begin
      beat_q <= '0;
      err_q <= 1'b0;
    end else if (beat) begin
      beat_q <= beat_i.last ? '0 : beat_q + 1'b1;
      err_q <= !beat_i.last && line_err;
    end
  end

  // ------------------------------------------------------------------------------- keys and pages
  // One write port: a line that comes, else the mark of a miss. Two copies of the keys: one for
  // entering parts, one (with the pages) for the parts in front.
  context_pkg::mtt_key_t key_in;
  context_pkg::mtt_index_t write_index;
  logic key_write;
  logic front_ready, entry_ready;
  logic clear;
  assign clear = rst_i || wrap_i;

  always_comb begin
    // While lines are forgotten no key is written: a line that comes is fetched again when needed.
    key_write = (line_touch || entry_miss) && ready;
    if (line_touch) begin
      write_index = line_index(under_way.tag);
      key_in.tag = under_way.tag;
      key_in.state = !line_done ? context_pkg::LINE_PENDING
                     : line_err ? context_pkg::LINE_EMPTY : context_pkg::LINE_VALID;
    end else begin
      write_index = line_index(entered_part_q.tag);
      key_in.tag = entered_part_q.tag;
      key_in.state = context_pkg::LINE_PENDING;
    end
  end

  common_ram_cleared #(.WIDTH($bits(context_pkg::mtt_key_t)), .DEPTH(LINES)) u_entry_keys (
    .clk_i, .rst_i(clear), .ready_o(entry_ready),
    .we_i(key_write), .waddr_i(write_index), .wdata_i(key_in),
    .re_i(!(entry_miss && line_touch)), .raddr_i(line_index(split[chosen].tag)),
    .rdata_o(entry_key_bits)
  );
  assign entry_key = context_pkg::mtt_key_t'(entry_key_bits);

  logic [1:0] look_valid, look_ready;
  logic look_chosen, look_turn_q;
  logic [$bits(context_pkg::mtt_key_t)-1:0] front_key_bits;
  logic [$bits(context_pkg::mtt_pages_t)-1:0] front_pages_bits;

  assign look_chosen = look_valid[!look_turn_q] ? !look_turn_q : look_turn_q;
  always_comb begin
    look_ready = '0;
    // its words may be those of another line whose key could not be written
    look_ready[look_chosen] = look_valid[look_chosen] && ready;
  end

  common_ram_cleared #(.WIDTH($bits(context_pkg::mtt_key_t)), .DEPTH(LINES)) u_front_keys (
    .clk_i, .rst_i(clear), .ready_o(front_ready),
    .we_i(key_write), .waddr_i(write_index), .wdata_i(key_in),
    .re_i(1'b1), .raddr_i(line_index(look_part[look_chosen].tag)), .rdata_o(front_key_bits)
  );
  common_ram_sdp #(.WIDTH($bits(context_pkg::mtt_pages_t)), .DEPTH(LINES * LINE_BEATS)) u_pages (
    .clk_i,
    .we_i(beat), .waddr_i(page_word(under_way.tag, beat_q)), .wdata_i(pages),
    .re_i(1'b1),
    .raddr_i(page_word(look_part[look_chosen].tag, page_beat(look_part[look_chosen].page))),
    .rdata_o(front_pages_bits)
  );
  assign ready = entry_ready && front_ready;

  // ------------------------------------------------------------------------------------- clients
  for (genvar c = 0; c < 2; c++) begin : gen_client
    context_mtt_client u_client (
      .clk_i, .rst_i,
      .part_valid_i(enter && chosen == 1'(c)), .part_ready_o(queue_ready[c]), .part_i(split[c]),
      .look_valid_o(look_valid[c]), .look_ready_i(look_ready[c]), .look_o(look_part[c]),
      .look_key_i(context_pkg::mtt_key_t'(front_key_bits)),
      .look_pages_i(context_pkg::mtt_pages_t'(front_pages_bits)),
      .fetch_valid_o(own_fetch[c]), .fetch_ready_i(own_fetch_ready[c]),
      .fetched_valid_i(line_done && under_way.own && under_way.client == 1'(c)),
      .fetched_err_i(line_err), .fetched_pages_i(own_pages),
      .rsp_valid_o(rsp_valid_o[c]), .rsp_ready_i(rsp_ready_i[c]), .rsp_o(rsp_o[c])
    );
  end

  // --------------------------------------------------------------------------------------- state
  always_ff @(posedge clk_i) begin
    if (!(entry_miss && line_touch)) begin
      entered_client_q <= chosen;
      entered_part_q <= split[chosen];
    end
    ready_o <= !rst_i && (ready_o || ready);
    if (rst_i) begin
      turn_q <= 1'b0;
      look_turn_q <= 1'b0;
      entered_q <= 1'b0;
      hit_o <= 1'b0;
      miss_o <= 1'b0;
    end else begin
      if (enter) begin
        turn_q <= chosen;
      end
      if (look_valid[look_chosen]) begin
        look_turn_q <= look_chosen;
      end
      if (!(entry_miss && line_touch)) begin
        entered_q <= enter_paged;
      end
      hit_o <= entered_q && !entry_miss;
      miss_o <= entry_miss && !line_touch;
    end
    for (int unsigned c = 0; c < 2; c++) begin
      if (rst_i) begin
        reserved_q[c] <= '0;
      end else begin
        reserved_q[c] <= reserved_q[c] + count_t'(enter_paged && chosen == 1'(c))
                         + count_t'(own_fetch_ready[c]) - count_t'(reservation_back[c])
                         - count_t'(line_done && under_way.client == 1'(c));
      end
    end
  end

  // --------------------------------------------------------------------------------------- fence
  count_t held_q[2];
  always_ff @(posedge clk_i) begin
    for (int unsigned k = 0; k < 2; k++) begin
      if (rst_i) begin
        held_q[k] <= '0;
      end else begin
        held_q[k] <= held_q[k] + count_t'(fetch_push && colour_i == 1'(k))
                     - count_t'(line_done && under_way.colour == 1'(k));
      end
    end
  end
  assign fence_busy_o = {held_q[1] != '0, held_q[0] != '0};

endmodule

`default_nettype wire
