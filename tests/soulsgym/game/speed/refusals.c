/* Functions of which some cannot be hooked safely, and what hook.c does with each. */
#include "hook.h"

#include <stdio.h>

#define EXPORTED __declspec(dllexport)

EXPORTED __attribute__((noinline)) int plain(void)
{
    volatile int result = 1;
    return result + 1;
}

/* `jumps` and `shared` are other names for `plain`; `inner` lies within the patch of `outer`; `tiny` and `told` are
 * shorter than a patch, which unwind data tell of the second only. */
__asm__(".globl jumps, shared, outer, inner, tiny, told\n"
        "jumps: jmp plain\n"
        "shared: jmp jumps\n"
        ".balign 16, 0x90\n"
        "outer: movl $5, %eax\n"
        ".byte 0x90, 0x90, 0x90, 0x90, 0x90\n"
        "ret\n"
        ".set inner, outer + 3\n"
        ".balign 16, 0xCC\n"
        "tiny: xorl %eax, %eax\n"
        "ret\n"
        ".balign 16, 0x90\n"
        ".seh_proc told\n"
        "told: .seh_endprologue\n"
        "pushq $7\n"
        "popq %rax\n"
        "ret\n"
        ".seh_endproc\n"
        ".balign 16, 0x90\n"
        ".section .drectve\n"
        ".ascii \" -export:jumps -export:shared -export:outer -export:inner -export:tiny -export:told\"\n"
        ".text\n");

int jumps(void), outer(void), told(void);

static int three(void) { return 3; }
static int nine(void) { return 9; }
static void nothing(void) {}

int main(void)
{
    static const char *const names[] = { "plain", "jumps", "shared", "outer", "inner", "tiny", "told", "absent" };
    static struct hooks hooks;
    for (int i = 0; i < 8; i++)
        hook_plan(&hooks, L"refusals.exe", names[i], i < 2 ? (void *)three : (void *)nine, i);
    hook_all(&hooks, nothing);
    /* What leads to a body that is hooked already is hooked with it. */
    unsigned hooked = hooks.installed | (hooks.installed & 1u) << 1;
    for (int i = 0; i < 8; i++)
        printf("%s=%s ", names[i], hooks.failed >> i & 1 ? "refused" : hooked >> i & 1 ? "hooked" : "left");
    printf("calls=%d,%d,%d,%d\n", plain(), jumps(), outer(), told());
    return 0;
}
