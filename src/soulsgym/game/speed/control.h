/* The block of memory through which another process controls the clock; clock.py mirrors it. Everything is little endian. */
#ifndef SOULS_CONTROL_H
#define SOULS_CONTROL_H

#include <stdint.h>

#define SOULS_MAGIC "SOULSPD1"
#define SOULS_VERSION 2u
#define SOULS_BEAT_LIMIT_MS 700u
#define SOULS_MAX_SPEED 1000.0
#define SOULS_THREADS 15 /* whose questions are counted apart; those of all others together come last */

enum souls_function {
    SOULS_COUNTER, /* QueryPerformanceCounter */
    SOULS_TICK,    /* GetTickCount */
    SOULS_TICK64,  /* GetTickCount64 */
    SOULS_TIME,    /* timeGetTime */
    SOULS_SLEEP,   /* Sleep */
    SOULS_SLEEP_EX,
    SOULS_FUNCTIONS
};

#define SOULS_LET_GO 1u    /* flag of a command: nobody controls the clock from then on */
#define SOULS_RUN 2u       /* flag of a command: the clock runs for the time in the flags' upper bits, and then stands */
#define SOULS_RUN_SHIFT 8

/* Written by the controller in one piece. It may be seen half written: `check` tells, see souls_check(). */
struct souls_command {
    uint64_t token;    /* of the owner */
    uint64_t sequence; /* rises with every command */
    double speed;
    int64_t advance; /* sum of all advances since the library was loaded, in units of the counter */
    uint64_t flags;
    uint64_t check;
};

struct souls_control {
    /* Written once by the library, the magic last. */
    char magic[8];
    uint32_t version, size;
    int64_t frequency;            /* of QueryPerformanceCounter */
    uint32_t installed, failed;   /* functions that are hooked, that could not be: one bit each */
    uint32_t limit_ms;            /* without a beat for so long in real time the game returns to speed 1; the owner may change it */
    uint32_t reserved[7];

    /* Written by the controller. */
    uint64_t claim; /* token of who wants to be the owner; the library alone decides */
    uint64_t beat;  /* changes while the owner lives */
    struct souls_command command;

    /* Written by the library; `acknowledged` after all that the command changed. */
    uint64_t owner;
    uint64_t acknowledged; /* sequence of the last command that was carried out */
    double speed;
    int64_t advanced;
    int64_t virtual_counter, real_counter; /* as of the last command or turn of the watch */
    uint64_t lapses;
    uint64_t turns; /* of the watch */

    uint64_t refused; /* sequence of the last command that was not possible */
    uint64_t calls[SOULS_FUNCTIONS];
    uint64_t reserved_end;

    /* QueryPerformanceCounter by thread, in the order in which they first asked. */
    struct { uint64_t id, calls; } threads[SOULS_THREADS + 1];
};

_Static_assert(sizeof(struct souls_control) == 512, "clock.py mirrors this layout");

static inline uint64_t souls_mixed(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x9E3779B97F4A7C15u + 1;
}

static inline uint64_t souls_check(const struct souls_command *command)
{
    union { double number; uint64_t bits; } speed = { .number = command->speed };
    uint64_t sum = souls_mixed(0, command->token);
    sum = souls_mixed(sum, command->sequence);
    sum = souls_mixed(sum, speed.bits);
    sum = souls_mixed(sum, (uint64_t)command->advance);
    return souls_mixed(sum, command->flags);
}

#endif
