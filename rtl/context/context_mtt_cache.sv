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
// Two clients, TX and RX, each answered in its own order (context_mtt_client). A part is looked up when
// it enters: its page is there, or its line is fetched at once, for this part, whatever else is under
// way: many fetches side by side, none waited for by more than one part. So parts whose lines collide,
// are not there yet or cannot be read cost their client a fetch each and no round trip each. A line that
// comes takes its place in the cache, unless it was asked for while another was being written there:
// else a line that many wait for would push itself out, over and over.
// Misses are limited by MTT_MISSES; TX may have ¾ of them, so RX always finds a place (rule 2). An
// entering part reserves its miss before its look-up: the look-up itself never waits. Fetches are host
// reads, which wait for nobody.
// Stamps the colour on each fetch (rule 8). A page that was found is an address that was granted, as
// that of a contiguous region is: lines that go meanwhile do not change it.
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
  logic [1:0] room;                                    // for a part, with its client

  for (genvar c = 0; c < 2; c++) begin : gen_split
    context_mtt_split u_split (
      .clk_i, .rst_i,
      .checked_valid_i(checked_valid_i[c]), .checked_ready_o(checked_ready_o[c]),
      .checked_i(checked_i[c]),
      .part_valid_o(split_valid[c]), .part_ready_i(split_ready[c]), .part_o(split[c])
    );
  end

  // ------------------------------------------------- entry: look up, fetch (one part a cycle)
  // Cycle 0: a client's part is chosen, reserves a miss, its key and pages are read.
  // Cycle 1: hit: the reservation is given back, the answer is known. Miss: fetch. Either way the part
  // goes to its client.
  logic ready;                                         // keys can be read and written
  logic turn_q;                                        // client served last waits
  logic [1:0] may;
  logic chosen, enter, enter_paged;
  logic entered_q, entered_client_q;
  logic disturbed_q;                                   // its place was written while it was read
  context_pkg::mtt_part_t entered_part_q;
  context_pkg::mtt_key_t entry_key;
  context_pkg::mtt_pages_t entry_pages;
  logic [$bits(context_pkg::mtt_key_t)-1:0] entry_key_bits;
  logic [$bits(context_pkg::mtt_pages_t)-1:0] entry_pages_bits;
  logic entry_match, entry_hit, entry_miss;
  context_pkg::mtt_looked_t looked;
  count_t reserved_q[2];                               // misses reserved or under way, per client
  count_t total;

  assign total = reserved_q[0] + reserved_q[1];

  always_comb begin
    may[0] = split_valid[0] && room[0] && ready
             && (!split[0].paged || (reserved_q[0] < count_t'(TX_MISSES)
                                     && total < count_t'(MISSES)));
    may[1] = split_valid[1] && room[1] && ready
             && (!split[1].paged || total < count_t'(MISSES));
    chosen = may[!turn_q] ? !turn_q : turn_q;
    enter = may[chosen];
    enter_paged = enter && split[chosen].paged;
    split_ready = '0;
    split_ready[chosen] = enter;
  end

  assign entry_match = entry_key.tag == entered_part_q.tag
                       && entry_key.state == context_pkg::LINE_VALID && !disturbed_q;
  assign entry_hit = entered_q && entered_part_q.paged && entry_match;
  assign entry_miss = entered_q && entered_part_q.paged && !entry_match;

  always_comb begin
    looked.status = entered_part_q.status;
    looked.last = entered_part_q.last;
    looked.fetched = entered_part_q.paged && !entry_match;
    looked.length = entered_part_q.length;
    looked.addr = (entered_part_q.paged && entry_match)
                  ? context_pkg::page_position(
                      entry_pages[32'(entered_part_q.page) % context_pkg::WORD_PAGES],
                      entered_part_q.addr, entered_part_q.page_shift)
                  : entered_part_q.addr;
    looked.page_shift = entered_part_q.page_shift;
  end

  // ------------------------------------------------------------------------- fetches under way
  typedef struct packed {
    roci_pkg::fn_t fn;
    roci_pkg::addr_t address;
  } ask_t;
  typedef struct packed {
    logic fill;                                        // comes into the cache
    logic client;
    roci_pkg::colour_t colour;
    context_pkg::mtt_tag_t tag;
    logic [2:0] page;                                  // of the part that it is fetched for
  } under_way_t;
  ask_t ask_in, ask;
  under_way_t under_way_in, under_way;
  logic [$bits(ask_t)-1:0] ask_bits;
  logic [$bits(under_way_t)-1:0] under_way_bits;
  logic ask_valid, under_way_valid;
  logic fill;
  logic line_done;                                     // a fetched line is complete
  logic line_touch;                                    // its key is written: it begins or is complete

  assign fill = entry_key.state != context_pkg::LINE_PENDING && !disturbed_q;
  assign ask_in = '{fn: entered_part_q.fn, address: entered_part_q.line_address};
  assign under_way_in = '{fill: fill, client: entered_client_q, colour: colour_i,
                          tag: entered_part_q.tag, page: entered_part_q.page};

  common_fifo #(.WIDTH($bits(ask_t)), .DEPTH(MISSES)) u_ask (
    .clk_i, .rst_i,
    .in_valid_i(entry_miss), .in_ready_o(), .in_i(ask_in),
    .out_valid_o(ask_valid), .out_ready_i(dma_ready_i), .out_o(ask_bits), .usage_o()
  );
  common_fifo #(.WIDTH($bits(under_way_t)), .DEPTH(MISSES)) u_under_way (
    .clk_i, .rst_i,
    .in_valid_i(entry_miss), .in_ready_o(), .in_i(under_way_in),
    .out_valid_o(under_way_valid), .out_ready_i(line_done), .out_o(under_way_bits), .usage_o()
  );
  assign ask = ask_t'(ask_bits);
  assign under_way = under_way_t'(under_way_bits);
  assign dma_valid_o = ask_valid;
  assign dma_o = '{fn: ask.fn, length: roci_pkg::packet_len_t'(64), addr: ask.address};

  // ---------------------------------------------------------------------------------- a line comes
  // Its words are written as they come. So its key says "pending" from the first one on: the line
  // that was there before is gone.
  logic beat, err_q, line_err;
  logic [BEAT_BITS-1:0] beat_q;
  context_pkg::mtt_pages_t pages;                      // of this beat
  logic [context_pkg::PAGE_BITS-1:0] page_q, page;     // of the part that it is fetched for

  assign beat_ready_o = under_way_valid;
  assign beat = beat_valid_i && beat_ready_o;
  assign line_done = beat && beat_i.last;
  assign line_touch = under_way.fill && (line_done || (beat && beat_q == '0));
  assign line_err = err_q || beat_i.err;

  always_comb begin
    for (int unsigned p = 0; p < context_pkg::WORD_PAGES; p++) begin
      pages[p] = beat_i.data[64*p+12+:context_pkg::PAGE_BITS];
    end
    page = (beat_q == page_beat(under_way.page))
           ? pages[32'(under_way.page) % context_pkg::WORD_PAGES] : page_q;
  end

  always_ff @(posedge clk_i) begin
    if (beat) begin
      page_q <= page;
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
  context_pkg::mtt_key_t key_in;
  context_pkg::mtt_index_t write_index, read_index;
  logic key_write;

  always_comb begin
    // While lines are forgotten no key is written: a line that comes is fetched again when needed.
    key_write = line_touch && ready;
    write_index = line_index(under_way.tag);
    read_index = line_index(split[chosen].tag);
    key_in.tag = under_way.tag;
    key_in.state = !line_done ? context_pkg::LINE_PENDING
                   : line_err ? context_pkg::LINE_EMPTY : context_pkg::LINE_VALID;
  end

  common_ram_cleared #(
    .WIDTH($bits(context_pkg::mtt_key_t)), .DEPTH(LINES), .BYPASS(1'b0)
  ) u_keys (
    .clk_i, .rst_i(rst_i || wrap_i), .ready_o(ready),
    .we_i(key_write), .waddr_i(write_index), .wdata_i(key_in),
    .re_i(1'b1), .raddr_i(read_index), .rdata_o(entry_key_bits)
  );
  common_ram_sdp #(
    .WIDTH($bits(context_pkg::mtt_pages_t)), .DEPTH(LINES * LINE_BEATS), .BYPASS(1'b0)
  ) u_pages (
    .clk_i,
    .we_i(beat && under_way.fill), .waddr_i(page_word(under_way.tag, beat_q)), .wdata_i(pages),
    .re_i(1'b1), .raddr_i(page_word(split[chosen].tag, page_beat(split[chosen].page))),
    .rdata_o(entry_pages_bits)
  );
  assign entry_key = context_pkg::mtt_key_t'(entry_key_bits);
  assign entry_pages = context_pkg::mtt_pages_t'(entry_pages_bits);

  // ------------------------------------------------------------------------------------- clients
  for (genvar c = 0; c < 2; c++) begin : gen_client
    context_mtt_client u_client (
      .clk_i, .rst_i,
      .room_o(room[c]),
      .part_valid_i(entered_q && entered_client_q == 1'(c)), .part_i(looked),
      .page_valid_i(line_done && under_way.client == 1'(c)), .page_err_i(line_err), .page_i(page),
      .rsp_valid_o(rsp_valid_o[c]), .rsp_ready_i(rsp_ready_i[c]), .rsp_o(rsp_o[c])
    );
  end

  // --------------------------------------------------------------------------------------- state
  always_ff @(posedge clk_i) begin
    entered_client_q <= chosen;
    entered_part_q <= split[chosen];
    disturbed_q <= key_write && write_index == read_index;
    ready_o <= !rst_i && (ready_o || ready);
    if (rst_i) begin
      turn_q <= 1'b0;
      entered_q <= 1'b0;
      hit_o <= 1'b0;
      miss_o <= 1'b0;
    end else begin
      if (enter) begin
        turn_q <= chosen;
      end
      entered_q <= enter;
      hit_o <= entry_hit;
      miss_o <= entry_miss;
    end
    for (int unsigned c = 0; c < 2; c++) begin
      if (rst_i) begin
        reserved_q[c] <= '0;
      end else begin
        reserved_q[c] <= reserved_q[c] + count_t'(enter_paged && chosen == 1'(c))
                         - count_t'(entry_hit && entered_client_q == 1'(c))
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
        held_q[k] <= held_q[k] + count_t'(entry_miss && colour_i == 1'(k))
                     - count_t'(line_done && under_way.colour == 1'(k));
      end
    end
  end
  assign fence_busy_o = {held_q[1] != '0, held_q[0] != '0};

endmodule

`default_nettype wire
