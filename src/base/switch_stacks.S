/* SPDX-License-Identifier: BSD-3-Clause */
/* The change between the stacks of a thread and of a fiber (fiber.cpp), without the system calls of
 * swapcontext(), which also sets the signal mask. Only registers that a called function must keep
 * are saved, and the control registers of the floating-point units.
 *
 * slimpi_make_stack(end, function, argument) returns the stack pointer to which
 * slimpi_switch_stacks() changes to begin function(argument), which must not return.
 * slimpi_switch_stacks(from, to) stores the stack pointer of its caller at *from, and returns to
 * the caller that has stored `to`.
 * slimpi_call_on_stack(stack, function, argument) calls the function on another stack. Exceptions
 * pass through it, because the unwinder finds the caller by the frame pointer. */
#if defined(__x86_64__)
  .text
  .globl slimpi_make_stack
  .hidden slimpi_make_stack
  .type slimpi_make_stack, @function
  .p2align 4
slimpi_make_stack:
  .cfi_startproc
  leaq -64(%rdi), %rax
  stmxcsr (%rax)
  fnstcw 4(%rax)
  movq $0, 8(%rax)     /* r15 */
  movq $0, 16(%rax)    /* r14 */
  movq %rdx, 24(%rax)  /* r13 */
  movq %rsi, 32(%rax)  /* r12 */
  movq $0, 40(%rax)    /* rbx */
  movq $0, 48(%rax)    /* rbp */
  leaq begin(%rip), %rcx
  movq %rcx, 56(%rax)
  ret
  .cfi_endproc
  .size slimpi_make_stack, .-slimpi_make_stack

  .type begin, @function
begin:
  .cfi_startproc
  .cfi_undefined rip
  movq %r13, %rdi
  call *%r12
  ud2
  .cfi_endproc
  .size begin, .-begin

  .globl slimpi_switch_stacks
  .hidden slimpi_switch_stacks
  .type slimpi_switch_stacks, @function
  .p2align 4
slimpi_switch_stacks:
  .cfi_startproc
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  pushq %r12
  .cfi_adjust_cfa_offset 8
  pushq %r13
  .cfi_adjust_cfa_offset 8
  pushq %r14
  .cfi_adjust_cfa_offset 8
  pushq %r15
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %r15
  .cfi_adjust_cfa_offset -8
  popq %r14
  .cfi_adjust_cfa_offset -8
  popq %r13
  .cfi_adjust_cfa_offset -8
  popq %r12
  .cfi_adjust_cfa_offset -8
  popq %rbx
  .cfi_adjust_cfa_offset -8
  popq %rbp
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size slimpi_switch_stacks, .-slimpi_switch_stacks

  .globl slimpi_call_on_stack
  .hidden slimpi_call_on_stack
  .type slimpi_call_on_stack, @function
  .p2align 4
slimpi_call_on_stack:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register rbp
  movq %rdi, %rsp
  andq $-16, %rsp
  movq %rdx, %rdi
  call *%rsi
  movq %rbp, %rsp
  popq %rbp
  .cfi_def_cfa rsp, 8
  ret
  .cfi_endproc
  .size slimpi_call_on_stack, .-slimpi_call_on_stack
#elif defined(__aarch64__)
  .text
  .globl slimpi_make_stack
  .hidden slimpi_make_stack
  .type slimpi_make_stack, @function
  .p2align 2
slimpi_make_stack:
  .cfi_startproc
  sub x0, x0, #176
  stp xzr, xzr, [x0]
  stp x1, x2, [x0, #16]  /* x19, x20 */
  mrs x9, fpcr
  mrs x10, fpsr
  stp x9, x10, [x0, #160]
  adr x9, begin
  stp xzr, x9, [x0, #80]  /* x29, x30 */
  ret
  .cfi_endproc
  .size slimpi_make_stack, .-slimpi_make_stack

  .type begin, @function
begin:
  .cfi_startproc
  .cfi_undefined x30
  mov x0, x20
  blr x19
  brk #0
  .cfi_endproc
  .size begin, .-begin

  .globl slimpi_switch_stacks
  .hidden slimpi_switch_stacks
  .type slimpi_switch_stacks, @function
  .p2align 2
slimpi_switch_stacks:
  .cfi_startproc
  sub sp, sp, #176
  .cfi_adjust_cfa_offset 176
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x29, x30, [sp, #80]
  stp x27, x28, [sp]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mrs x9, fpcr
  mrs x10, fpsr
  stp x9, x10, [sp, #160]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x9, x10, [sp, #160]
  msr fpcr, x9
  msr fpsr, x10
  ldp d14, d15, [sp, #144]
  ldp d12, d13, [sp, #128]
  ldp d10, d11, [sp, #112]
  ldp d8, d9, [sp, #96]
  ldp x27, x28, [sp]
  ldp x29, x30, [sp, #80]
  ldp x25, x26, [sp, #64]
  ldp x23, x24, [sp, #48]
  ldp x21, x22, [sp, #32]
  ldp x19, x20, [sp, #16]
  add sp, sp, #176
  .cfi_adjust_cfa_offset -176
  ret
  .cfi_endproc
  .size slimpi_switch_stacks, .-slimpi_switch_stacks

  .globl slimpi_call_on_stack
  .hidden slimpi_call_on_stack
  .type slimpi_call_on_stack, @function
  .p2align 2
slimpi_call_on_stack:
  .cfi_startproc
  stp x29, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset x29, -16
  .cfi_offset x30, -8
  mov x29, sp
  .cfi_def_cfa_register x29
  mov sp, x0
  mov x0, x2
  blr x1
  mov sp, x29
  ldp x29, x30, [sp], #16
  .cfi_def_cfa sp, 0
  .cfi_restore x29
  .cfi_restore x30
  ret
  .cfi_endproc
  .size slimpi_call_on_stack, .-slimpi_call_on_stack
#endif
  .section .note.GNU-stack,"",%progbits
