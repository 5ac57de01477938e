/* The memory of Dark Souls III: bases that patterns lead to, objects linked by pointers, and the fields in them.
   The fight is kept elsewhere. Before a tick what others wrote here is taken in, after it what changed is shown. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "game.h"

/* All bases lie in here; its size makes the executable as large as the game's. */
unsigned char standin_statics[STATICS_SIZE] __attribute__((aligned(4096)));

/* Never run. The patterns of the address table, each exactly once, with real distances to their bases. */
__asm__(".section .text\n.globl standin_patterns\nstandin_patterns:\n"
#include "patterns.inc"
        ".section .text\n");

static unsigned char *module_base;
static unsigned char *nodes[NODES];
static bool is_hidden;

static void **slot_of(int node) {
    const struct node_def *def = &NODE_DEFS[node];
    if (def->parent == PARENT_IS_SLOT) return (void **)(standin_statics + def->offset);
    if (def->parent == PARENT_IS_RVA) return (void **)(module_base + def->offset);
    return nodes[def->parent] ? (void **)(nodes[def->parent] + def->offset) : NULL;
}

static bool is_top(int node) {
    const struct node_def *def = &NODE_DEFS[node];
    return def->parent < 0 || NODE_DEFS[def->parent].group != def->group;
}

void *field_at(enum field f) {
    const struct field_def *def = &FIELD_DEFS[f];
    if (def->node < 0) return standin_statics + def->offset;
    return nodes[def->node] ? nodes[def->node] + def->offset : NULL;
}

