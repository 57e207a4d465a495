// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_rq_landing: puts fetched receive WQEs into their slots.
//
// Takes the beats of one burst after the other, cuts them into 32-byte words (header + SGE 0, then
// two SGEs each) and writes them to the slots of the queue. Over the header's reserved bytes it
// puts what only the whole WQE tells (responder_pkg::slot_header_t): a bus error, an SGE count that does
// not fit the stride. The header word is written last; then the WQE has landed, and the sum of its SGE
// lengths is told (no limit for one that will fail anyway). WQEs land in index order per queue, at most
// one in two cycles.
//
// Rate: one word per cycle; a WQE of one word takes two cycles, any other as many as it has words.
// Does not: judge WQEs. Neighbours: host_dma_read → here → slots (in queue_rq_fetch).
`default_nettype none

module queue_rq_landing #(
  parameter int unsigned BURSTS = 16              // fetches on their way
) (
  input  wire                                clk_i,
  input  wire                                rst_i,          // synchronous, active high

  // what was asked for, in the order of the requests
  input  wire                                burst_valid_i,
  output logic                               burst_ready_o,
  input  wire roci_pkg::colour_t             burst_colour_i,
  input  wire roci_pkg::rq_entry_t           burst_entry_i,  // queue and first index
  input  wire [4:0]                          burst_count_i,  // WQEs, 1..16
  input  wire [1:0]                          burst_stride_i, // stride code
  input  wire [5:0]                          burst_lane_i,   // low bits of the address
  input  wire [roci_config_pkg::SLOT_BITS-1:0] burst_slot_base_i,
  input  wire [3:0]                          burst_slot_log2_i,

  input  wire                                beat_valid_i,
  output logic                               beat_ready_o,
  input  wire roci_pkg::read_beat_t          beat_i,

  output logic                               write_o,        // to the slots
  output roci_pkg::slot_word_address_t       write_address_o,
  output logic [roci_pkg::SLOT_WORD_BITS-1:0] write_data_o,

  output logic                               landed_valid_o,
  output roci_pkg::rq_entry_t                landed_o,       // WQE that is in its slot now
  output logic [31:0]                        landed_total_o, // bytes of its SGEs, at most 2^32 - 1

  output logic                               end_valid_o,    // a burst is done
  output roci_pkg::colour_t                  end_colour_o
);

  localparam int unsigned SLOT_BITS = roci_config_pkg::SLOT_BITS;

  typedef struct packed {
    roci_pkg::colour_t colour;
    roci_pkg::rq_entry_t entry;
    logic [4:0] count;
    logic [1:0] stride;
    logic [5:0] lane;
    logic [SLOT_BITS-1:0] slot_base;
    logic [3:0] slot_log2;
  } burst_t;

  // ------------------------------------------------------------------------------------- bursts
  burst_t burst_in, burst;
  logic [$bits(burst_t)-1:0] burst_bits;
  logic burst_valid, burst_done;

  assign burst_in = '{colour: burst_colour_i, entry: burst_entry_i, count: burst_count_i,
                      stride: burst_stride_i, lane: burst_lane_i,
                      slot_base: burst_slot_base_i, slot_log2: burst_slot_log2_i};

  common_fifo #(.WIDTH($bits(burst_t)), .DEPTH(BURSTS)) u_bursts (
    .clk_i, .rst_i,
    .in_valid_i(burst_valid_i), .in_ready_o(burst_ready_o), .in_i(burst_in),
    .out_valid_o(burst_valid), .out_ready_i(burst_done), .out_o(burst_bits), .usage_o()
  );
  assign burst = burst_t'(burst_bits);

  // ------------------------------------------------------------------- words of 32 B from beats
  logic word_valid, word_ready;      // word_ready does not depend on word_valid
  logic word_last;                   // of the burst
  logic [roci_pkg::SLOT_WORD_BITS-1:0] word;
  logic word_err;

  if (roci_pkg::DATA_BYTES == 64) begin : gen_wide

    // the first word of a burst is in the half that its address says
    logic started_q, half_q;
    logic half;

    assign half = started_q ? half_q : burst.lane[5];
    assign word_valid = beat_valid_i && burst_valid;
    assign word = half ? beat_i.data[511:256] : beat_i.data[255:0];
    assign word_err = beat_i.err;
    assign beat_ready_o = burst_valid && word_ready && (half || word_last);

    always_ff @(posedge clk_i) begin
      if (word_valid && word_ready) begin
        started_q <= !word_last;
        half_q <= !half;
      end
      if (rst_i) started_q <= 1'b0;
    end

  end else begin : gen_narrow

    // four beats make a word; bursts start and end at words
    logic [1:0] part_q;
    logic [2:0][63:0] parts_q;
    logic err_q;

    assign word_valid = beat_valid_i && burst_valid && part_q == 2'd3;
    assign word = {beat_i.data[63:0], parts_q};
    assign word_err = err_q || beat_i.err;
    assign beat_ready_o = burst_valid && (part_q != 2'd3 || word_ready);
    wire unused_lane = &{1'b0, burst.lane};

    always_ff @(posedge clk_i) begin
      if (beat_valid_i && beat_ready_o) begin
        part_q <= part_q + 2'd1;
        parts_q <= {beat_i.data[63:0], parts_q[2:1]};
        err_q <= part_q != 2'd3 && ((part_q != 2'd0 && err_q) || beat_i.err);
      end
      if (rst_i) part_q <= '0;
    end

  end
  wire unused_last = &{1'b0, beat_i.last};

  // ---------------------------------------------------------------------------- WQEs from words
  typedef responder_pkg::slot_header_t header_t;

  logic [2:0] word_index_q;          // of the WQE
  logic [4:0] wqe_q;                 // of the burst
  logic [roci_pkg::SLOT_WORD_BITS-1:0] head_q;   // first word, written last
  logic [35:0] sum_q;                // SGE lengths so far
  logic err_q;                       // so far
  logic finish_q;                    // the WQE is complete: its first word is to be written
  roci_pkg::rq_entry_t finish_entry_q;
  logic [1:0] finish_stride_q;
  roci_pkg::slot_word_address_t finish_address_q;

  logic [2:0] last_index;            // of the words of a WQE
  logic word_taken, first_word, last_word;
  logic [3:0] count;                 // SGEs of the WQE, as far as the stride has room
  logic low_counts, high_counts;     // which of the word's SGEs count
  logic [35:0] sum;
  header_t head_in, head_out;
  roci_pkg::rq_index_t wqe_index;
  logic [SLOT_BITS-1:0] unit;
  roci_pkg::slot_word_address_t word_address;

  always_comb begin
    unique case (burst.stride)
      2'd0: last_index = 3'd0;
      2'd1: last_index = 3'd1;
      2'd2: last_index = 3'd3;
      default: last_index = 3'd7;
    endcase
    first_word = word_index_q == 3'd0;
    last_word = word_index_q == last_index;
    word_last = last_word && wqe_q == burst.count - 5'd1;
    // the slots have one write port, and WQEs of one word must not land in consecutive cycles
    word_ready = !finish_q || (first_word && !last_word);
    word_taken = word_valid && word_ready;
    burst_done = word_taken && word_last;

    head_in = header_t'(first_word ? word[127:0] : head_q[127:0]);
    count = (head_in.sge_count > 8'({last_index, 1'b1})) ? {last_index, 1'b1}
                                                         : head_in.sge_count[3:0];
    // SGE 2w - 1 is the low half of word w, SGE 2w the high half
    low_counts = !first_word && count >= {word_index_q, 1'b0};
    high_counts = count > {word_index_q, 1'b0};
    sum = (first_word ? 36'd0 : sum_q)
        + (low_counts ? 36'(word[64 +: 32]) : 36'd0)
        + (high_counts ? 36'(word[128 + 64 +: 32]) : 36'd0);

    // a ring of slots of 64 B, two words each; WQEs of 128 and 256 B take two and four slots
    wqe_index = burst.entry.index + 16'(wqe_q);
    unit = burst.stride <= 2'd1 ? SLOT_BITS'(wqe_index)
         : burst.stride == 2'd2 ? SLOT_BITS'({wqe_index, 1'b0})
                                : SLOT_BITS'({wqe_index, 2'b00});
    unit = burst.slot_base | (unit & ~({SLOT_BITS{1'b1}} << burst.slot_log2));
    word_address = {unit, 1'b0} + roci_pkg::slot_word_address_t'(word_index_q);

    head_out = header_t'(head_q[127:0]);
    head_out.reserved = '0;
    head_out.unreadable = err_q;
    unique case (finish_stride_q)
      2'd0: head_out.bad_count = head_out.sge_count > 8'd1;
      2'd1: head_out.bad_count = head_out.sge_count > 8'd3;
      2'd2: head_out.bad_count = head_out.sge_count > 8'd7;
      default: head_out.bad_count = head_out.sge_count > 8'd15;
    endcase

    write_o = finish_q || (word_taken && !first_word);
    write_address_o = finish_q ? finish_address_q : word_address;
    write_data_o = finish_q ? {head_q[255:128], head_out} : word;
    landed_valid_o = finish_q;
    landed_o = finish_entry_q;
    landed_total_o = sum_q[35:32] != 4'd0 || head_out.bad_count || err_q ? '1 : sum_q[31:0];
    end_valid_o = burst_done;
    end_colour_o = burst.colour;
  end

  always_ff @(posedge clk_i) begin
    if (word_taken) begin
      word_index_q <= last_word ? 3'd0 : word_index_q + 3'd1;
      if (last_word) wqe_q <= word_last ? 5'd0 : wqe_q + 5'd1;
      if (first_word) head_q <= word;
      sum_q <= sum;
      err_q <= (!first_word && err_q) || word_err;
    end
    finish_q <= word_taken && last_word;
    if (word_taken && last_word) begin
      finish_entry_q <= '{rq: burst.entry.rq, index: wqe_index};
      finish_stride_q <= burst.stride;
      finish_address_q <= {unit, 1'b0};
    end
    if (rst_i) begin
      word_index_q <= '0;
      wqe_q <= '0;
      finish_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (word_taken) assert (burst.count != 5'd0 && wqe_q < burst.count);
    end
  end

endmodule

`default_nettype wire
