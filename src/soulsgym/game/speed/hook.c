/* Inline hooks.
 *
 * A patch is a five byte jump to a relay within reach, which jumps on to the replacement. Replacements never call the
 * original, so no instruction has to be moved. Five bytes are short enough that no return address can lie within
 * the patch (the shortest call is as long as it), and most functions are longer. */
#include "hook.h"
#include "native.h"

#include <stdint.h>

#define PATCH 5
#define RELAY 16
#define MAX_THREADS 1024
#define MAX_JUMPS 8
#define ATTEMPTS 200
#define REACH 0x70000000ll

static struct { HANDLE handle; DWORD id; } held[MAX_THREADS];
static int held_count;
static unsigned char *relay_page;
static int relay_used;

static int is_executable(const void *address)
{
    MEMORY_BASIC_INFORMATION info;
    const DWORD executable = PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
    return VirtualQuery(address, &info, sizeof info) && info.State == MEM_COMMIT && (info.Protect & executable);
}

/* Wine begins its functions with `lea rsp, [rsp + 0]`, also where nothing but a jump follows. */
static unsigned char *without_filler(unsigned char *code)
{
    static const unsigned char filler[8] = { 0x48, 0x8D, 0xA4, 0x24, 0, 0, 0, 0 };
    for (int i = 0; i < 8; i++)
        if (code[i] != filler[i])
            return code;
    return code + 8;
}

static unsigned char *jump_target(unsigned char *code)
{
    code = without_filler(code);
    if (code[0] == 0x48 && code[1] == 0xFF && code[2] == 0x25)
        code++;
    if (code[0] == 0xFF && code[1] == 0x25)
        return *(unsigned char **)(code + 6 + *(int32_t *)(code + 2));
    if (code[0] == 0xE9)
        return code + 5 + *(int32_t *)(code + 1);
    if (code[0] == 0xEB)
        return code + 2 + (signed char)code[1];
    return NULL;
}

static unsigned char *real_body(unsigned char *code)
{
    for (int i = 0; i < MAX_JUMPS; i++) {
        unsigned char *next = jump_target(code);
        if (!next || !is_executable(next))
            break;
        code = next;
    }
    return code;
}

/* How long a function is. Without unwind data it may be shorter than the patch: then a byte that can end one makes it
 * unsafe, and it counts as empty. */
static int64_t length_of(unsigned char *body)
{
    DWORD64 base = 0;
    const RUNTIME_FUNCTION *entry = RtlLookupFunctionEntry((DWORD64)body, &base, NULL);
    if (entry)
        return (DWORD64)body - base == entry->BeginAddress ? entry->EndAddress - entry->BeginAddress : 0;
    for (int i = 0; i < PATCH; i++)
        if (body[i] == 0xC3 || body[i] == 0xC2 || body[i] == 0xCC)
            return 0;
    return PATCH;
}

static int is_in_reach(const unsigned char *body, const unsigned char *relay)
{
    int64_t distance = relay - body;
    return distance > -REACH && distance < REACH;
}

static unsigned char *allocated_near(unsigned char *body)
{
    for (int64_t step = 0x10000; step < REACH; step += 0x10000)
        for (int side = -1; side <= 1; side += 2) {
            uintptr_t wanted = ((uintptr_t)body & ~(uintptr_t)0xFFFF) + (uintptr_t)(side * step);
            MEMORY_BASIC_INFORMATION info;
            if (wanted < 0x10000 || wanted > 0x7FFFFFFF0000u)
                continue;
            if (!VirtualQuery((void *)wanted, &info, sizeof info) || info.State != MEM_FREE)
                continue;
            void *page = VirtualAlloc((void *)wanted, 0x1000, MEM_COMMIT | MEM_RESERVE, PAGE_EXECUTE_READWRITE);
            if (page && is_in_reach(body, page))
                return page;
            if (page)
                VirtualFree(page, 0, MEM_RELEASE);
        }
    return NULL;
}

static unsigned char *new_relay(unsigned char *body, void *replacement)
{
    static const unsigned char jump[6] = { 0xFF, 0x25, 0, 0, 0, 0 };
    if (!relay_page || !is_in_reach(body, relay_page) || relay_used + RELAY > 0x1000) {
        unsigned char *page = allocated_near(body);
        if (!page)
            return NULL;
        relay_page = page;
        relay_used = 0;
    }
    unsigned char *relay = relay_page + relay_used;
    relay_used += RELAY;
    for (int i = 0; i < 6; i++)
        relay[i] = jump[i];
    *(void **)(relay + 6) = replacement;
    return relay;
}

enum overlap { APART, SAME, CLASH };

