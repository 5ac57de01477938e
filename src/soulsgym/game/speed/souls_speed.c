/* souls_speed.dll: the clock of the game it is loaded into runs at the speed that another process asks for.
 *
 * All clock functions are derived from one virtual counter:
 *     virtual = base_virtual + rate * (sample - base_real)
 * of one sample of the real counter. Whoever changes base and rate takes a sample of its own while readers are locked
 * out, so no reader can have taken a later one with the old values: time never runs back, over all functions and
 * threads. At rate 0 there is nothing to sample, and the clock stands exactly until it is advanced. */
#include "control.h"
#include "hook.h"
#include "native.h"

#define RATE_BITS 32
#define WATCH_OWNED_US 2000
#define WATCH_FREE_US 10000
#define FROZEN_SLEEP_MS 4     /* Longest Sleep while the clock stands: loops that sleep keep on handling messages. */
#define RUNNING_SLICE_US 2000 /* A change of speed is noticed within a long Sleep after so long. */
#define FREE_SLICE_US 50000
#define ALERTABLE_SLICE_US 300 /* Each is a request to Wine's server, which serves others too. */
#define TIMER_100NS 5000

__declspec(dllexport) volatile struct souls_control souls_control = { .size = sizeof(struct souls_control) };

/* Base of the virtual counter, between an odd and the next even `generation` in change. */
static volatile LONG generation;
static volatile LONG changing;
static int64_t base_virtual, base_real, rate;
static int64_t stop_virtual = INT64_MAX; /* The clock stands when it gets there. */

static int64_t real_frequency;
static int64_t tick_offset, time_offset; /* ms between the counter and the other clocks */
static volatile uint64_t seen;         /* sequence of the last command that was looked at */
static volatile int64_t last_command;  /* when, by the real counter */
static DWORD noticed = TLS_OUT_OF_INDEXES; /* per thread: how far the clock was advanced when its last Sleep ended */
static DWORD asking = TLS_OUT_OF_INDEXES;  /* per thread: its row in souls_control.threads, from 1 on */

static int64_t real_now(void)
{
    LARGE_INTEGER counter;
    NtQueryPerformanceCounter(&counter, NULL);
    return counter.QuadPart;
}

static LONG delay_us(int64_t us, BOOLEAN alertable)
{
    LARGE_INTEGER interval = { .QuadPart = -10 * us };
    return NtDelayExecution(alertable, &interval);
}

static int64_t us_of(int64_t real)
{
    return real / real_frequency * 1000000 + real % real_frequency * 1000000 / real_frequency;
}

static int64_t ms_of(int64_t counter)
{
    int64_t frequency = souls_control.frequency;
    return counter / frequency * 1000 + counter % frequency * 1000 / frequency;
}

/* Integers only: a game may have floating point exceptions switched on. */
static int64_t virtual_at(int64_t sample)
{
    int64_t passed = sample - base_real;
    if (passed <= 0)
        return base_virtual;
    int64_t now = base_virtual + (int64_t)(((__int128)passed * rate) >> RATE_BITS);
    return now < stop_virtual ? now : stop_virtual;
}

static void back_off(unsigned turn)
{
    if (turn < 64)
        YieldProcessor();
    else if (turn < 128)
        NtYieldExecution();
    else
        delay_us(50, FALSE);
}

static int64_t virtual_now(void)
{
    for (unsigned turn = 0;; turn++) {
        LONG before = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
        if (!(before & 1)) {
            int64_t now = __atomic_load_n(&rate, __ATOMIC_RELAXED) ? virtual_at(real_now()) : base_virtual;
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            if (__atomic_load_n(&generation, __ATOMIC_RELAXED) == before)
                return now;
        }
        back_off(turn);
    }
}

static int try_change(void)
{
    return __atomic_exchange_n(&changing, 1, __ATOMIC_ACQUIRE) == 0;
}

