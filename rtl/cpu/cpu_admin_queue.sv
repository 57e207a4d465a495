// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_admin_queue: brings admin commands to the firmware and its answers back to the host.
//
// Fetch: takes the next command from host_admin_rings (which goes round robin), copies its 64 bytes and
// then its input buffer, if the length is one that a command can have, into the function's slot in RAM,
// and marks the function as ready. The firmware takes ready functions round robin. A function has one
// command here at a time: the next one comes when the firmware releases it, at completion or before
// (a command that waits does not block others, hwif/admin.toml).
// Completion: a job of the firmware gets its place in the ring, the 32 bytes are written with the phase
// bit, and when they are in memory the interrupt is raised, if the ring wants one. A completion for a
// function that is not enabled any more is dropped.
//
// Bus errors stop the function's queue (ERROR); a function that is being reset gets nothing more here,
// and the end of its reset waits for a fetch that is under way.
// Neighbours: host_admin_rings, cpu_host_read, cpu_host_write, cpu_registers, host_interrupt.
`default_nettype none

module cpu_admin_queue (
  input  wire                            clk_i,
  input  wire                            rst_i,

  // host_admin_rings
  input  wire                            fetch_valid_i,
  output logic                           fetch_ready_o,
  input  wire cpu_pkg::admin_fetch_t     fetch_i,
  output logic                           place_valid_o,
  input  wire                            place_ready_i,
  output roci_pkg::fn_t                  place_fn_o,
  input  wire                            place_done_i,
  input  wire cpu_pkg::admin_place_t     place_i,
  output logic                           order_valid_o,
  input  wire                            order_ready_i,
  output cpu_pkg::admin_order_t          order_o,
  input  wire [cpu_pkg::FNS-1:0]         resetting_i,

  // firmware
  output logic                           ready_valid_o,     // a command waits
  output roci_pkg::fn_t                  ready_fn_o,        // of this function
  output logic                           ready_input_o,     // its input is in the slot
  output logic                           ready_error_o,     // its input could not be read
  input  wire                            ready_take_i,
  input  wire                            job_valid_i,       // completion
  output logic                           job_ready_o,
  input  wire cpu_pkg::completion_job_t  job_i,
  input  wire                            command_valid_i,   // RELEASE, RESET, RESET_DONE
  output logic                           command_ready_o,
  input  wire cpu_pkg::admin_order_t     command_i,

  // cpu_host_read, user 0
  output logic                           read_valid_o,
  input  wire                            read_ready_i,
  output cpu_pkg::copy_t                 read_o,
  input  wire                            read_done_i,
  input  wire                            read_error_i,
  input  wire                            snoop_valid_i,
  input  wire [cpu_pkg::COPY_BITS-4:0]   snoop_word_i,
  input  wire [63:0]                     snoop_data_i,

  // cpu_host_write, user 0
  output logic                           write_valid_o,
  input  wire                            write_ready_i,
  output cpu_pkg::copy_t                 write_o,
  output cpu_pkg::write_tag_t            write_tag_o,
  output logic                           write_phase_o,
  input  wire                            write_busy_i,

  // tokens of host_dma_write: completions are done here, copies told to cpu_registers
  input  wire                            token_valid_i,
  output logic                           token_ready_o,
  input  wire roci_pkg::token_t          token_i,
  output logic                           copy_done_o,       // pulse: the firmware's copy is done
  output logic                           copy_error_o,      // with it

  output logic                           irq_valid_o,
  input  wire                            irq_ready_i,
  output cpu_pkg::irq_raise_t            irq_o,

  output cpu_pkg::cpu_counters_t         count_o,           // pulses
  output logic                           active_o           // commands are not answered yet
);

  // who gets the one order register in this cycle (see below)
  logic order_free, order_fail_take, order_fetch_take, order_release_take;

  // ------------------------------------------------------------------------------------------- fetch
  typedef enum logic [2:0] {
    FETCH_IDLE, FETCH_COMMAND, FETCH_COMMAND_WAIT, FETCH_INPUT, FETCH_INPUT_WAIT, FETCH_FAILED
  } fetch_e;

  fetch_e fetch_q;
  roci_pkg::fn_t fn_q;
  roci_pkg::addr_t addr_q;                     // of the command, then of the input
  logic [31:0] input_length_q;
  logic input_wanted_q;
  logic fetched, fetched_input, fetched_error; // a function becomes ready
  logic fetch_dropped;                         // its function is being reset

  assign fetch_ready_o = fetch_q == FETCH_IDLE;
  assign fetch_dropped = resetting_i[fn_q];
  assign read_valid_o = fetch_q == FETCH_COMMAND || (fetch_q == FETCH_INPUT && input_wanted_q);

  always_comb begin
    read_o = '{fn: fn_q, addr: addr_q, ram: cpu_pkg::slot_address(fn_q),
               bytes: cpu_pkg::COPY_BITS'(64)};
    if (fetch_q == FETCH_INPUT) begin
      read_o.ram = cpu_pkg::slot_address(fn_q) + cpu_pkg::ram_addr_t'(cpu_pkg::SLOT_INPUT_WORD);
      read_o.bytes = cpu_pkg::COPY_BITS'(input_length_q);
    end
    fetched_input = fetch_q == FETCH_INPUT_WAIT && read_done_i && !read_error_i;
    fetched_error = fetch_q == FETCH_INPUT_WAIT && read_done_i && read_error_i;
    fetched = fetched_input || fetched_error || (fetch_q == FETCH_INPUT && !input_wanted_q);
  end

  always_ff @(posedge clk_i) begin
    // Settled long before the last word of the command is there. Other lengths are those of no
    // command: the firmware refuses them.
    input_wanted_q <= input_length_q != '0 && input_length_q[2:0] == '0
                      && input_length_q <= 32'(cpu_pkg::SLOT_INPUT_BYTES)
                      && addr_q[2:0] == '0;
    if (fetch_q == FETCH_IDLE) begin
      fn_q <= fetch_i.fn;
      addr_q <= fetch_i.addr;
    end else if (fetch_q == FETCH_COMMAND_WAIT && snoop_valid_i) begin
      if (snoop_word_i[2:0] == 3'd1) addr_q <= snoop_data_i;
      if (snoop_word_i[2:0] == 3'd3) input_length_q <= snoop_data_i[31:0];
    end
    if (rst_i) begin
      fetch_q <= FETCH_IDLE;
    end else begin
      unique case (fetch_q)
        FETCH_IDLE: if (fetch_valid_i) fetch_q <= FETCH_COMMAND;
        FETCH_COMMAND: if (read_ready_i) fetch_q <= FETCH_COMMAND_WAIT;
        FETCH_COMMAND_WAIT: begin
          if (read_done_i) begin
            if (fetch_dropped) fetch_q <= FETCH_IDLE;
            else fetch_q <= read_error_i ? FETCH_FAILED : FETCH_INPUT;
          end
        end
        FETCH_INPUT: begin
          if (!input_wanted_q) fetch_q <= FETCH_IDLE;
          else if (read_ready_i) fetch_q <= FETCH_INPUT_WAIT;
        end
        FETCH_INPUT_WAIT: if (read_done_i) fetch_q <= FETCH_IDLE;
        default: if (order_fetch_take) fetch_q <= FETCH_IDLE;     // FETCH_FAILED
      endcase
    end
  end

  // ------------------------------------------------------------------------------------------- ready
  logic [cpu_pkg::FNS-1:0] ready_q, input_q, input_error_q;
  logic [cpu_pkg::FNS-1:0] ready_d;
  roci_pkg::fn_t turn_q;                       // last function that was taken

  always_comb begin
    ready_d = ready_q;
    if (ready_take_i) ready_d[ready_fn_o] = 1'b0;
    if (fetched) ready_d[fn_q] = 1'b1;
    ready_d = ready_d & ~resetting_i;
  end

  always_comb begin
    ready_fn_o = turn_q;
    for (int unsigned n = cpu_pkg::FNS; n > 0; n--) begin
      automatic roci_pkg::fn_t candidate = turn_q + roci_pkg::fn_t'(n);
      if (ready_q[candidate]) ready_fn_o = candidate;
    end
  end

  assign ready_valid_o = ready_q != '0;
  assign ready_input_o = input_q[ready_fn_o];
  assign ready_error_o = input_error_q[ready_fn_o];

  always_ff @(posedge clk_i) begin
    if (fetched) begin
      input_q[fn_q] <= fetched_input;
      input_error_q[fn_q] <= fetched_error;
    end
    if (rst_i) begin
      ready_q <= '0;
      turn_q <= '0;
    end else begin
      ready_q <= ready_d;
      if (ready_take_i) turn_q <= ready_fn_o;
    end
  end

  // -------------------------------------------------------------------------------------- completion
  typedef enum logic [2:0] {JOB_IDLE, JOB_PLACE, JOB_PLACE_WAIT, JOB_WRITE, JOB_BUSY, JOB_RELEASE}
    job_e;

  job_e job_q;
  logic job_valid, job_take, reset_done;
  cpu_pkg::completion_job_t job, job_info_q;
  logic [3:0] written_q;                       // completions whose token has not come
  logic written, told;
  cpu_pkg::admin_place_t place_q;

  common_fifo #(.WIDTH($bits(cpu_pkg::completion_job_t)), .DEPTH(4), .STYLE("distributed")) u_jobs (
    .clk_i, .rst_i, .in_valid_i(job_valid_i), .in_ready_o(job_ready_o), .in_i(job_i),
    .out_valid_o(job_valid), .out_ready_i(job_q == JOB_IDLE), .out_o(job), .usage_o()
  );

  assign job_take = job_q == JOB_IDLE && job_valid;
  assign reset_done = command_valid_i && command_ready_o
                      && command_i.order == cpu_pkg::ADMIN_RESET_DONE;
  assign place_valid_o = job_q == JOB_PLACE;
  assign place_fn_o = job_info_q.fn;
  assign write_valid_o = job_q == JOB_WRITE && written_q != '1;
  assign write_o = '{fn: job_info_q.fn, addr: place_q.addr, ram: job_info_q.ram,
                     bytes: cpu_pkg::COPY_BITS'(roci_hwif_pkg::ADMIN_COMPLETION_BYTES)};
  assign write_tag_o = '{is_completion: 1'b1, raise: place_q.raise,
                         irq_vector: place_q.irq_vector, fn: job_info_q.fn};
  assign write_phase_o = place_q.phase;
  assign written = write_valid_o && write_ready_i;

  always_ff @(posedge clk_i) begin
    if (job_q == JOB_IDLE) job_info_q <= job;
    if (place_done_i) place_q <= place_i;
    if (rst_i) begin
      job_q <= JOB_IDLE;
      written_q <= '0;
      count_o <= '0;
    end else begin
      if (written != told) written_q <= written ? written_q + 1'b1 : written_q - 1'b1;
      unique case (job_q)
        JOB_IDLE: if (job_valid) job_q <= JOB_PLACE;
        JOB_PLACE: if (place_ready_i) job_q <= JOB_PLACE_WAIT;
        JOB_PLACE_WAIT: begin
          if (place_done_i) begin
            if (!place_i.drop) job_q <= JOB_WRITE;
            else job_q <= job_info_q.releases ? JOB_RELEASE : JOB_IDLE;
          end
        end
        JOB_WRITE: if (written) job_q <= JOB_BUSY;
        JOB_BUSY: begin
          // Its RAM words are read: the firmware may use them again when the next command comes.
          if (!write_busy_i) job_q <= job_info_q.releases ? JOB_RELEASE : JOB_IDLE;
        end
        default: if (order_release_take) job_q <= JOB_IDLE;       // JOB_RELEASE
      endcase
      count_o.admin_commands <= job_take;
      count_o.admin_errors <= job_take && job.is_error;
      count_o.function_resets <= reset_done;
    end
  end

  // --------------------------------------------------------------------------------- not answered yet
  // Commands per function that the firmware has or will have: one that it may take, those that wait
  // released, and those of the FIFO. A function's reset forgets what is left.
  typedef logic [2:0] commands_t;
  commands_t [cpu_pkg::FNS-1:0] commands_q;

  assign active_o = commands_q != '0 || fetch_q != FETCH_IDLE || fetch_valid_i;

  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < cpu_pkg::FNS; n++) begin
      automatic logic comes = fetched && fn_q == roci_pkg::fn_t'(n);
      automatic logic goes = job_take && job.fn == roci_pkg::fn_t'(n);
      if (rst_i || (reset_done && command_i.fn == roci_pkg::fn_t'(n))) begin
        commands_q[n] <= '0;
      end else if (comes != goes) begin
        commands_q[n] <= comes ? commands_q[n] + 1'b1 : commands_q[n] - 1'b1;
        assert (comes ? commands_q[n] != '1 : commands_q[n] != '0)
        else $error("cpu_admin_queue: answers and commands do not match");
      end
    end
  end

  // ------------------------------------------------------------------------------------------ tokens
  cpu_pkg::write_tag_t tag;
  logic irq_valid_q, fail_valid_q;
  cpu_pkg::irq_raise_t irq_q;
  roci_pkg::fn_t fail_fn_q;

  assign tag = cpu_pkg::write_tag_t'(token_i.body[$bits(cpu_pkg::write_tag_t)-1:0]);
  assign token_ready_o = !irq_valid_q && !fail_valid_q;
  assign told = token_valid_i && token_ready_o && tag.is_completion;
  assign copy_done_o = token_valid_i && token_ready_o && !tag.is_completion;
  assign copy_error_o = token_i.error;
  assign irq_valid_o = irq_valid_q;
  assign irq_o = irq_q;

  always_ff @(posedge clk_i) begin
    if (token_ready_o) begin
      irq_q <= '{fn: tag.fn, irq_vector: tag.irq_vector};
      fail_fn_q <= tag.fn;
    end
    if (rst_i) begin
      irq_valid_q <= 1'b0;
      fail_valid_q <= 1'b0;
    end else begin
      if (irq_ready_i) irq_valid_q <= 1'b0;
      if (order_fail_take) fail_valid_q <= 1'b0;
      if (told) begin
        irq_valid_q <= tag.raise && !token_i.error;
        fail_valid_q <= token_i.error;
      end
    end
  end

  // ------------------------------------------------------------------------------------------ orders
  // A shown order is kept until it is taken, so the choice is made into a register.
  logic order_valid_q;
  cpu_pkg::admin_order_t order_q;
  logic command_waits;

  // The end of a reset must not overtake a command of before it, which is dropped only until then, nor
  // a completion of before it, whose bus error would be the next client's.
  assign command_waits = command_i.order == cpu_pkg::ADMIN_RESET_DONE
                         && ((fetch_q != FETCH_IDLE && fn_q == command_i.fn)
                             || (fetch_valid_i && fetch_i.fn == command_i.fn)
                             || written_q != '0);
  assign order_free = !order_valid_q || order_ready_i;
  assign order_fail_take = order_free && fail_valid_q;
  assign order_fetch_take = order_free && !fail_valid_q && fetch_q == FETCH_FAILED;
  assign order_release_take = order_free && !fail_valid_q && fetch_q != FETCH_FAILED
                              && job_q == JOB_RELEASE;
  // Releases of completions that were accepted before go first: order as the firmware gave it.
  assign command_ready_o = order_free && !fail_valid_q && fetch_q != FETCH_FAILED
                           && job_q == JOB_IDLE && !job_valid && !command_waits;
  assign order_valid_o = order_valid_q;
  assign order_o = order_q;

  always_ff @(posedge clk_i) begin
    if (order_free) begin
      if (order_fail_take) order_q <= '{order: cpu_pkg::ADMIN_FAIL_WRITE, fn: fail_fn_q};
      else if (order_fetch_take) order_q <= '{order: cpu_pkg::ADMIN_FAIL_READ, fn: fn_q};
      else if (order_release_take) begin
        order_q <= '{order: cpu_pkg::ADMIN_RELEASE, fn: job_info_q.fn};
      end else order_q <= command_i;
    end
    if (rst_i) order_valid_q <= 1'b0;
    else if (order_free) begin
      order_valid_q <= order_fail_take || order_fetch_take || order_release_take
                       || (command_valid_i && command_ready_o);
    end
  end

endmodule

`default_nettype wire
