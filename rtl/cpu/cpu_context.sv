// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_context: master of the context bus, and the copy engine of context images.
//
// The firmware does single accesses (start, then read the data: the answer of a write is kept too), or
// it writes a list of words into RAM and has it carried out here while it goes on. A list is made of
// groups: a header word, then its data, one word of 8 bytes per context word:
//   header [31:16] index, [15:10] column, [3:0] first word, [37:32] number of words (1..63),
//   [61] one word of each row from index on, [62] read, [63] last group.
// The index that comes with the start of a list is ORed into those of its headers: lists for any object
// of a kind have constant headers.
// Words of a group go to consecutive words of the row (or to the same word of consecutive rows); those
// of a read group come from there and are put behind its header. Everything happens in order.
//
// An access that no block answers within 2^TIMEOUT_LOG2 cycles is given up and remembered (error_o):
// the firmware stops with a fault instead of hanging. That is for a device that is broken: an owner
// whose pipeline the host's memory holds up answers late, and must not be taken for one.
// Neighbours: cpu_registers, cpu_ram, all owners of columns.
`default_nettype none

module cpu_context #(
  parameter int unsigned TIMEOUT_LOG2 = 28             // cycles: about a second
) (
  input  wire                       clk_i,
  input  wire                       rst_i,

  // commands, only while not busy
  input  wire                       start_access_i,
  input  wire                       start_write_i,     // with start_access_i: a write
  input  wire [31:0]                address_i,         // as in a header, bits 31:0
  input  wire [63:0]                wdata_i,
  input  wire                       start_list_i,
  input  wire cpu_pkg::ram_addr_t   list_i,            // first header
  input  wire [15:0]                list_index_i,      // ORed into the indices of all headers
  output logic                      busy_o,
  output logic [63:0]               rdata_o,           // answer of the last single access
  output logic                      error_o,           // sticky: an access was not answered

  output logic                      read_valid_o,      // RAM
  input  wire                       read_ready_i,
  output cpu_pkg::ram_addr_t        read_addr_o,
  input  wire [63:0]                rdata_i,           // one cycle after the grant
  output logic                      write_valid_o,     // RAM: what a list reads
  input  wire                       write_ready_i,
  output cpu_pkg::ram_addr_t        write_addr_o,
  output logic [63:0]               write_data_o,

  output roci_pkg::ctx_req_t        ctx_o,
  input  wire roci_pkg::ctx_rsp_t   ctx_i
);

  typedef enum logic [3:0] {
    IDLE, SINGLE, HEADER, HEADER_DATA, WORD, WORD_DATA, WRITE, READ, STORE
  } state_e;

  typedef struct packed {
    logic last;
    logic read;
    logic by_index;
    logic [22:0] unused;
    logic [5:0] count;
    logic [15:0] index;
    logic [5:0] column;
    logic [5:0] unused_low;
    logic [3:0] first_word;
  } header_t;

  state_e state_q;
  cpu_pkg::ram_addr_t pointer_q;               // next word of the list
  logic [5:0] left_q;                          // words left in the group
  logic last_q, by_index_q;
  logic [15:0] base_q;                         // list_index_i
  roci_pkg::ctx_req_t ctx_q;
  logic [TIMEOUT_LOG2:0] time_q;
  header_t address, header;
  logic answered;
  state_e next_group;

  assign address = header_t'({32'h0, address_i});
  assign header = header_t'(rdata_i);
  assign busy_o = state_q != IDLE;
  assign ctx_o = ctx_q;
  assign read_valid_o = state_q == HEADER || state_q == WORD;
  assign read_addr_o = pointer_q;
  assign write_valid_o = state_q == STORE;
  assign write_addr_o = pointer_q;
  assign write_data_o = rdata_o;
  assign next_group = last_q ? IDLE : HEADER;
  assign answered = ctx_q.valid && (ctx_i.done || time_q[TIMEOUT_LOG2]);

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      state_q <= IDLE;
      ctx_q <= '0;
      time_q <= '0;
      error_o <= 1'b0;
    end else begin
      time_q <= ctx_q.valid ? time_q + 1'b1 : '0;
      if (answered) begin
        ctx_q.valid <= 1'b0;
        time_q <= '0;
        error_o <= error_o || !ctx_i.done;
      end

      unique case (state_q)
        IDLE: begin
          ctx_q.write <= start_write_i;
          ctx_q.column <= address.column;
          ctx_q.index <= address.index;
          ctx_q.word <= address.first_word;
          ctx_q.wdata <= wdata_i;
          pointer_q <= list_i;
          base_q <= list_index_i;
          if (start_access_i) begin
            ctx_q.valid <= 1'b1;
            state_q <= SINGLE;
          end else if (start_list_i) begin
            state_q <= HEADER;
          end
        end
        SINGLE: begin
          if (answered) begin
            rdata_o <= ctx_i.rdata;
            state_q <= IDLE;
          end
        end
        HEADER: begin
          if (read_ready_i) begin
            pointer_q <= pointer_q + 1'b1;
            state_q <= HEADER_DATA;
          end
        end
        HEADER_DATA: begin
          ctx_q.write <= !header.read;
          ctx_q.valid <= header.read;
          ctx_q.column <= header.column;
          ctx_q.index <= header.index | base_q;
          ctx_q.word <= header.first_word;
          left_q <= header.count;
          last_q <= header.last;
          by_index_q <= header.by_index;
          state_q <= header.read ? READ : WORD;
        end
        WORD: begin
          if (read_ready_i) begin
            pointer_q <= pointer_q + 1'b1;
            state_q <= WORD_DATA;
          end
        end
        WORD_DATA: begin
          ctx_q.wdata <= rdata_i;
          ctx_q.valid <= 1'b1;
          left_q <= left_q - 1'b1;
          state_q <= WRITE;
        end
        WRITE: begin
          if (answered) begin
            ctx_q.word <= ctx_q.word + 4'(!by_index_q);
            ctx_q.index <= ctx_q.index + 16'(by_index_q);
            state_q <= left_q != '0 ? WORD : next_group;
          end
        end
        READ: begin
          if (answered) begin
            rdata_o <= ctx_i.rdata;
            left_q <= left_q - 1'b1;
            state_q <= STORE;
          end
        end
        default: begin                         // STORE
          if (write_ready_i) begin
            pointer_q <= pointer_q + 1'b1;
            ctx_q.word <= ctx_q.word + 4'(!by_index_q);
            ctx_q.index <= ctx_q.index + 16'(by_index_q);
            ctx_q.valid <= left_q != '0;
            state_q <= left_q != '0 ? READ : next_group;
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      if (start_access_i || start_list_i) assert (state_q == IDLE);
      if (ctx_i.done) assert (ctx_q.valid) else $error("cpu_context: answer without a request");
      if (state_q == HEADER_DATA) begin
        assert (header.count != '0) else $error("cpu_context: empty group in a list");
      end
    end
  end

endmodule

`default_nettype wire
