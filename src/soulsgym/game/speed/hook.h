/* Inline hooks: the first five bytes of a function become a jump to its replacement. */
#ifndef SOULS_HOOK_H
#define SOULS_HOOK_H

#include <windows.h>

#define HOOK_MAX 32

struct hook {
    unsigned char *body, *relay;
    LONGLONG length;
    void *replacement;
    int function;
    DWORD protection;
};

struct hooks {
    struct hook list[HOOK_MAX];
    int count;
    unsigned installed, failed; /* bits of `function` */
};

/* Plans to hook `name` of a loaded module; none is done where the module does not have it. */
void hook_plan(struct hooks *hooks, const wchar_t *module, const char *name, void *replacement, int function);

/* Carries out the plan while all other threads stand still. `start` is called just before, with them standing. */
void hook_all(struct hooks *hooks, void (*start)(void));

#endif
