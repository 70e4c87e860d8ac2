/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Pcontrol(level, ...) of x86-64 and aarch64. Other machines use MPI_Pcontrol of pcontrol.cpp.
 *
 * The arguments after the level are known only to the tool that defined the level, and no C
 * function can pass them on. So the code here saves every register that may hold an argument, calls
 * slimpi_pcontrol_enter(level), restores the registers, and jumps to the address that the call
 * returned: the next MPI_Pcontrol. The next MPI_Pcontrol finds registers and stack as the program
 * left them, and returns to the program. */
#if defined(__x86_64__)
#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif
  .text
  .globl MPI_Pcontrol
  .type MPI_Pcontrol, @function
  .p2align 4
MPI_Pcontrol:
  .cfi_startproc
  _CET_ENDBR
  /* 6 integer registers, rax (al: number of vector registers in use), 8 vector registers:
   * 56 + 128 bytes. With the return address that keeps the stack at a multiple of 16. */
  subq $184, %rsp
  .cfi_adjust_cfa_offset 184
  movq %rdi, 128(%rsp)
  movq %rsi, 136(%rsp)
  movq %rdx, 144(%rsp)
  movq %rcx, 152(%rsp)
  movq %r8, 160(%rsp)
  movq %r9, 168(%rsp)
  movq %rax, 176(%rsp)
  movaps %xmm0, (%rsp)
  movaps %xmm1, 16(%rsp)
  movaps %xmm2, 32(%rsp)
  movaps %xmm3, 48(%rsp)
  movaps %xmm4, 64(%rsp)
  movaps %xmm5, 80(%rsp)
  movaps %xmm6, 96(%rsp)
  movaps %xmm7, 112(%rsp)
  call slimpi_pcontrol_enter
  movq %rax, %r11
  movaps (%rsp), %xmm0
  movaps 16(%rsp), %xmm1
  movaps 32(%rsp), %xmm2
  movaps 48(%rsp), %xmm3
  movaps 64(%rsp), %xmm4
  movaps 80(%rsp), %xmm5
  movaps 96(%rsp), %xmm6
  movaps 112(%rsp), %xmm7
  movq 128(%rsp), %rdi
  movq 136(%rsp), %rsi
  movq 144(%rsp), %rdx
  movq 152(%rsp), %rcx
  movq 160(%rsp), %r8
  movq 168(%rsp), %r9
  movq 176(%rsp), %rax
  addq $184, %rsp
  .cfi_adjust_cfa_offset -184
  jmp *%r11
  .cfi_endproc
  .size MPI_Pcontrol, .-MPI_Pcontrol

#elif defined(__aarch64__)
  .text
  .globl MPI_Pcontrol
  .type MPI_Pcontrol, %function
  .p2align 4
MPI_Pcontrol:
  .cfi_startproc
  hint #34 /* bti c; a no-op where there is no branch protection */
  /* Frame record, 8 integer registers, x8, 8 vector registers: 16 + 64 + 16 + 128 bytes. */
  stp x29, x30, [sp, #-224]!
  .cfi_adjust_cfa_offset 224
  .cfi_rel_offset x29, 0
  .cfi_rel_offset x30, 8
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  stp q0, q1, [sp, #96]
  stp q2, q3, [sp, #128]
  stp q4, q5, [sp, #160]
  stp q6, q7, [sp, #192]
  bl slimpi_pcontrol_enter
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldr x8, [sp, #80]
  ldp q0, q1, [sp, #96]
  ldp q2, q3, [sp, #128]
  ldp q4, q5, [sp, #160]
  ldp q6, q7, [sp, #192]
  ldp x29, x30, [sp], #224
  .cfi_restore x29
  .cfi_restore x30
  .cfi_adjust_cfa_offset -224
  br x16
  .cfi_endproc
  .size MPI_Pcontrol, .-MPI_Pcontrol
#endif
  .section .note.GNU-stack,"",%progbits
