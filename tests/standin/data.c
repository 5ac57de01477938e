/* The movesets, byte by byte as our own packages pack them. */
#include "game.h"

__asm__(".section .rdata,\"dr\"\n.balign 16\n"
        ".globl tables_iudex\ntables_iudex:\n.incbin \"iudex.bin\"\n.balign 16\n"
        ".globl tables_vordt\ntables_vordt:\n.incbin \"vordt.bin\"\n"
        ".section .text\n");
