/* The program: switches, the window, and a loop of sixty ticks a second on the performance counter. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "game.h"

#define LONGEST_TURN_S 0.5
#define UNEVEN_SHARE 0.05    /* of the time that has come in, so much passes in one turn of the loop */
#define UNEVEN_LEAST_S 0.0002
enum { REDRAW_TURNS = 64, NO_WINDOW = 3 };

__declspec(dllexport) volatile struct test_block standin_test;
struct switches switches = {.start = IN_ARENA, .driver = 1u << BY_DINPUT, .seed = 1, .crash_after = -1,
                            .load_ticks = 60, .rate = 1, .width = 800, .height = 450};

static HWND window, thief;
static FILE *log_file;
static bool must_draw = true;

void say(const char *format, ...) {
    if (!log_file) return;
    va_list values;
    va_start(values, format);
    fprintf(log_file, "%llu ", (unsigned long long)standin_test.ticks);
    vfprintf(log_file, format, values);
    fputc('\n', log_file);
    fflush(log_file);
    va_end(values);
}

/* ---- switches ---- */

static unsigned driver_of(const char *name) {
    static const char *const NAMES[] = {"messages", "raw", "async", "dinput"};
    for (unsigned i = 0; i < SOURCES; i++)
        if (strcmp(name, NAMES[i]) == 0) return 1u << i;
    return strcmp(name, "all") == 0 ? (1u << SOURCES) - 1 : 0;
}

static bool take_switch(const char *name, const char *value) {
    if (strcmp(name, "--start") == 0) {
        switches.start = strcmp(value, "title") == 0 ? ON_TITLE : strcmp(value, "field") == 0 ? IN_FIELD : IN_ARENA;
    } else if (strcmp(name, "--boss") == 0) {
        for (int i = 0; i < PLACES; i++)
            if (strcmp(value, PLACE_DEFS[i].boss) == 0) switches.place = i;
    } else if (strcmp(name, "--input") == 0) {
        switches.driver = driver_of(value);
        return switches.driver != 0;
    } else if (strcmp(name, "--seed") == 0) {
        switches.seed = strtoull(value, NULL, 10);
    } else if (strcmp(name, "--crash-after") == 0) {
        switches.crash_after = strtoll(value, NULL, 10);
    } else if (strcmp(name, "--load-ticks") == 0) {
        switches.load_ticks = atoi(value);
    } else if (strcmp(name, "--rate") == 0) {
        switches.rate = atoi(value);
        return switches.rate > 0;
    } else if (strcmp(name, "--size") == 0) {
        return sscanf(value, "%dx%d", &switches.width, &switches.height) == 2;
    } else if (strcmp(name, "--log") == 0) {
        snprintf(switches.log, sizeof switches.log, "%s", value);
    } else {
        return false;
    }
    return true;
}

static void read_switches(int count, char **words) {
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--uneven") == 0) switches.uneven = true;
        else if (strcmp(words[i], "--time-first") == 0) switches.time_first = true;
        else if (strcmp(words[i], "--own-time") == 0) switches.own_time = true;
        else if (strcmp(words[i], "--vsync") == 0) switches.vsync = true;
        else if (strcmp(words[i], "--keys-every-frame") == 0) switches.keys_every_frame = true;
        else if (strcmp(words[i], "--roll-on-release") == 0) switches.roll_on_release = true;
        else if (strcmp(words[i], "--slow-load") == 0) switches.load_ticks = 600;
        else if (i + 1 < count && take_switch(words[i], words[i + 1])) i++;
        else {
            fprintf(stderr, "unknown switch %s\n", words[i]);
            exit(2);
        }
    }
}

/* ---- windows ---- */

static LRESULT CALLBACK on_message(HWND which, UINT message, WPARAM wparam, LPARAM lparam) {
    if (message == WM_DESTROY && which == window) {
        PostQuitMessage(0);
        return 0;
    }
    if (which == window) {
        if (message == WM_PAINT) must_draw = true;
        input_message(message, wparam, lparam);
        if (message == WM_SYSKEYDOWN || message == WM_SYSKEYUP) return 0; /* no menu of the system */
    }
    return DefWindowProcW(which, message, wparam, lparam);
}

static HWND open_window(HINSTANCE instance, const wchar_t *title, int w, int h) {
    static bool registered;
    WNDCLASSW kind = {.lpfnWndProc = on_message, .hInstance = instance, .lpszClassName = L"StandIn",
                      .hCursor = LoadCursorW(NULL, (LPCWSTR)IDC_ARROW), .style = CS_OWNDC};
    if (!registered) RegisterClassW(&kind);
    registered = true;
    RECT area = {0, 0, w, h};
    DWORD style = WS_OVERLAPPED | WS_CAPTION | WS_SYSMENU | WS_MINIMIZEBOX;
    AdjustWindowRect(&area, style, FALSE);
    return CreateWindowW(L"StandIn", title, style | WS_VISIBLE, 40, 40, area.right - area.left,
                         area.bottom - area.top, NULL, NULL, instance, NULL);
}