static enum overlap overlap_of(const struct hooks *hooks, const unsigned char *body, const void *replacement)
{
    for (int i = 0; i < hooks->count; i++) {
        int64_t distance = body - hooks->list[i].body;
        if (distance == 0)
            return hooks->list[i].replacement == replacement ? SAME : CLASH;
        if (distance > -PATCH && distance < PATCH)
            return CLASH;
    }
    return APART;
}

void hook_plan(struct hooks *hooks, const wchar_t *module, const char *name, void *replacement, int function)
{
    HMODULE loaded = GetModuleHandleW(module);
    unsigned char *code = loaded ? (unsigned char *)(void *)GetProcAddress(loaded, name) : NULL;
    if (!code)
        return;
    unsigned char *body = real_body(code);
    enum overlap overlap = overlap_of(hooks, body, replacement);
    if (overlap == SAME)
        return;
    int64_t length = length_of(body);
    struct hook *hook = &hooks->list[hooks->count];
    unsigned char *relay = NULL;
    if (overlap == APART && hooks->count < HOOK_MAX && is_executable(body) && length >= PATCH)
        relay = new_relay(body, replacement);
    if (!relay || !VirtualProtect(body, PATCH, PAGE_EXECUTE_READWRITE, &hook->protection)) {
        hooks->failed |= 1u << function;
        return;
    }
    hook->body = body;
    hook->length = length;
    hook->relay = relay;
    hook->replacement = replacement;
    hook->function = function;
    hooks->count++;
}

static int is_held(DWORD id)
{
    for (int i = 0; i < held_count; i++)
        if (held[i].id == id)
            return 1;
    return 0;
}

static int hold(HANDLE thread)
{
    DWORD id = GetThreadId(thread);
    if (id == GetCurrentThreadId() || held_count == MAX_THREADS || is_held(id))
        return 0;
    if (!NT_SUCCESS(NtSuspendThread(thread, NULL)))
        return 0; /* It has ended. */
    held[held_count].handle = thread;
    held[held_count++].id = id;
    return 1;
}

/* Heap and loader may be locked by a thread that stands still: nothing here asks them for anything. */
static int hold_new_threads(void)
{
    const ACCESS_MASK access = THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION;
    int found = 0, keep = 1;
    HANDLE last = NULL, next;
    while (NT_SUCCESS(NtGetNextThread(GetCurrentProcess(), last, access, 0, 0, &next))) {
        if (!keep)
            NtClose(last);
        last = next;
        keep = hold(next);
        found |= keep;
    }
    if (!keep)
        NtClose(last);
    return found;
}

static void release_threads(void)
{
    for (int i = 0; i < held_count; i++) {
        NtResumeThread(held[i].handle, NULL);
        NtClose(held[i].handle);
    }
    held_count = 0;
}

/* A thread on its way through a function would not find its next instruction, or would still answer with the real clock
 * after others were given the virtual one. Asking for the context also waits until the thread really stands. */
static int is_any_inside(const struct hooks *hooks)
{
    static CONTEXT context __attribute__((aligned(16)));
    for (int i = 0; i < held_count; i++) {
        context.ContextFlags = CONTEXT_CONTROL;
        if (!NT_SUCCESS(NtGetContextThread(held[i].handle, &context)))
            continue; /* It has ended. */
        for (int j = 0; j < hooks->count; j++) {
            int64_t distance = (int64_t)context.Rip - (int64_t)hooks->list[j].body;
            if (distance >= 0 && distance < hooks->list[j].length)
                return 1;
        }
    }
    return 0;
}

static int hold_threads(const struct hooks *hooks)
{
    LARGE_INTEGER pause = { .QuadPart = -10000 };
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        while (hold_new_threads())
            ;
        if (!is_any_inside(hooks))
            return 1;
        release_threads();
        NtDelayExecution(FALSE, &pause);
    }
    return 0;
}

static void write_patch(const struct hook *hook)
{
    int32_t distance = (int32_t)(hook->relay - (hook->body + PATCH));
    const unsigned char *bytes = (const unsigned char *)&distance;
    hook->body[0] = 0xE9;
    for (int i = 0; i < 4; i++)
        hook->body[1 + i] = bytes[i];
}

void hook_all(struct hooks *hooks, void (*start)(void))
{
    int still = hold_threads(hooks);
    start();
    for (int i = 0; i < hooks->count; i++) {
        if (still)
            write_patch(&hooks->list[i]);
        *(still ? &hooks->installed : &hooks->failed) |= 1u << hooks->list[i].function;
    }
    release_threads();
    for (int i = hooks->count - 1; i >= 0; i--) { /* Backwards, as several hooks may share a page. */
        DWORD ignored;
        VirtualProtect(hooks->list[i].body, PATCH, hooks->list[i].protection, &ignored);
        FlushInstructionCache(GetCurrentProcess(), hooks->list[i].body, PATCH);
    }
}
