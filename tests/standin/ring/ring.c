/* A program with the memory of Elden Ring, for what can be read of it: a player and Margit, who go through the same few
   animations again and again, sixty ticks a second. Keys do nothing here. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <windows.h>

#include "ring_data.h"

enum { TICKS_PER_S = 60, ROUND_TICKS = 240, OTHERS = 3, ENTRIES = 10 };

unsigned char standin_statics[STATICS_SIZE] __attribute__((aligned(4096)));

__asm__(".section .text\n.globl standin_patterns\nstandin_patterns:\n"
#include "patterns.inc"
        ".section .text\n");

struct animation {
    int32_t number;
    float seconds, again, length;
};
struct ring {
    struct animation entries[ENTRIES];
    uint32_t next, playing;
};

static unsigned char *nodes[NODES];
static uint64_t list[OTHERS + 1][LIST_entry_bytes / 8];

static void *at(enum field f) { return nodes[FIELD_DEFS[f].node] + FIELD_DEFS[f].offset; }
static void put_int(enum field f, int32_t value) { memcpy(at(f), &value, sizeof value); }
static void put_floats(enum field f, const float *values) { memcpy(at(f), values, FIELD_DEFS[f].size); }

static void *slot_of(int node) {
    const struct node_def *def = &NODE_DEFS[node];
    return def->parent == PARENT_IS_SLOT ? standin_statics + def->offset : nodes[def->parent] + def->offset;
}

static void open_memory(void) {
    for (int node = 0; node < NODES; node++) {
        nodes[node] = VirtualAlloc(NULL, NODE_DEFS[node].size, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
        memcpy(slot_of(node), &nodes[node], sizeof nodes[node]);
    }
}

static void list_character(int entry, unsigned char *character, int32_t number, void *slot) {
    memcpy(character + LIST_number_at, &number, sizeof number);
    memcpy(character + LIST_slot_at, &slot, sizeof slot);
    list[entry][0] = (uint64_t)(uintptr_t)character;
}

static void open_characters(void) {
    static unsigned char others[OTHERS][4096];
    static void *slots[OTHERS];
    for (int i = 0; i < OTHERS; i++) {
        slots[i] = others[i];
        list_character(i, others[i], 8000 + i, &slots[i]);
    }
    for (int node = 0; node < NODES; node++)
        if (node == FIELD_DEFS[F_MargitSwitches].node)
            list_character(OTHERS, nodes[node], CHARACTER_Margit, slot_of(node));
    uint64_t ends[2] = {(uint64_t)(uintptr_t)list, (uint64_t)(uintptr_t)(list + OTHERS + 1)};
    memcpy(at(F_CharactersByDistance), ends, sizeof ends);
}

static void play(enum field f, int32_t number) {
    struct ring *ring = at(f);
    struct animation *now = &ring->entries[ring->playing];
    if (now->number == number) {
        now->seconds += 1.0f / TICKS_PER_S;
    } else {
        ring->playing = ring->next;
        ring->next = (ring->next + 1) % ENTRIES;
        ring->entries[ring->playing] = (struct animation){number, 0.0f, 0.0f, 2.0f};
    }
}

/* He walks up, swings and hits, stands, and strikes with two daggers that are rolled through. */
static void tick(int64_t number) {
    int now = (int)(number % ROUND_TICKS);
    play(F_MargitAnimations, now < 60 ? 2002000 : now < 130 ? 2003000 : now < 150 ? 2000020 : 2003014);
    play(F_PlayerAnimations, now >= 106 && now < 140 ? 5201 : now >= 170 && now < 215 ? 27100 : 10020100);
    put_int(F_PlayerHP, now >= 106 ? 1933 : 2100);
    put_int(F_MargitHP, now >= 145 ? 4074 : 4174);
    float angle = 0.01f * (float)now, away = 20.0f - 0.1f * (float)(now < 60 ? now : 60);
    put_floats(F_PlayerLocalXYZ, (float[]){10.0f, -7.0f, -15.0f});
    put_floats(F_MargitXYZ, (float[]){10.0f - away, -7.0f, -15.0f});
    put_floats(F_PlayerQ, (float[]){0.0f, sinf(angle / 2), 0.0f, cosf(angle / 2)});
    put_floats(F_MargitQ, (float[]){0.0f, 1.0f, 0.0f, 0.0f});
    put_int(F_Time, (int32_t)(3600000 + number * 1000 / TICKS_PER_S));
}

static void open_player(void) {
    static const int ATTRIBUTES[12] = {20, 10, 15, 16, 12, 9, 9, 7, 0, 0, 0, 30};
    put_int(F_PlayerMaxHP, 2100), put_int(F_PlayerSP, 170), put_int(F_PlayerMaxSP, 170);
    put_int(F_PlayerMP, 50), put_int(F_PlayerMaxMP, 50), put_int(F_MargitMaxHP, 4174);
    put_int(F_LastGrace, 10002951);
    memcpy(at(F_PlayerStats), ATTRIBUTES, sizeof ATTRIBUTES);
    *(uint8_t *)at(F_LockOn) = 1;
    put_floats(F_LocalCam, (float[]){0.6f, 0.0f, 0.8f, 0.0f, 8.0f, -5.0f, -18.0f});
    put_floats(F_PlayerXYZA, (float[]){10.0f, -7.0f, -15.0f, 1.0f});
}

static LRESULT CALLBACK on_message(HWND window, UINT message, WPARAM wparam, LPARAM lparam) {
    if (message == WM_DESTROY) PostQuitMessage(0);
    return DefWindowProcW(window, message, wparam, lparam);
}

int main(void) {
    HINSTANCE instance = GetModuleHandleW(NULL);
    WNDCLASSW kind = {.lpfnWndProc = on_message, .hInstance = instance, .lpszClassName = L"Ring"};
    open_memory();
    open_characters();
    open_player();
    RegisterClassW(&kind);
    CreateWindowW(L"Ring", L"" WINDOW_TITLE, WS_OVERLAPPEDWINDOW | WS_VISIBLE, 40, 40, 800, 450, NULL, NULL, instance, NULL);
    LARGE_INTEGER frequency, begin, now;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&begin);
    for (int64_t done = 0;;) {
        MSG message;
        while (PeekMessageW(&message, NULL, 0, 0, PM_REMOVE)) {
            if (message.message == WM_QUIT) return 0;
            DispatchMessageW(&message);
        }
        QueryPerformanceCounter(&now);
        int64_t due = (now.QuadPart - begin.QuadPart) * TICKS_PER_S / frequency.QuadPart;
        for (; done < due; done++) tick(done);
        Sleep(1);
    }
}
