// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_mtt_client: answers one client's parts in order.
//
// Parts wait here in a FIFO while their lines are fetched ahead (context_mtt_cache looks each one up
// as it enters). The part in front looks its line up again: there → answer; still on its way → again;
// gone (pushed out by another line, or the fetch failed) → it fetches the line for itself and takes
// it straight from the bus, so that it makes progress whatever other clients do. A bus error then is
// its answer.
// Neighbours: context_mtt_split → here ⇄ context_mtt_cache → the client.
`default_nettype none

module context_mtt_client #(
  // waiting for their lines; in narrow as many as lines can be under way, in LUT RAM of 16 words
  parameter int unsigned PARTS = (roci_config_pkg::IS_WIDE ? 2 : 1) * roci_config_pkg::MTT_MISSES
) (
  input  wire                        clk_i,
  input  wire                        rst_i,

  input  wire                        part_valid_i,
  output logic                       part_ready_o,
  input  context_pkg::mtt_part_t     part_i,

  // look-up of the line in front: granted now, answered in the next cycle
  output logic                       look_valid_o,
  input  wire                        look_ready_i,
  output context_pkg::mtt_part_t     look_o,
  input  context_pkg::mtt_key_t      look_key_i,
  input  context_pkg::mtt_pages_t    look_pages_i,       // the word of the page in look_o

  // fetch for itself
  output logic                       fetch_valid_o,
  input  wire                        fetch_ready_i,
  input  wire                        fetched_valid_i,    // its line came
  input  wire                        fetched_err_i,
  input  context_pkg::mtt_pages_t    fetched_pages_i,    // the word of its page

  output logic                       rsp_valid_o,
  input  wire                        rsp_ready_i,
  output roci_pkg::xlat_rsp_t        rsp_o
);

  typedef enum logic [1:0] {
    FRONT_START,         // look at the part in front
    FRONT_LOOKED,        // its line's key and pages are there
    FRONT_FETCH,         // wants a fetch of its own
    FRONT_FETCHING       // waits for it
  } front_e;
  front_e front_q, front_d;

  logic [$bits(context_pkg::mtt_part_t)-1:0] part_bits;
  context_pkg::mtt_part_t part;
  logic part_valid, part_done;

  common_fifo #(.WIDTH($bits(context_pkg::mtt_part_t)), .DEPTH(PARTS)) u_parts (
    .clk_i, .rst_i,
    .in_valid_i(part_valid_i), .in_ready_o(part_ready_o), .in_i(part_i),
    .out_valid_o(part_valid), .out_ready_i(part_done), .out_o(part_bits), .usage_o()
  );
  assign part = context_pkg::mtt_part_t'(part_bits);

  // ------------------------------------------------------------------------------------- answer
  logic answer, rsp_free, from_fetch;
  context_pkg::mtt_pages_t pages;
  logic [context_pkg::PAGE_BITS-1:0] page;
  logic [63:0] in_page_mask;
  roci_pkg::xlat_rsp_t rsp;

  assign rsp_free = !rsp_valid_o || rsp_ready_i;
  assign look_o = part;

  always_comb begin
    front_d = front_q;
    look_valid_o = 1'b0;
    fetch_valid_o = 1'b0;
    answer = 1'b0;
    from_fetch = 1'b0;
    unique case (front_q)
      FRONT_START: begin
        if (part_valid && rsp_free) begin
          if (!part.paged) begin
            answer = 1'b1;
          end else begin
            look_valid_o = 1'b1;
            front_d = look_ready_i ? FRONT_LOOKED : FRONT_START;
          end
        end
      end
      FRONT_LOOKED: begin
        // rsp_free held since the look-up: only this block fills the register
        if (look_key_i.tag != part.tag || look_key_i.state == context_pkg::LINE_EMPTY) begin
          front_d = FRONT_FETCH;
        end else begin
          answer = look_key_i.state == context_pkg::LINE_VALID;
          front_d = FRONT_START;
        end
      end
      FRONT_FETCH: begin
        fetch_valid_o = 1'b1;
        front_d = fetch_ready_i ? FRONT_FETCHING : FRONT_FETCH;
      end
      default: begin
        answer = fetched_valid_i;
        from_fetch = 1'b1;
        front_d = fetched_valid_i ? FRONT_START : FRONT_FETCHING;
      end
    endcase
    part_done = answer;

    pages = from_fetch ? fetched_pages_i : look_pages_i;
    page = pages[32'(part.page) % context_pkg::WORD_PAGES];
    for (int unsigned b = 0; b < 64; b++) in_page_mask[b] = b < 32'(part.page_shift);
    rsp.last = part.last;
    rsp.length = part.length;
    rsp.status = (from_fetch && fetched_err_i) ? roci_pkg::XLAT_BUS_ERROR : part.status;
    rsp.addr = part.paged ? ({page, 12'h000} & ~in_page_mask) | (part.addr & in_page_mask)
                          : part.addr;
  end

  always_ff @(posedge clk_i) begin
    if (answer) begin
      rsp_o <= rsp;
    end
    if (rst_i) begin
      front_q <= FRONT_START;
      rsp_valid_o <= 1'b0;
    end else begin
      front_q <= front_d;
      if (answer) begin
        rsp_valid_o <= 1'b1;
      end else if (rsp_ready_i) begin
        rsp_valid_o <= 1'b0;
      end
      assert (!(answer && !rsp_free))
      else $error("context_mtt_client: answer without room");
    end
  end

endmodule

`default_nettype wire
