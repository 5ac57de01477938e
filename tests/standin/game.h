/* What the files of the stand-in share. */
#ifndef GAME_H
#define GAME_H

#include <stdbool.h>
#include <stdint.h>

#include "standin_data.h"
#include "test_block.h"

enum { TICKS_PER_S = 60, NO_MOVE = -1, ROLL_MOVE = -2, FALL_MOVE = -3, SCENE_MOVE = -4 };
enum button { NO_BUTTON, ROLL_BUTTON, LIGHT_BUTTON, HEAVY_BUTTON, PARRY_BUTTON };
enum scene { NO_SCENE, RISING, THROUGH_FOG, DYING };

/* ---- switches of the command line ---- */
struct switches {
    enum screen start;
    int place;              /* whose bonfire the save is at */
    unsigned driver;        /* bit per enum source: which API drives the game */
    uint64_t seed;
    int64_t crash_after;    /* ticks, or -1 */
    bool uneven;            /* time does not move on tick by tick */
    bool vsync;             /* a frame takes a sixtieth of a second, however fast the clock is */
    bool keys_every_frame;  /* keys are read, and forgotten, in frames without time too */
    bool roll_on_release;   /* a roll begins when its key is let go */
    bool time_first;        /* play time is shown before everything else of a tick, not after it */
    bool own_time;          /* play time passes by the system's time, whatever the clock of the game says */
    int load_ticks;
    int rate;               /* seconds of the game in a real one */
    int width, height;
    char log[260];
};
extern struct switches switches;
void say(const char *format, ...);

/* ---- keys, as one tick sees them ---- */
struct keys {
    bool held[256], pressed[256], released[256]; /* by virtual key; the last two: since the tick before */
};
void input_open(void *window, void *instance);
void input_message(unsigned message, uint64_t wparam, int64_t lparam);
void input_poll(struct keys *keys);

/* ---- a fight: the player, the boss, the camera. The rules are those of our simulator, tick by tick. ---- */
struct fight {
    const struct tables *t;
    uint64_t key, draws;
    /* player */
    double px, py, pz, pa, psin, pcos, vx, vy, hp, max_hp, sp, max_sp;
    double pt, plabel_t, kf, kr, phi, car_x, car_y, car_s, flinch_t, walk_x, walk_y, stop_t, since_roll, fall_v;
    double held_x, held_y;
    /* paid: parts of the move's stamina so far; struck: a bit for each of its blows that landed */
    int pmove, plabel, cf, cr, paid, struck, walk_ticks, held_ticks, held_key, last_roll, after_roll, lock, regen_wait;
    /* camera: heading, the height of its view, the lagging point it looks from */
    double cam, view_z, pivot_x, pivot_y;
    /* boss */
    double bx, by, bz, bsin, bcos, boss_hp, boss_max_hp, poise, poise_t, bt, blabel_t, cum_f, cum_r, bcar_x, bcar_y;
    double goal_t, clock_s, ready_s[MAX_ACTS], scale; /* scale: of the forward motion in the running stretch */
    int bmove, blabel, phase, first, goal, act, link, links, linked, decided, hit_bits, pending, linked_from;
    int thrown, stretch; /* blows of the throw so far; the running stretch of the move, or -1 */
    bool boss_here, boss_active, boss_dead;
    /* what is forbidden in this tick */
    bool no_hits, no_attacks, no_moves, boss_no_attacks, unarmed;
    /* happened in this tick */
    double taken, dealt;
    int hit_by;
    double blend_t; /* seconds since the boss was last hit */
    int blend_side;
};
extern struct fight fight;

double wrap(double angle);
double heading_to(double dx, double dy);
double turned_to(double angle, double wanted, double limit);
double ground_z(const struct tables *t, double x, double y);
int nearest_edge(const struct tables *t, double x, double y, double *left);
double draw(struct fight *f);

/* player.c */
void show(struct fight *f, int label);
void set_heading(struct fight *f, double angle);
void start_idle(struct fight *f);
void start_move(struct fight *f, int move);
void start_reaction(struct fight *f, int move, double heading);
void start_flinch(struct fight *f, int label);
bool allowed(const struct fight *f, int what); /* attack 0, roll 1, walk 2 */
bool invulnerable(const struct fight *f);
bool knocked_down(const struct fight *f);
void player_tick(struct fight *f, int direction, enum button pressed);
/* boss.c */
void boss_begin(struct fight *f);
void start_boss_move(struct fight *f, int move);
double bearing_of_player(const struct fight *f);
double boss_heading(const struct fight *f);
void set_boss_heading(struct fight *f, double angle);
void boss_tick(struct fight *f, double *moved_x, double *moved_y);
/* combat.c */
bool may_riposte(const struct fight *f);
void held_tick(struct fight *f);
void separate(struct fight *f, double boss_x, double boss_y);
void keep_boss_inside(struct fight *f);
void player_blows(struct fight *f);
void boss_blows(struct fight *f);

/* ---- the world around the fight: screens, bonfire, fog wall, death ---- */
struct world {
    enum screen screen;
    enum scene scene;
    int scene_ticks, load_ticks, place; /* place: -1 at a bonfire without a boss */
    bool fog_wall, inside;              /* inside: the walls of the arena hold him */
    double scene_from[4];
    uint64_t time_ticks;
    uint32_t time_base;                 /* ms; play time is counted from here */
    double uneven_s;
};
extern struct world world;
void world_open(void);
void world_tick(const struct keys *keys);
const struct place_def *here(void);

/* ---- memory as the game has it ---- */
void memory_open(void *module);
void *field_at(enum field f);
void group_open(int group);
void group_close(int group);
void groups_hide(bool hidden);
void take_in(void);
void publish(void);

/* ---- picture ---- */
void screen_open(void *window, int width, int height);
void screen_draw(void);

#endif