static void end_change(void)
{
    __atomic_store_n(&changing, 0, __ATOMIC_RELEASE);
}

/* Only between try_change() and end_change(). A `run` other than 0 ends by itself after so much virtual time. */
static void rebase(double speed, int64_t advance, int64_t run)
{
    __atomic_fetch_add(&generation, 1, __ATOMIC_SEQ_CST);
    int64_t sample = real_now();
    base_virtual = virtual_at(sample) + advance;
    base_real = sample;
    stop_virtual = run ? base_virtual + run : INT64_MAX;
    rate = (int64_t)(speed * (double)souls_control.frequency / (double)real_frequency * (double)(1ll << RATE_BITS));
    souls_control.speed = speed;
    souls_control.advanced += advance;
    souls_control.virtual_counter = base_virtual;
    souls_control.real_counter = sample;
    last_command = sample;
    __atomic_fetch_add(&generation, 1, __ATOMIC_SEQ_CST);
}

static void carry_out(const struct souls_command *command)
{
    seen = command->sequence;
    if (!souls_control.owner || command->token != souls_control.owner)
        return;
    int64_t advance = command->advance - souls_control.advanced;
    if (advance < 0 || !(command->speed >= 0.0 && command->speed <= SOULS_MAX_SPEED)) {
        souls_control.refused = command->sequence;
        return;
    }
    rebase(command->speed, advance, command->flags & SOULS_RUN ? (int64_t)(command->flags >> SOULS_RUN_SHIFT) : 0);
    if (command->flags & SOULS_LET_GO)
        souls_control.owner = 0;
    __atomic_store_n(&souls_control.acknowledged, command->sequence, __ATOMIC_RELEASE);
}

static void take_command(void)
{
    if (souls_control.command.sequence == seen || !try_change())
        return;
    struct souls_command command = {
        souls_control.command.token,   souls_control.command.sequence, souls_control.command.speed,
        souls_control.command.advance, souls_control.command.flags,    souls_control.command.check,
    };
    if (command.sequence != seen && command.check == souls_check(&command))
        carry_out(&command);
    end_change();
}

static void count(enum souls_function function)
{
    __atomic_fetch_add(&souls_control.calls[function], 1, __ATOMIC_RELAXED);
}

static int64_t answer(enum souls_function function)
{
    count(function);
    take_command();
    return virtual_now();
}

/* Each thread has a row of its own from its first question on; who comes when all are taken shares the last one. */
static void count_thread(void)
{
    static volatile LONG used;
    uintptr_t row = asking == TLS_OUT_OF_INDEXES ? 0 : (uintptr_t)TlsGetValue(asking);
    if (!row) {
        LONG next = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
        row = next < SOULS_THREADS ? (uintptr_t)next + 1 : SOULS_THREADS + 1;
        if (next < SOULS_THREADS)
            souls_control.threads[next].id = GetCurrentThreadId();
        TlsSetValue(asking, (void *)row);
    }
    __atomic_fetch_add(&souls_control.threads[row - 1].calls, 1, __ATOMIC_RELAXED);
}

static BOOL WINAPI counter_replacement(LARGE_INTEGER *counter)
{
    DWORD error = GetLastError();
    count_thread();
    SetLastError(error); /* TlsGetValue sets it */
    counter->QuadPart = answer(SOULS_COUNTER);
    return TRUE;
}

static DWORD WINAPI tick_replacement(void)
{
    return (DWORD)(ms_of(answer(SOULS_TICK)) + tick_offset);
}

static ULONGLONG WINAPI tick64_replacement(void)
{
    return (ULONGLONG)(ms_of(answer(SOULS_TICK64)) + tick_offset);
}

static DWORD WINAPI time_replacement(void)
{
    return (DWORD)(ms_of(answer(SOULS_TIME)) + time_offset);
}