/* Pages of their own, so that an address from before a load leads nowhere afterwards. */
void group_open(int group) {
    for (int node = 0; node < NODES; node++) {
        if (NODE_DEFS[node].group != group) continue;
        nodes[node] = VirtualAlloc(NULL, NODE_DEFS[node].size, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    }
    for (int node = 0; node < NODES; node++)
        if (NODE_DEFS[node].group == group && !(is_hidden && is_top(node))) *slot_of(node) = nodes[node];
}

void group_close(int group) {
    for (int node = 0; node < NODES; node++)
        if (NODE_DEFS[node].group == group && is_top(node) && slot_of(node)) *slot_of(node) = NULL;
    for (int node = 0; node < NODES; node++) {
        if (NODE_DEFS[node].group != group || !nodes[node]) continue;
        VirtualFree(nodes[node], 0, MEM_RELEASE);
        nodes[node] = NULL;
    }
}

/* The objects stay, but nobody finds them. */
void groups_hide(bool hidden) {
    is_hidden = hidden;
    for (int node = 0; node < NODES; node++)
        if (NODE_DEFS[node].group != GROUP_ALWAYS && is_top(node) && nodes[node])
            *slot_of(node) = hidden ? NULL : nodes[node];
}

/* A clock that nobody has hooked. */
static uint64_t system_ms(void) {
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    return (((uint64_t)now.dwHighDateTime << 32) | now.dwLowDateTime) / 10000;
}

static uint64_t own_begin;

void memory_open(void *module) {
    module_base = module;
    own_begin = system_ms();
    for (int node = 0; node < NODES; node++) {
        unsigned char *slot = module_base + NODE_DEFS[node].offset;
        if (NODE_DEFS[node].parent == PARENT_IS_RVA &&
            (slot < standin_statics || slot + 8 > standin_statics + STATICS_SIZE)) {
            say("RVA %#x is outside of the area of statics", NODE_DEFS[node].offset);
            ExitProcess(3);
        }
    }
    group_open(GROUP_ALWAYS);
}

/* ---- taking in and showing: a value is only touched where it differs from what was shown last ---- */

static struct { unsigned char bytes[48]; bool known; } shown[FIELDS];

static bool was_changed(enum field f, void *value, size_t size) {
    void *at = field_at(f);
    if (!at || !shown[f].known || memcmp(at, shown[f].bytes, size) == 0) return false;
    memcpy(value, at, size);
    memcpy(shown[f].bytes, value, size);
    return true;
}

static void put(enum field f, const void *value, size_t size) {
    void *at = field_at(f);
    if (!at) { shown[f].known = false; return; }
    if (shown[f].known && memcmp(shown[f].bytes, value, size) == 0) return;
    memcpy(at, value, size);
    memcpy(shown[f].bytes, value, size);
    shown[f].known = true;
}

/* What take_in() takes in. Written by somebody else in the middle of a tick, it stays until the next one takes it. */
static void put_unless_changed(enum field f, const void *value, size_t size) {
    void *at = field_at(f);
    if (at && shown[f].known && memcmp(at, shown[f].bytes, size) != 0) return;
    put(f, value, size);
}

static void put_i32(enum field f, int32_t value) { put(f, &value, sizeof value); }
static void put_count(enum field f, int32_t value) { put_unless_changed(f, &value, sizeof value); }
static void put_angle(enum field f, double value) { float small = (float)value; put_unless_changed(f, &small, sizeof small); }
static void put_f32(enum field f, double value) { float small = (float)value; put(f, &small, sizeof small); }

static void put_name(enum field f, const char *name) {
    /* 20 units: longer names lose their end, as in the game. */
    uint16_t text[20] = {0};
    for (int i = 0; i < 20 && name[i]; i++) text[i] = (uint16_t)name[i];
    put(f, text, sizeof text);
}

static bool took_i32(enum field f, double *value) {
    int32_t number;
    if (!was_changed(f, &number, sizeof number)) return false;
    *value = number;
    return true;
}

static bool took_pose(enum field place, enum field heading, double *x, double *y, double *z, double *a) {
    float at[3], angle;
    bool moved = was_changed(place, at, sizeof at);
    if (moved) *x = at[0], *z = at[1], *y = at[2];
    bool turned = was_changed(heading, &angle, sizeof angle);
    if (turned) *a = wrap(angle);
    return moved || turned;
}

void take_in(void) {
    struct fight *f = &fight;
    uint32_t time;
    if (was_changed(F_Time, &time, sizeof time)) {
        world.time_base = time, world.time_ticks = 0, world.uneven_s = 0.0;
        own_begin = system_ms();
    }
    took_i32(F_PlayerHP, &f->hp);
    took_i32(F_PlayerSP, &f->sp);
    double x = f->px, y = f->py, z = f->pz, a = f->pa;
    if (took_pose(F_PlayerX, F_PlayerA, &x, &y, &z, &a) && !standin_test.mail.stuck) {
        f->px = x, f->py = y, f->pz = z;
        f->fall_v = 0.0;
        world.inside = false;
        set_heading(f, a);
    } else if (standin_test.mail.stuck) {
        shown[F_PlayerX].known = shown[F_PlayerA].known = false; /* shown again, so that nothing was moved */
    }
    if (world.place < 0) return;
    took_i32(here()->hp, &f->boss_hp);
    double angle = boss_heading(f);
    if (took_pose(here()->pose_x, here()->pose_a, &f->bx, &f->by, &f->bz, &angle)) set_boss_heading(f, angle);
}

static const char *const SIDES[] = {"SABlend_Add_Front", "SABlend_Add_Right", "SABlend_Add_Back", "SABlend_Add_Left"};
enum { LINGER_TICKS = 18 };
#define BLEND_S 0.4

/* The name that the boss's memory shows. Hit reactions overwrite it, and a finished attack stays for a while. */
static const char *boss_name(const struct fight *f, const char *truth) {
    static const char *last = "";
    static int idle_ticks;
    bool attacks = strncmp(truth, "Attack", 6) == 0;
    if (attacks) last = truth, idle_ticks = 0;
    if (standin_test.mail.boss_unknown_ticks > 0) return "Event20099";
    if (f->blend_t < BLEND_S) return SIDES[f->blend_side];
    if (!attacks && last[0] && strcmp(truth, NAME_boss_idle) == 0 && idle_ticks++ < LINGER_TICKS) return last;
    if (!attacks) last = "";
    return truth;
}

static void publish_boss(const struct fight *f) {
    const struct place_def *place = here();
    const struct boss_moves *move = &f->t->boss_moves[f->bmove];
    const char *truth = f->boss_dead      ? "Death"
                        : f->blabel >= 0 ? place->labels[f->blabel]
                                         : place->moves[f->bmove];
    double per_label = 1.0 / (TICKS_PER_S * f->t->constants.tick_s);
    int number = -1;
    if (strncmp(truth, "Attack", 6) == 0) sscanf(truth + 6, "%d", &number);
    bool second = number >= 0 && f->linked_from;
    put_count(place->hp, (int)f->boss_hp);
    put_i32(place->max_hp, (int)f->boss_max_hp);
    float at[3] = {(float)f->bx, (float)f->bz, (float)f->by};
    put_unless_changed(place->pose_x, at, sizeof at);
    put_angle(place->pose_a, boss_heading(f));
    put_name(place->animation, boss_name(f, truth));
    put_f32(place->animation_s, f->blabel_t * per_label);
    put_f32(place->animation_length_s, move->end_s * per_label);
    put_i32(place->attack, second ? -1 : number);
    put_i32(place->attack_2, second ? number : -1);
}

static void publish_time(void) {
    uint64_t ms = switches.uneven ? (uint64_t)(world.uneven_s * 1000.0) : world.time_ticks * 1000 / TICKS_PER_S;
    if (switches.own_time) ms = system_ms() - own_begin;
    put_count(F_Time, (int32_t)(world.time_base + ms));
}

extern const char *player_name(double *seconds, double *length);

static void publish_player(const struct fight *f) {
    double seconds, length;
    const char *name = player_name(&seconds, &length);
    put_count(F_PlayerHP, (int)f->hp);
    put_i32(F_PlayerMaxHP, (int)f->max_hp);
    put_count(F_PlayerSP, (int)floor(f->sp));
    put_i32(F_PlayerMaxSP, (int)f->max_sp);
    float at[3] = {(float)f->px, (float)f->pz, (float)f->py};
    put_unless_changed(F_PlayerX, at, sizeof at);
    put_angle(F_PlayerA, f->pa);
    put_name(F_PlayerAnimation, name);
    put_f32(F_PlayerAnimationTime, seconds);
    put_f32(F_PlayerAnimationMaxTime, length);
    uint8_t lock = (uint8_t)(f->lock != 0);
    put(F_LockOn, &lock, 1);
    double nx = -sin(f->cam), ny = -cos(f->cam), flat = sqrt(1.0 - f->view_z * f->view_z);
    const struct constants *c = &f->t->constants;
    float camera[7] = {
        (float)(nx * flat), (float)f->view_z, (float)(ny * flat), 0.0f,
        (float)(f->pivot_x - c->camera_distance_m * nx), (float)(f->pz + c->camera_height_m),
        (float)(f->pivot_y - c->camera_distance_m * ny)};
    put(F_CamQx, camera, sizeof camera);
}

void publish(void) {
    if (switches.time_first) publish_time();
    if (field_at(F_PlayerHP)) publish_player(&fight);
    if (world.place >= 0 && field_at(here()->hp)) publish_boss(&fight);
    for (int f = 0; f < FIELDS; f++)
        if (!field_at((enum field)f)) shown[f].known = false;
    if (!switches.time_first) publish_time();
}
