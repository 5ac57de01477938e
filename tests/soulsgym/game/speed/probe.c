/* A program that looks at its clocks in every way that games do, and writes down what it saw where a test can read it.
 *
 * Its main loop ticks 60 times a second. `hammer` threads ask all clocks all the time and count every step back, also
 * against what another thread was told before. Two threads take naps by Sleep and SleepEx. */
#define INITGUID
#define DIRECTINPUT_VERSION 0x0800
#include <windows.h>
#include <dinput.h>
#include <stdint.h>
#include <stdlib.h>

#include "control.h"

#define HAMMERS 4
#define NAP_MS 50
#define CALLS 200000
#define TOGETHER_MS 250 /* Real tick counts are coarse, and coarser where the machine is busy. */

LONG NTAPI NtQueryPerformanceCounter(LARGE_INTEGER *counter, LARGE_INTEGER *frequency);

__declspec(dllexport) volatile struct {
    int64_t ready, ticks, turns, frequency;
    int64_t counter, tick, tick64, time; /* as the main loop saw them last */
    int64_t back_steps[5];               /* counter, tick, tick64, time, and clocks that come apart */
    int64_t hammered;
    int64_t naps, naps_ex;
    int64_t direct_input; /* result of DirectInput8Create: 0 is good */
    int64_t measure;      /* set to 1 by the test: measure the next time, becomes 0 when done */
    int64_t call_ps;      /* of QueryPerformanceCounter */
    int64_t hang;         /* set to 1 by the test: nothing asks a clock or sleeps any more until it is 0 again */
    int64_t nap_ns;       /* how long one Sleep(1) of the main loop took in real time, at last */
    int64_t control, token; /* set by the test: change the speed all the time through this block, as this owner */
    int64_t changes;
} probe;

static volatile int64_t latest[4];

static int64_t counter_now(void)
{
    LARGE_INTEGER counter;
    QueryPerformanceCounter(&counter);
    return counter.QuadPart;
}

static int64_t real_now(void)
{
    LARGE_INTEGER counter;
    NtQueryPerformanceCounter(&counter, NULL);
    return counter.QuadPart;
}

static int64_t asked(int clock)
{
    switch (clock) {
    case 0: return counter_now();
    case 1: return GetTickCount();
    case 2: return (int64_t)GetTickCount64();
    default: return timeGetTime();
    }
}

static void check(int clock)
{
    int64_t before = __atomic_load_n(&latest[clock], __ATOMIC_SEQ_CST);
    int64_t now = asked(clock);
    if (now < before)
        __atomic_fetch_add(&probe.back_steps[clock], 1, __ATOMIC_RELAXED);
    while (now > before && !__atomic_compare_exchange_n(&latest[clock], &before, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

/* A tick count that was asked for between two looks at the counter lies between them, over all speeds. */
static void check_together(void)
{
    static volatile int64_t offset;
    int64_t before = counter_now() * 1000 / probe.frequency;
    int64_t tick = (int64_t)GetTickCount64();
    int64_t after = counter_now() * 1000 / probe.frequency;
    if (!offset)
        offset = tick - before;
    if (tick - offset < before - TOGETHER_MS || tick - offset > after + TOGETHER_MS)
        __atomic_fetch_add(&probe.back_steps[4], 1, __ATOMIC_RELAXED);
}

static DWORD WINAPI hammer(void *unused)
{
    (void)unused;
    for (;;) {
        for (int clock = 0; clock < 4; clock++)
            check(clock);
        check_together();
        __atomic_fetch_add(&probe.hammered, 1, __ATOMIC_RELAXED);
        if (probe.hammered % 64 == 0)
            Sleep(0);
    }
    return 0;
}

static void wait_while_hanging(void)
{
    while (probe.hang)
        WaitForSingleObject(GetCurrentProcess(), 20);
}

/* Far more changes of speed than another process could ask for. */
static DWORD WINAPI change(void *unused)
{
    static const double speeds[] = { 10.0, 0.0, 3.0, 0.1, 1.0 };
    (void)unused;
    while (!probe.control)
        Sleep(1);
    volatile struct souls_control *control = (void *)probe.control;
    for (struct souls_command command = { .token = (uint64_t)probe.token, .sequence = 1000000 };;) {
        command.sequence++;
        command.speed = speeds[command.sequence % 5];
        command.advance = control->advanced + (command.speed == 0.0 ? 10 : 0);
        command.check = souls_check(&command);
        control->command = command;
        while (control->acknowledged != command.sequence)
            SwitchToThread();
        probe.changes++;
    }
    return 0;
}

static DWORD WINAPI nap(void *extended)
{
    for (;; wait_while_hanging())
        if (extended) {
            SleepEx(NAP_MS, TRUE);
            probe.naps_ex++;
        } else {
            Sleep(NAP_MS);
            probe.naps++;
        }
    return 0;
}

static void measure(void)
{
    int64_t begin = real_now();
    for (int i = 0; i < CALLS; i++)
        counter_now();
    probe.call_ps = (real_now() - begin) * (1000000000000ll / probe.frequency) / CALLS;
    probe.measure = 0;
}

static void look(void)
{
    probe.tick = asked(1);
    probe.tick64 = asked(2);
    probe.time = asked(3);
    probe.turns++;
}

int main(int count, char **arguments)
{
    LARGE_INTEGER frequency;
    void *input = NULL;
    int hammers = count > 1 ? atoi(arguments[1]) : 0;
    QueryPerformanceFrequency(&frequency);
    probe.frequency = frequency.QuadPart;
    probe.direct_input = DirectInput8Create(GetModuleHandleW(NULL), DIRECTINPUT_VERSION, &IID_IDirectInput8W, &input, NULL);
    for (int i = 0; i < hammers; i++)
        CreateThread(NULL, 0, hammer, NULL, 0, NULL);
    CreateThread(NULL, 0, change, NULL, 0, NULL);
    CreateThread(NULL, 0, nap, NULL, 0, NULL);
    CreateThread(NULL, 0, nap, (void *)1, 0, NULL);
    double owed = 0.0;
    int64_t last = counter_now();
    probe.ready = 1;
    for (;;) {
        int64_t now = counter_now();
        owed += (double)(now - last) / (double)probe.frequency;
        last = probe.counter = now;
        for (; owed >= 1.0 / 60.0; owed -= 1.0 / 60.0)
            probe.ticks++;
        look();
        if (probe.measure)
            measure();
        wait_while_hanging();
        int64_t begin = real_now();
        Sleep(1);
        probe.nap_ns = (real_now() - begin) * (1000000000ll / probe.frequency);
    }
}
