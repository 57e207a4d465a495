// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_host_read: copies from host memory into the CPU's RAM.
//
// Two users: 0 the admin engine (commands and inputs), 1 the firmware. One copy at a time. It becomes
// one DMA read per 64-byte line it touches (so no read crosses 4 KB), all asked for at once; the words
// are stored as they come. The words of user 0 are shown as they pass (snoop), so that the engine
// need not read the RAM.
//
// Address and length are multiples of 8. A bus error is told at the end; what was read is in RAM.
// Neighbours: cpu_admin_queue, cpu_registers, host_dma_read (client 4), cpu_ram.
`default_nettype none

module cpu_host_read (
  input  wire                          clk_i,
  input  wire                          rst_i,

  input  wire [1:0]                    copy_valid_i,
  output logic [1:0]                   copy_ready_o,
  input  wire cpu_pkg::copy_t [1:0]    copy_i,
  output logic [1:0]                   done_o,          // for one cycle: the copy of this user is over
  output logic                         error_o,         // with done_o

  // words as they are stored
  output logic                         snoop_valid_o,
  output logic [cpu_pkg::COPY_BITS-4:0] snoop_word_o,   // number within the copy
  output logic [63:0]                  snoop_data_o,

  // DMA client
  output logic                         req_valid_o,
  input  wire                          req_ready_i,
  output roci_pkg::dma_read_req_t      req_o,
  input  wire                          beat_valid_i,
  output logic                         beat_ready_o,
  input  wire roci_pkg::read_beat_t    beat_i,

  // RAM
  output logic                         write_valid_o,
  input  wire                          write_ready_i,
  output cpu_pkg::ram_addr_t           write_addr_o,
  output logic [63:0]                  write_data_o
);

  localparam int unsigned LANES = roci_pkg::DATA_BYTES / 8;
  localparam int unsigned LANE_BITS = LANES > 1 ? $clog2(LANES) : 1;
  localparam int unsigned WORD_BITS = cpu_pkg::COPY_BITS - 3;
  typedef logic [WORD_BITS-1:0] words_t;

  logic busy_q, user_q;
  roci_pkg::fn_t fn_q;
  // asking
  roci_pkg::addr_t addr_q;
  words_t ask_q;                               // words not yet asked for
  logic [3:0] line_words, piece;
  // storing
  cpu_pkg::ram_addr_t ram_q;
  words_t left_q, number_q;
  logic [LANE_BITS-1:0] lane_q;
  logic error_q, store, last_of_beat;
  logic take, user;
  cpu_pkg::copy_t copy;

  assign user = !copy_valid_i[0];
  assign take = !busy_q && copy_valid_i != '0;
  assign copy = copy_i[user];
  always_comb begin
    copy_ready_o = '0;
    copy_ready_o[user] = !busy_q;
  end

  // ------------------------------------------------------------------------------------------ asking
  assign line_words = 4'd8 - {1'b0, addr_q[5:3]};
  assign piece = ask_q < words_t'(line_words) ? 4'(ask_q) : line_words;
  assign req_valid_o = busy_q && ask_q != '0;
  assign req_o = '{fn: fn_q, addr: addr_q, length: roci_pkg::packet_len_t'({piece, 3'b000})};

  // ----------------------------------------------------------------------------------------- storing
  assign last_of_beat = LANES == 1 || lane_q == LANE_BITS'(LANES - 1) || left_q == words_t'(1);
  assign write_valid_o = busy_q && beat_valid_i && left_q != '0;
  assign write_addr_o = ram_q;
  assign store = write_valid_o && write_ready_i;
  assign beat_ready_o = store && last_of_beat;

  if (LANES == 1) begin : gen_one_lane
    assign write_data_o = beat_i.data[63:0];
  end else begin : gen_lanes
    assign write_data_o = beat_i.data[64*lane_q +: 64];
  end

  assign snoop_valid_o = store && !user_q;
  assign snoop_word_o = number_q;
  assign snoop_data_o = write_data_o;

  always_ff @(posedge clk_i) begin
    if (take) begin
      user_q <= user;
      fn_q <= copy.fn;
      addr_q <= copy.addr;
      ask_q <= words_t'(copy.bytes >> 3);
      ram_q <= copy.ram;
      left_q <= words_t'(copy.bytes >> 3);
      number_q <= '0;
      lane_q <= LANES == 1 ? '0 : LANE_BITS'(copy.addr[3 +: LANE_BITS]);
      error_q <= 1'b0;
    end else begin
      if (req_valid_o && req_ready_i) begin
        addr_q <= addr_q + {57'h0, piece, 3'b000};
        ask_q <= ask_q - words_t'(piece);
      end
      if (store) begin
        ram_q <= ram_q + 1'b1;
        left_q <= left_q - 1'b1;
        number_q <= number_q + 1'b1;
        lane_q <= last_of_beat ? '0 : lane_q + 1'b1;
        error_q <= error_q || beat_i.err;
      end
    end
    error_o <= error_q || beat_i.err;
    if (rst_i) begin
      busy_q <= 1'b0;
      done_o <= '0;
    end else begin
      done_o <= '0;
      if (take) begin
        busy_q <= 1'b1;
      end else if (store && left_q == words_t'(1)) begin
        busy_q <= 1'b0;
        done_o[user_q] <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && take) begin
      assert (copy.addr[2:0] == '0 && copy.bytes[2:0] == '0 && copy.bytes != '0)
      else $error("cpu_host_read: bad address or length");
    end
  end

endmodule

`default_nettype wire