/* Another window of the same program in front, as when a message box pops up. */
static void thief_tick(HINSTANCE instance) {
    int wanted = standin_test.mail.lose_focus_ticks;
    if (wanted != 0 && !thief) {
        thief = open_window(instance, L"A message", 300, 100);
        SetForegroundWindow(thief);
        SetFocus(thief);
        say("another window took the focus");
    }
    if (wanted > 0) standin_test.mail.lose_focus_ticks = wanted - 1;
    if (thief && wanted == 0) {
        DestroyWindow(thief);
        thief = NULL;
        say("the other window is gone");
    }
}

/* ---- the loop ---- */

static void one_tick(void) {
    struct keys keys;
    input_poll(&keys);
    world_tick(&keys);
    LARGE_INTEGER now;
    QueryPerformanceCounter(&now);
    standin_test.qpc_at_tick = now.QuadPart;
    standin_test.ticks++;
    thief_tick(GetModuleHandleW(NULL));
    bool crashes = standin_test.mail.crash != 0 || (int64_t)standin_test.ticks == switches.crash_after;
    if (crashes) say("crash");
    if (crashes) *(volatile int *)(uintptr_t)0 = 1;
}

/* How many ticks are due. Counts in sixtieths of a count of the clock, so that nothing is ever rounded. */
static int ticks_due(int64_t frequency, int64_t passed) {
    static int64_t sixtieths;
    int due = 0;
    sixtieths += passed * TICKS_PER_S;
    /* The clock is no finer than one count: what lacks less than that is due. */
    for (; sixtieths > frequency - TICKS_PER_S; due++) sixtieths -= frequency;
    return due;
}

/* A game that smooths the time of its frames: what comes in passes bit by bit, over several turns. */
static int64_t smoothed(int64_t frequency, int64_t passed) {
    static int64_t waiting;
    waiting += passed;
    int64_t least = (int64_t)(UNEVEN_LEAST_S * (double)frequency), part = (int64_t)(UNEVEN_SHARE * (double)waiting);
    int64_t taken = part > least ? part : least < waiting ? least : waiting;
    waiting -= taken;
    if (world.screen == IN_FIELD || world.screen == IN_ARENA || world.screen == ON_DEATH)
        world.uneven_s += (double)taken / (double)frequency;
    return taken;
}

/* A game that reads its keys in every frame has seen a press, and forgotten it, before time goes on. */
static void use_up_keys(void) {
    struct keys keys;
    input_poll(&keys);
}

/* As long as a frame of a screen takes, whatever the clock says: timed waits are not ours to change. */
static void wait_for_screen(void) {
    static HANDLE timer;
    LARGE_INTEGER frame = {.QuadPart = -166667};
    if (!timer) timer = CreateWaitableTimerW(NULL, TRUE, NULL);
    SetWaitableTimer(timer, &frame, 0, NULL, NULL, FALSE);
    WaitForSingleObject(timer, 1000);
}

static bool pump(void) {
    MSG message;
    while (PeekMessageW(&message, NULL, 0, 0, PM_REMOVE)) {
        if (message.message == WM_QUIT) return false;
        DispatchMessageW(&message);
    }
    return true;
}

static void run(void) {
    LARGE_INTEGER frequency, last, now;
    QueryPerformanceFrequency(&frequency);
    standin_test.qpc_per_s = frequency.QuadPart;
    QueryPerformanceCounter(&last);
    while (pump()) {
        while (standin_test.mail.hang) Sleep(10);
        QueryPerformanceCounter(&now);
        int64_t passed = (now.QuadPart - last.QuadPart) * switches.rate;
        int64_t longest = (int64_t)(LONGEST_TURN_S * (double)frequency.QuadPart);
        last = now;
        if (passed > longest) passed = longest;
        if (switches.uneven) passed = smoothed(frequency.QuadPart, passed);
        int due = ticks_due(frequency.QuadPart, passed);
        for (int i = 0; i < due; i++) one_tick();
        if (due == 0 && (switches.uneven || switches.own_time)) publish();
        if (passed == 0 && switches.keys_every_frame) use_up_keys();
        standin_test.has_focus = GetForegroundWindow() == window;
        standin_test.turns++;
        if (due > 0 || must_draw || standin_test.turns % REDRAW_TURNS == 0) screen_draw();
        must_draw = false;
        if (switches.vsync) wait_for_screen();
        else Sleep(1);
        if (standin_test.mail.lag_ms > 0) Sleep((DWORD)standin_test.mail.lag_ms);
    }
}

int main(int count, char **words) {
    /* A crash must end the program at once, not open a debugger. */
    SetErrorMode(SEM_NOGPFAULTERRORBOX | SEM_FAILCRITICALERRORS);
    read_switches(count, words);
    if (switches.log[0]) log_file = fopen(switches.log, "w");
    HINSTANCE instance = GetModuleHandleW(NULL);
    memory_open(instance);
    window = open_window(instance, L"" WINDOW_TITLE, switches.width, switches.height);
    if (!window) return NO_WINDOW; /* Wine gives its desktop ten seconds to appear, and goes on without a screen */
    screen_open(window, switches.width, switches.height);
    SetForegroundWindow(window);
    input_open(window, instance);
    world_open();
    publish();
    standin_test.size = sizeof standin_test;
    memcpy((void *)standin_test.magic, "SOULSTST", 8);
    timeBeginPeriod(1);
    run();
    return 0;
}