/* How long to wait before looking for a command again while the clock stands: the longer none came, the longer. */
static int64_t frozen_slice_us(int64_t idle_us)
{
    if (idle_us < 50000)
        return 5; /* Timers make it 60 and more. */
    return idle_us < 1000000 ? 300 : 1000;
}

static LONG wait_frozen(BOOLEAN alertable)
{
    int64_t slice_us = frozen_slice_us(us_of(real_now() - last_command));
    if (alertable && slice_us < ALERTABLE_SLICE_US)
        slice_us = ALERTABLE_SLICE_US;
    return delay_us(slice_us, alertable);
}

static LONG wait_running(int64_t left, int64_t running, BOOLEAN alertable)
{
    int64_t limit_us = souls_control.owner ? RUNNING_SLICE_US : FREE_SLICE_US;
    int64_t left_us = us_of((int64_t)(((__int128)left << RATE_BITS) / running)) + 1;
    return delay_us(left_us < limit_us ? left_us : limit_us, alertable);
}

/* An advance may come while a thread is on its way from looking at the clock to Sleep: then it does not sleep at all. */
static int is_advance_news(void)
{
    return (int64_t)TlsGetValue(noticed) != souls_control.advanced;
}

static DWORD sleep_until(int64_t target, int64_t frozen_us, BOOLEAN alertable)
{
    int64_t begin = real_now();
    for (;;) {
        take_command();
        int64_t now = virtual_now();
        int64_t running = now < stop_virtual ? __atomic_load_n(&rate, __ATOMIC_RELAXED) : 0;
        int64_t left = target - now;
        if (left <= 0 || (!running && (is_advance_news() || us_of(real_now() - begin) >= frozen_us)))
            return 0;
        if ((running ? wait_running(left, running, alertable) : wait_frozen(alertable)) == STATUS_APC)
            return WAIT_IO_COMPLETION;
    }
}

static DWORD sleep_for(DWORD ms, BOOLEAN alertable)
{
    int64_t target = virtual_now() + (int64_t)ms * souls_control.frequency / 1000;
    DWORD result = sleep_until(target, 1000ll * (ms < FROZEN_SLEEP_MS ? ms : FROZEN_SLEEP_MS), alertable);
    TlsSetValue(noticed, (void *)souls_control.advanced);
    return result;
}

static DWORD sleep_any(DWORD ms, BOOLEAN alertable)
{
    LARGE_INTEGER at_once = { .QuadPart = 0 }, never = { .QuadPart = INT64_MIN };
    if (ms != 0 && ms != INFINITE)
        return sleep_for(ms, alertable);
    take_command();
    return NtDelayExecution(alertable, ms ? &never : &at_once) == STATUS_APC ? WAIT_IO_COMPLETION : 0;
}

static void WINAPI sleep_replacement(DWORD ms)
{
    count(SOULS_SLEEP);
    sleep_any(ms, FALSE);
}

static DWORD WINAPI sleep_ex_replacement(DWORD ms, BOOL alertable)
{
    count(SOULS_SLEEP_EX);
    return sleep_any(ms, alertable != FALSE);
}

/* The owner goes first: whoever sees the new speed or count must also see that nobody owns the clock. */
static void lapse(void)
{
    souls_control.owner = 0;
    rebase(1.0, 0, 0);
    souls_control.lapses++;
}

