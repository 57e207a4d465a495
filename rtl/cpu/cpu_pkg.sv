// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Types between the register side of the host (host_csr, host_doorbell, host_admin_rings), the CPU
// subsystem and host_interrupt.
`default_nettype none

package cpu_pkg;

  localparam int unsigned FNS = 2 ** roci_config_pkg::FN_BITS;
  localparam int unsigned BAR_BITS = 17;               // offset within a function's BAR0
  // BAR0 address as the bus gives it: function in the top bits.
  localparam int unsigned BAR_ADDR_BITS = roci_config_pkg::FN_BITS + BAR_BITS;

  typedef logic [roci_config_pkg::VECTOR_BITS-1:0] vector_t;

  // A write to a doorbell page, unchecked.
  typedef struct packed {
    roci_pkg::fn_t fn;
    logic [3:0] page;
    logic [63:0] data;               // hwif doorbell
  } bar_doorbell_t;

  // host_csr -> host_interrupt: a write to the interrupt registers. Always accepted.
  typedef struct packed {
    logic valid;
    roci_pkg::fn_t fn;
    logic is_mask;                   // else pending: write 1 to clear
    vector_t irq_vector;               // is_mask: which
    logic masked;                    // is_mask: new value
    logic [7:0] clear;               // pending: bits to clear
  } irq_write_t;

  // To host_interrupt: something to report.
  typedef struct packed {
    roci_pkg::fn_t fn;
    vector_t irq_vector;
  } irq_raise_t;

  // host_admin_rings -> cpu_admin_queue: the next command of a function.
  typedef struct packed {
    roci_pkg::fn_t fn;
    roci_pkg::addr_t addr;           // of its 64 bytes
  } admin_fetch_t;

  // Where the next completion of a function goes.
  typedef struct packed {
    logic drop;                      // the function is not enabled: no completion
    logic phase;
    logic raise;
    vector_t irq_vector;
    roci_pkg::addr_t addr;           // of its 32 bytes
  } admin_place_t;

  // Registers of block `admin`, in the order of their addresses.
  typedef enum logic [2:0] {
    ADMIN_COMMAND_RING = 3'd0, ADMIN_COMPLETION_RING = 3'd1, ADMIN_RING_CONFIG = 3'd2,
    ADMIN_CONTROL = 3'd3, ADMIN_STATUS = 3'd4, ADMIN_DOORBELL = 3'd5, ADMIN_CONSUMED = 3'd6,
    ADMIN_NO_REGISTER = 3'd7
  } admin_register_e;

  // A host access to one of them.
  typedef struct packed {
    roci_pkg::fn_t fn;
    admin_register_e which;
    logic [63:0] data;               // writes
  } admin_access_t;

  // cpu -> host_admin_rings: what becomes of a function.
  typedef enum logic [2:0] {
    ADMIN_NONE = 3'd0,
    ADMIN_RELEASE = 3'd1,            // command taken over: the next may be fetched
    ADMIN_RESET = 3'd2,              // starts a function reset
    ADMIN_RESET_DONE = 3'd3,         // everything is destroyed: DISABLED
    ADMIN_FAIL_READ = 3'd4,          // a command could not be read
    ADMIN_FAIL_WRITE = 3'd5          // a completion could not be written
  } admin_order_e;

  typedef struct packed {
    admin_order_e order;
    roci_pkg::fn_t fn;
  } admin_order_t;

  // ------------------------------------------------------------------------- inside the subsystem
  // RAM of the CPU: words of 8 bytes. The admin engine's slots lie at its end, one per function:
  // words 0..7 command, 8..23 input, the rest is the firmware's.
  localparam int unsigned RAM_BYTES = roci_config_pkg::IS_WIDE ? 65536 : 32768;
  localparam int unsigned RAM_WORDS = RAM_BYTES / 8;
  localparam int unsigned RAM_BITS = $clog2(RAM_WORDS);
  localparam int unsigned SLOT_WORDS_LOG2 = 5;
  localparam int unsigned SLOT_INPUT_WORD = 8;
  localparam int unsigned SLOT_INPUT_BYTES = 128;
  typedef logic [RAM_BITS-1:0] ram_addr_t;

  // First word of a function's slot.
  function automatic ram_addr_t slot_address(input roci_pkg::fn_t fn);
    return ram_addr_t'(RAM_WORDS - (FNS << SLOT_WORDS_LOG2))
           + (ram_addr_t'(fn) << SLOT_WORDS_LOG2);
  endfunction

  // A copy between host memory and RAM. The host address is a multiple of 8.
  localparam int unsigned COPY_BITS = 11;            // up to 2047 bytes
  typedef struct packed {
    roci_pkg::fn_t fn;
    roci_pkg::addr_t addr;
    ram_addr_t ram;
    logic [COPY_BITS-1:0] bytes;     // 1..; reads: a multiple of 8
  } copy_t;

  // Tag of a write's token: what happens when it is in memory.
  typedef struct packed {
    logic is_completion;             // else a copy of the firmware
    logic raise;
    vector_t irq_vector;
    roci_pkg::fn_t fn;
  } write_tag_t;

  // Accesses of the firmware to registers. Held until done.
  typedef struct packed {
    logic valid;
    logic write;
    logic [5:0] word;                // register number: byte address / 4
    logic [31:0] wdata;
  } reg_req_t;

  // ADMIN_COMPLETE
  typedef struct packed {
    roci_pkg::fn_t fn;
    logic is_error;                  // counted
    logic releases;                  // the function's next command may be fetched
    ram_addr_t ram;                  // of the 32 bytes
  } completion_job_t;

  // Counters of the subsystem, names as in enum `counter`.
  typedef struct packed {
    logic admin_commands;
    logic admin_errors;
    logic function_resets;
  } cpu_counters_t;

endpackage

`default_nettype wire
