/* The keyboard through all four ways a Windows program has. Those in switches.driver play, the others are counted. */
#include <initguid.h>
#include <string.h>
#define DIRECTINPUT_VERSION 0x0800
#include <windows.h>

#include <dinput.h>

#include "game.h"

static HWND window;
static IDirectInputDevice8W *keyboard;
static bool latched[SOURCES][256];
static unsigned char watched[ACTIONS + 2], scans[ACTIONS + 2];

static void note(enum source source, unsigned vk, bool down) {
    volatile struct test_block *t = &standin_test;
    vk &= 0xFF;
    if ((t->held[source][vk] != 0) == down) return; /* a key that repeats */
    t->held[source][vk] = down;
    if (down) t->downs[source]++, latched[source][vk] = true;
    else t->ups[source]++;
    volatile struct input_event *event = &t->events[t->event_count % EVENTS];
    LARGE_INTEGER now;
    QueryPerformanceCounter(&now);
    event->source = (uint8_t)source, event->vk = (uint8_t)vk, event->down = down;
    event->tick = t->ticks, event->qpc = now.QuadPart;
    t->event_count++;
}

static void open_dinput(HINSTANCE instance) {
    IDirectInput8W *direct;
    if (FAILED(DirectInput8Create(instance, DIRECTINPUT_VERSION, &IID_IDirectInput8W, (void **)&direct, NULL)) ||
        FAILED(IDirectInput8_CreateDevice(direct, &GUID_SysKeyboard, &keyboard, NULL))) {
        say("no DirectInput");
        return;
    }
    IDirectInputDevice8_SetDataFormat(keyboard, &c_dfDIKeyboard);
    IDirectInputDevice8_SetCooperativeLevel(keyboard, window, DISCL_FOREGROUND | DISCL_NONEXCLUSIVE);
    IDirectInputDevice8_Acquire(keyboard);
}

void input_open(void *window_handle, void *instance) {
    window = window_handle;
    memcpy(watched, ACTION_VKS, ACTIONS);
    watched[ACTIONS] = VK_RETURN;
    watched[ACTIONS + 1] = VK_ESCAPE;
    for (unsigned i = 0; i < sizeof watched; i++) scans[i] = (unsigned char)MapVirtualKeyW(watched[i], MAPVK_VK_TO_VSC);
    RAWINPUTDEVICE device = {.usUsagePage = 1, .usUsage = 6, .dwFlags = 0, .hwndTarget = window};
    if (!RegisterRawInputDevices(&device, 1, sizeof device)) say("no RawInput");
    open_dinput(instance);
}

static void raw(HRAWINPUT handle) {
    RAWINPUT input;
    UINT size = sizeof input;
    if (GetRawInputData(handle, RID_INPUT, &input, &size, sizeof(RAWINPUTHEADER)) == (UINT)-1) return;
    if (input.header.dwType != RIM_TYPEKEYBOARD) return;
    note(BY_RAW, input.data.keyboard.VKey, !(input.data.keyboard.Flags & RI_KEY_BREAK));
}

static void release_all(enum source source) {
    for (unsigned vk = 0; vk < 256; vk++) note(source, vk, false);
}

void input_message(unsigned message, uint64_t wparam, int64_t lparam) {
    if (message == WM_KEYDOWN || message == WM_SYSKEYDOWN) note(BY_MESSAGES, (unsigned)wparam, true);
    else if (message == WM_KEYUP || message == WM_SYSKEYUP) note(BY_MESSAGES, (unsigned)wparam, false);
    else if (message == WM_INPUT) raw((HRAWINPUT)lparam);
    else if (message == WM_KILLFOCUS) release_all(BY_MESSAGES), release_all(BY_RAW);
}

static void poll_dinput(void) {
    unsigned char state[256] = {0};
    if (!keyboard) return;
    if (FAILED(IDirectInputDevice8_GetDeviceState(keyboard, sizeof state, state))) {
        memset(state, 0, sizeof state);
        IDirectInputDevice8_Acquire(keyboard);
    }
    for (unsigned i = 0; i < sizeof watched; i++) note(BY_DINPUT, watched[i], (state[scans[i]] & 0x80) != 0);
}

static void poll_async(void) {
    /* GetAsyncKeyState also sees keys meant for others; a game listens only while its window is in front. */
    bool in_front = GetForegroundWindow() == window;
    for (unsigned i = 0; i < sizeof watched; i++)
        note(BY_ASYNC, watched[i], in_front && (GetAsyncKeyState(watched[i]) & 0x8000) != 0);
}

void input_poll(struct keys *keys) {
    poll_async();
    poll_dinput();
    static bool before[256];
    memset(keys, 0, sizeof *keys);
    for (int source = 0; source < SOURCES; source++) {
        for (int vk = 0; vk < 256; vk++) {
            if (switches.driver & (1u << source)) {
                keys->held[vk] |= standin_test.held[source][vk] != 0 || latched[source][vk];
                keys->pressed[vk] |= latched[source][vk];
            }
            latched[source][vk] = false;
        }
    }
    for (int vk = 0; vk < 256; vk++) {
        keys->released[vk] = before[vk] && !keys->held[vk];
        before[vk] = keys->held[vk];
    }
}
