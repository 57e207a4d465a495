# SPDX-License-Identifier: BSD-2-Clause-Patent
#
# Reset vector: stack, zero variables, main. There is no ROM; .data is where it was loaded. An image
# covers the whole RAM, zeros included, so after power-on or a new image the variables are zero
# already; a word among them tells if firmware has run in this RAM since.
  .section .bss.ran
ran:
  .skip 4
  .section .text.start
  .globl _start
_start:
  la sp, stack_top
  la a2, ran
  lw a3, 0(a2)
  beqz a3, 2f
  la a0, bss_start
  la a1, bss_end
1:
  sw zero, 0(a0)
  sw zero, 4(a0)
  sw zero, 8(a0)
  sw zero, 12(a0)
  sw zero, 16(a0)
  sw zero, 20(a0)
  sw zero, 24(a0)
  sw zero, 28(a0)
  addi a0, a0, 32
  bltu a0, a1, 1b
2:
  li a3, 1
  sw a3, 0(a2)
  tail firmware_main