/* Returns when the owner was last heard of. */
static int64_t look_after_owner(int64_t now, int64_t heard)
{
    static uint64_t beat;
    uint64_t claim = souls_control.claim;
    if (beat != souls_control.beat)
        heard = now;
    beat = souls_control.beat;
    if (souls_control.owner && us_of(now - heard) > 1000ll * souls_control.limit_ms)
        lapse();
    if (!souls_control.owner && claim
        && __atomic_compare_exchange_n(&souls_control.claim, &claim, 0, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        souls_control.owner = claim;
        heard = now;
    }
    return heard;
}

static DWORD WINAPI watch(void *unused)
{
    int64_t heard = real_now();
    ULONG resolution;
    (void)unused;
    NtSetTimerResolution(TIMER_100NS, TRUE, &resolution);
    for (;;) {
        take_command();
        if (try_change()) {
            int64_t now = real_now();
            heard = look_after_owner(now, heard);
            if (rate && virtual_at(now) >= stop_virtual)
                rebase(0.0, 0, 0);
            souls_control.virtual_counter = rate ? virtual_at(now) : base_virtual;
            souls_control.real_counter = now;
            souls_control.turns++;
            end_change();
        }
        delay_us(souls_control.owner ? WATCH_OWNED_US : WATCH_FREE_US, FALSE);
    }
    return 0;
}

/* All clocks go on from where they are; the functions are not hooked yet, and the other threads stand still. Their
 * milliseconds begin where whole ones of the counter do, as those of timeGetTime do for a thread that is still in it. */
static void start_clock(void)
{
    LARGE_INTEGER counter;
    QueryPerformanceCounter(&counter);
    base_virtual = counter.QuadPart;
    base_real = last_command = real_now();
    tick_offset = (int64_t)GetTickCount64() - ms_of(base_virtual);
    time_offset = (int64_t)timeGetTime() - ms_of(base_virtual);
}

static void plan_hooks(struct hooks *hooks)
{
    static const wchar_t *const modules[] = { L"kernelbase.dll", L"kernel32.dll", L"winmm.dll" };
    for (int i = 0; i < 3; i++) {
        hook_plan(hooks, modules[i], "QueryPerformanceCounter", counter_replacement, SOULS_COUNTER);
        hook_plan(hooks, modules[i], "GetTickCount", tick_replacement, SOULS_TICK);
        hook_plan(hooks, modules[i], "GetTickCount64", tick64_replacement, SOULS_TICK64);
        hook_plan(hooks, modules[i], "timeGetTime", time_replacement, SOULS_TIME);
        hook_plan(hooks, modules[i], "Sleep", sleep_replacement, SOULS_SLEEP);
        hook_plan(hooks, modules[i], "SleepEx", sleep_ex_replacement, SOULS_SLEEP_EX);
    }
}

/* The library may be there twice, as dinput8.dll of the game's folder and injected: only the first one hooks. */
static int is_first(void)
{
    static wchar_t name[] = L"Local\\souls_speed_00000000";
    DWORD pid = GetCurrentProcessId();
    for (int i = 0; i < 8; i++, pid >>= 4)
        name[25 - i] = L"0123456789abcdef"[pid & 15];
    return CreateMutexW(NULL, FALSE, name) && GetLastError() != ERROR_ALREADY_EXISTS;
}

static void begin(HMODULE library)
{
    static struct hooks hooks;
    LARGE_INTEGER frequency, real;
    HMODULE pinned;
    if (!is_first())
        return;
    GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, (void *)library, &pinned);
    NtQueryPerformanceCounter(&real, &frequency);
    real_frequency = frequency.QuadPart;
    QueryPerformanceFrequency(&frequency);
    souls_control.frequency = frequency.QuadPart;
    souls_control.limit_ms = SOULS_BEAT_LIMIT_MS;
    souls_control.version = SOULS_VERSION;
    souls_control.speed = 1.0;
    rate = (int64_t)((double)souls_control.frequency / (double)real_frequency * (double)(1ll << RATE_BITS));
    noticed = TlsAlloc();
    asking = TlsAlloc();
    plan_hooks(&hooks);
    hook_all(&hooks, start_clock);
    souls_control.installed = hooks.installed;
    souls_control.failed = hooks.failed;
    CloseHandle(CreateThread(NULL, 0x10000, watch, NULL, 0, NULL));
    for (int i = 0; i < 8; i++)
        souls_control.magic[i] = SOULS_MAGIC[i];
}

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, void *reserved)
{
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) {
        DisableThreadLibraryCalls(library);
        begin(library);
    }
    return TRUE;
}
