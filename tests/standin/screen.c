/* The picture: the fight from above, bars of health, and the number of the tick, so that a captured frame has a date. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "game.h"

enum { BLOCK = 8, BITS = 24 };
#define METRES_HIGH 60.0

static HWND window;
static HDC memory_dc;
static uint32_t *pixels;
static int width, height;

void screen_open(void *window_handle, int w, int h) {
    window = window_handle;
    width = w, height = h;
    BITMAPINFO info = {.bmiHeader = {.biSize = sizeof(BITMAPINFOHEADER), .biWidth = w, .biHeight = -h, .biPlanes = 1,
                                     .biBitCount = 32, .biCompression = BI_RGB}};
    memory_dc = CreateCompatibleDC(NULL);
    SelectObject(memory_dc, CreateDIBSection(memory_dc, &info, DIB_RGB_COLORS, (void **)&pixels, NULL, 0));
}

static void box(int x, int y, int w, int h, uint32_t colour) {
    for (int row = max(y, 0); row < min(y + h, height); row++)
        for (int column = max(x, 0); column < min(x + w, width); column++) pixels[row * width + column] = colour;
}

static int at_x(double x) {
    double middle = (here()->low_m[0] + here()->high_m[0]) / 2.0;
    return (int)(width / 2.0 + (x - middle) * height / METRES_HIGH);
}

static int at_y(double y) {
    double middle = (here()->low_m[1] + here()->high_m[1]) / 2.0;
    return (int)(height / 2.0 + (y - middle) * height / METRES_HIGH);
}

static void body(double x, double y, double heading, int radius, uint32_t colour) {
    int cx = at_x(x), cy = at_y(y);
    for (int row = -radius; row <= radius; row++) {
        int half = (int)sqrt((double)(radius * radius - row * row));
        box(cx - half, cy + row, 2 * half + 1, 1, colour);
    }
    for (int i = radius; i < 3 * radius; i++)
        box((int)(cx - sin(heading) * i), (int)(cy - cos(heading) * i), 2, 2, colour);
}

static void edge(double x, double y) { box(at_x(x) - 1, at_y(y) - 1, 3, 3, 0x808080); }

static void arena(void) {
    const struct tables *t = fight.t;
    const double *low = here()->low_m, *high = here()->high_m;
    for (double x = low[0]; x < high[0]; x += 0.25)
        for (double y = low[1]; y < high[1]; y += 0.25) {
            double left;
            nearest_edge(t, x, y, &left);
            if (fabs(left) < 0.2) edge(x, y);
        }
}

static uint32_t *backdrop;

static void draw_backdrop(void) {
    static const struct tables *drawn;
    if (!backdrop) backdrop = malloc(sizeof *pixels * (size_t)(width * height));
    if (drawn != fight.t) {
        box(0, 0, width, height, 0x202028);
        arena();
        memcpy(backdrop, pixels, sizeof *pixels * (size_t)(width * height));
        drawn = fight.t;
    }
    memcpy(pixels, backdrop, sizeof *pixels * (size_t)(width * height));
}

static void bar(int y, double share, uint32_t colour) {
    int length = width / 2;
    box(width / 4, y, length, 8, 0x404040);
    box(width / 4, y, (int)(length * fmax(0.0, fmin(1.0, share))), 8, colour);
}

static void fighters(void) {
    const struct fight *f = &fight;
    if (f->boss_here) body(f->bx, f->by, boss_heading(f), 10, f->boss_dead ? 0x503030 : 0xC03020);
    body(f->px, f->py, f->pa, 5, f->lock ? 0x40A0FF : 0x80C080);
    bar(20, f->hp / fmax(1.0, f->max_hp), 0xD02020);
    bar(32, f->sp / fmax(1.0, f->max_sp), 0x20B040);
    if (f->boss_active) bar(height - 20, f->boss_hp / fmax(1.0, f->boss_max_hp), 0xD0A020);
}

/* 24 blocks, highest bit first, white for 1; below them the opposite, so that a torn frame is noticed. */
static void date(uint64_t tick) {
    for (int bit = 0; bit < BITS; bit++) {
        bool on = (tick >> (BITS - 1 - bit)) & 1;
        box(bit * BLOCK, 0, BLOCK, BLOCK, on ? 0xFFFFFF : 0x000000);
        box(bit * BLOCK, BLOCK, BLOCK, BLOCK, on ? 0x000000 : 0xFFFFFF);
    }
}

void screen_draw(void) {
    if (world.screen == ON_TITLE) box(0, 0, width, height, 0x101040);
    else if (world.screen == ON_LOADING) box(0, 0, width, height, 0x000000);
    else draw_backdrop(), fighters();
    date(standin_test.ticks);
    HDC dc = GetDC(window);
    BitBlt(dc, 0, 0, width, height, memory_dc, 0, 0, SRCCOPY);
    ReleaseDC(window, dc);
    GdiFlush();
    /* Wine sends what was drawn to the X server when a program looks for messages and there are none. */
    MSG message;
    PeekMessageW(&message, NULL, 0, 0, PM_NOREMOVE);
    standin_test.frames++;
}
