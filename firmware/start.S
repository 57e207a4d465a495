# SPDX-License-Identifier: BSD-2-Clause-Patent
#
# Reset vector: stack, zero variables, main. There is no ROM; .data is where it was loaded.
  .section .text.start
  .globl _start
_start:
  la sp, stack_top
  la a0, bss_start
  la a1, bss_end
1:
  bgeu a0, a1, 2f
  sw zero, 0(a0)
  sw zero, 4(a0)
  sw zero, 8(a0)
  sw zero, 12(a0)
  sw zero, 16(a0)
  sw zero, 20(a0)
  sw zero, 24(a0)
  sw zero, 28(a0)
  addi a0, a0, 32
  j 1b
2:
  tail firmware_main
