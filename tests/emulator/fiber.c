/*
 * Switches stacks: in a few instructions on architectures where the kernel's many switches would
 * otherwise dominate the time (swapcontext calls the system for the signal mask each time), and
 * with ucontext elsewhere.
 */
#include "fiber.h"

#include <stdint.h>

#if defined(__x86_64__)

/* Saves the callee-saved registers of the System V ABI (rbx, rbp, r12 to r15), and the stack
 * pointer in *from. */
void emu_fiber_exchange(void **from, void *to);
__asm__(".text\n"
        ".globl emu_fiber_exchange\n"
        ".type emu_fiber_exchange, @function\n"
        "emu_fiber_exchange:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size emu_fiber_exchange, . - emu_fiber_exchange\n");

void emu_fiber_init(emu_fiber *fiber, void *stack, size_t bytes, void (*start)(void))
{
    void **top = (void **)((char *)stack + bytes) - 8;
    top[6] = (void *)(uintptr_t)start; /* return address of the first exchange */
    top[7] = NULL;                     /* return address of `start`, which never returns */
    for (int i = 0; i < 6; i++)
        top[i] = NULL;
    fiber->top = top;
}

void emu_fiber_switch(emu_fiber *from, emu_fiber *to)
{
    emu_fiber_exchange(&from->top, to->top);
}

#else

void emu_fiber_init(emu_fiber *fiber, void *stack, size_t bytes, void (*start)(void))
{
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = bytes;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, start, 0);
}

void emu_fiber_switch(emu_fiber *from, emu_fiber *to)
{
    swapcontext(&from->context, &to->context);
}

#endif
