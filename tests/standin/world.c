/* The world around the fight: title and loading screens, the bonfire, the fog wall, the ground, death. */
#include <math.h>
#include <string.h>

#include "game.h"

#define LOCK_RANGE_M 15.0
#define LOCK_DOT 0.6          /* how far in front of the camera the boss must be */
#define CAMERA_RAD_PER_S 2.0
#define CAMERA_VIEW_PER_S 1.0
#define STEP_UP_M 1.0         /* lower under the ground than this is under the world */
#define DROP_M 0.5            /* higher above it than this is in the air */
#define PATH_WIDTH_M 12.0     /* ground on either side of the way from the bonfire to the arena */
#define KILL_BELOW_M 8.0      /* under the lowest place of the arena */
#define NOWHERE (-1e9)
#define FOG_M 1.0
#define FROST_MAX 100
#define FROST_PER_HIT 35
#define FROST_HP_SHARE 0.15
enum { RISE_TICKS = 90, FOG_TICKS = 120, DEATH_TICKS = 120, FLAG_TICKS = 180, FROST_TICKS = 600, LAND_TICKS = 15 };
enum { VK_ENTER = 0x0D, VK_ESC = 0x1B, SOULS = 3000, FIRST_TIME_MS = 10800000 };

struct world world;
struct fight fight;
extern const struct tables tables_iudex, tables_vordt;

static int dead_ticks, unseen_ticks, land_ticks, id_land, frost_recovery;
static double frost_effect;

const struct place_def *here(void) { return &PLACE_DEFS[world.place < 0 ? 0 : world.place]; }

static const struct tables *tables_here(void) { return world.place == PLACE_VORDT ? &tables_vordt : &tables_iudex; }
static uint8_t flag(enum field f) { uint8_t *at = field_at(f); return at ? *at : 0; }
static int32_t *number(enum field f) { return field_at(f); }
static float real(enum field f) { float *at = field_at(f); return at ? *at : 0.0f; }
static bool forbids(enum field f) { return flag(f) & PlayerNoDeath_forbidden; }

/* ---- the ground ---- */

static bool in_ring(double x, double y) {
    double left;
    nearest_edge(fight.t, x, y, &left);
    return left >= 0.0;
}

/* The height of the way from the bonfire through the fog wall to the arena. */
static double path_z(double x, double y) {
    const struct place_def *p = here();
    const double *stops[] = {p->bonfire_m, p->fog_wall, p->behind_fog_m, p->player_start};
    double best = PATH_WIDTH_M, z = NOWHERE;
    for (int i = 0; i < 3; i++) {
        const double *a = stops[i], *b = stops[i + 1];
        double dx = b[0] - a[0], dy = b[1] - a[1];
        double share = ((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy);
        share = fmax(0.0, fmin(1.0, share));
        double away = hypot(x - a[0] - share * dx, y - a[1] - share * dy);
        if (away < best) best = away, z = a[2] + share * (b[2] - a[2]);
    }
    return z;
}

static double floor_z(double x, double y) { return in_ring(x, y) ? ground_z(fight.t, x, y) : path_z(x, y); }

static void start_fall(struct fight *f) {
    f->pmove = FALL_MOVE;
    f->pt = f->fall_v = 0.0;
    f->cf = f->cr = -1;
    f->flinch_t = -1.0;
    show(f, f->t->constants.fall_start_animation);
}

static void land(struct fight *f, double floor) {
    f->pz = floor;
    start_idle(f);
    show(f, id_land);
    land_ticks = LAND_TICKS;
}

/* Walls stop him, cliffs do not; only who was inside can leave. */
static void keep_inside(struct fight *f) {
    double left;
    int which = nearest_edge(f->t, f->px, f->py, &left);
    bool grabbed = f->pmove >= 0 && f->t->player_moves[f->pmove].kind == PLAYER_GRABBED;
    for (int i = 0; world.inside && left < 0.0 && i < 4; i++) {
        if (f->t->edges[which].cliff && !grabbed) {
            world.inside = false;
            start_fall(f);
            return;
        }
        f->px += f->t->edges[which].normal_x * left;
        f->py += f->t->edges[which].normal_y * left;
        which = nearest_edge(f->t, f->px, f->py, &left);
    }
    if (left >= 0.0) world.inside = true;
}

static void gravity(struct fight *f) {
    double floor = floor_z(f->px, f->py);
    if (flag(F_noGravity) & noGravity_off) {
        f->fall_v = 0.0;
        if (f->pmove == FALL_MOVE) start_idle(f);
        return;
    }
    if (f->pmove != FALL_MOVE) {
        if (f->pz < floor - STEP_UP_M || f->pz > floor + DROP_M) start_fall(f);
        else f->pz = floor;
        return;
    }
    const struct constants *c = &f->t->constants;
    f->fall_v += c->fall_m_per_tick2;
    f->pt += c->tick_s;
    f->plabel_t += c->tick_s;
    if (f->pt >= c->fall_loop_s && f->plabel == c->fall_start_animation) show(f, c->fall_loop_animation);
    double z = f->pz - f->fall_v;
    if (f->pz >= floor - STEP_UP_M && z <= floor) land(f, floor);
    else f->pz = z;
    if (f->pz < here()->low_m[2] - KILL_BELOW_M) f->hp = 0.0;
}

/* ---- loading ---- */

static void settle_flags(void) {
    /* A load sets back what was forbidden. */
    static const enum field FLAGS[] = {F_PlayerNoDeath, F_AllNoDeath,  F_AllNoHit,
                                       F_AllNoAttack,   F_AllNoMove, F_AllNoDurabilityLoss};
    for (unsigned i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++) *(uint8_t *)field_at(FLAGS[i]) = 0;
}

static int attribute(int which) {
    int32_t value;
    memcpy(&value, (char *)field_at(F_PlayerStats) + ATTRIBUTE_OFFSETS[which], sizeof value);
    return value;
}

static void fresh_player(struct fight *f) {
    f->max_hp = floor(HP_AT_FIRST + HP_PER_POINT * (attribute(ATTRIBUTE_vigor) - ATTRIBUTE_VALUES[ATTRIBUTE_vigor]));
    f->max_sp =
        floor(SP_AT_FIRST + SP_PER_POINT * (attribute(ATTRIBUTE_endurance) - ATTRIBUTE_VALUES[ATTRIBUTE_endurance]));
    f->hp = f->max_hp;
    f->sp = f->max_sp;
    f->lock = f->regen_wait = f->paid = 0;
    f->since_roll = 99.0;
    f->fall_v = 0.0;
    f->last_roll = f->t->constants.roll_again_animation;
    f->view_z = f->t->constants.camera_view_z;
    *number(F_PlayerFrostResistance) = *number(F_PlayerFrostResistanceMax) = FROST_MAX;
    frost_effect = 0.0;
    start_idle(f);
}

static void place_player(struct fight *f, const double *m, double heading) {
    f->px = m[0], f->py = m[1], f->pz = m[2];
    set_heading(f, heading);
    f->cam = heading;
    f->pivot_x = f->px, f->pivot_y = f->py;
    world.inside = in_ring(f->px, f->py);
}

static void open_boss(struct fight *f) {
    const struct place_def *p = here();
    uint8_t flags = flag(p->flags);
    bool untended = world.place == PLACE_IUDEX && flag(F_UntendedGravesFlag) == UntendedGravesFlag_untended;
    f->boss_here = world.place >= 0 && !(flags & p->defeated) && !untended;
    f->boss_active = f->boss_dead = false;
    world.fog_wall = f->boss_here && flags == p->wanted_flags;
    dead_ticks = 0;
    if (!f->boss_here) return;
    group_open(p->group);
    f->boss_hp = f->boss_max_hp = p->boss_hp;
    f->bx = p->boss_start[0], f->by = p->boss_start[1], f->bz = p->boss_start[2];
    set_boss_heading(f, p->boss_start[3]);
    boss_begin(f);
}

static void start_loading(void) {
    group_close(GROUP_PLAYER);
    for (int i = 0; i < PLACES; i++) group_close(PLACE_DEFS[i].group);
    fight.boss_here = fight.boss_active = false;
    fight.lock = 0;
    world.place = -1;
    world.screen = ON_LOADING;
    world.load_ticks = switches.load_ticks;
    say("loading");
}

static void arrive(void) {
    world.place = -1;
    for (int i = 0; i < PLACES; i++)
        if (PLACE_DEFS[i].bonfire == *number(F_LastBonfire)) world.place = i;
    settle_flags();
    fight.t = tables_here();
    group_open(GROUP_PLAYER);
    open_boss(&fight);
    fresh_player(&fight);
    place_player(&fight, here()->bonfire_m, 0.0);
    world.screen = IN_FIELD;
    world.scene = RISING;
    world.scene_ticks = 0;
    fight.pmove = SCENE_MOVE;
    standin_test.loads++;
    say("arrived at bonfire %d, boss %s", *number(F_LastBonfire), fight.boss_here ? here()->boss : "none");
}

static void begin_fight(struct fight *f) {
    f->boss_active = true;
    boss_begin(f);
    world.screen = IN_ARENA;
    say("fight begins");
}

void world_open(void) {
    for (int i = 0; i < ATTRIBUTES; i++) {
        int32_t value = ATTRIBUTE_VALUES[i];
        memcpy((char *)field_at(F_PlayerStats) + ATTRIBUTE_OFFSETS[i], &value, sizeof value);
    }
    for (int i = 0; i < PLACES; i++) *(uint8_t *)field_at(PLACE_DEFS[i].flags) = (uint8_t)PLACE_DEFS[i].wanted_flags;
    for (id_land = 0; strcmp(PLAYER_LABELS[id_land], "LandLow") != 0;) id_land++;
    *number(F_LastBonfire) = PLACE_DEFS[switches.place].bonfire;
    *(float *)field_at(F_LoSLockOnTime) = 2.0f;
    *number(F_WindowScreenWidth) = switches.width;
    *number(F_WindowScreenHeight) = switches.height;
    world.time_base = FIRST_TIME_MS;
    world.place = -1;
    fight.t = &tables_iudex;
    fight.key = switches.seed;
    world.screen = ON_TITLE;
    if (switches.start == ON_TITLE) return;
    arrive();
    world.scene = NO_SCENE;
    start_idle(&fight);
    if (switches.start != IN_ARENA) return;
    place_player(&fight, here()->player_start, here()->player_start[3]);
    begin_fight(&fight);
}

/* ---- scenes: what the player cannot interrupt ---- */

static void start_scene(struct fight *f, enum scene scene) {
    world.scene = scene;
    world.scene_ticks = 0;
    f->pmove = SCENE_MOVE;
    world.scene_from[0] = f->px, world.scene_from[1] = f->py, world.scene_from[2] = f->pz;
}

static void fog_tick(struct fight *f) {
    const double *to = here()->behind_fog_m;
    double share = (double)world.scene_ticks / FOG_TICKS;
    if (standin_test.mail.stuck) share = 0.0;
    f->px = world.scene_from[0] + share * (to[0] - world.scene_from[0]);
    f->py = world.scene_from[1] + share * (to[1] - world.scene_from[1]);
    f->pz = world.scene_from[2] + share * (to[2] - world.scene_from[2]);
    set_heading(f, heading_to(to[0] - world.scene_from[0], to[1] - world.scene_from[1]));
    if (world.scene_ticks >= FOG_TICKS && !standin_test.mail.stuck) begin_fight(f);
}

static void scene_tick(struct fight *f) {
    static const int LENGTHS[] = {0, RISE_TICKS, FOG_TICKS, DEATH_TICKS};
    world.scene_ticks++;
    if (world.scene == THROUGH_FOG) fog_tick(f);
    if (world.scene_ticks < LENGTHS[world.scene]) return;
    enum scene over = world.scene;
    world.scene = NO_SCENE;
    if (over == DYING) start_loading();
    else start_idle(f);
}

const char *player_name(double *seconds, double *length) {
    const struct fight *f = &fight;
    double per_label = 1.0 / (TICKS_PER_S * f->t->constants.tick_s);
    static const char *const SCENES[] = {"", NAME_rising, "Event60060", "DeathIdle"};
    *seconds = f->plabel_t * per_label;
    *length = (f->pmove >= 0 ? f->t->player_moves[f->pmove].end_s
                             : f->pmove == ROLL_MOVE ? f->t->constants.roll_end_s : 1.0) * per_label;
    if (world.scene != NO_SCENE) {
        *seconds = (double)world.scene_ticks / TICKS_PER_S;
        return SCENES[world.scene];
    }
    if (standin_test.mail.player_unknown_ticks > 0) return "Event99099";
    bool attacks = f->pmove >= 0 && f->t->player_moves[f->pmove].kind == PLAYER_ATTACK;
    return attacks && f->unarmed ? "HandChangeStart" : PLAYER_LABELS[f->plabel];
}

/* ---- lock-on and camera ---- */

static double lock_range(void) { return LOCK_RANGE_M + real(F_LockOnBonusRange); }

static void toggle_lock(struct fight *f) {
    standin_test.lock_presses++;
    double dx = f->bx - f->px, dy = f->by - f->py, away = hypot(dx, dy);
    double dot = (-sin(f->cam) * dx - cos(f->cam) * dy) / fmax(away, 1e-9);
    bool target = f->boss_here && !f->boss_dead && away <= lock_range() && dot > LOCK_DOT;
    bool thrown = f->pmove >= 0 && (f->t->player_moves[f->pmove].kind == PLAYER_GRABBED ||
                                    f->t->player_moves[f->pmove].kind == PLAYER_RIPOSTE);
    if (f->lock) f->lock = 0;
    else if (target && !thrown && !standin_test.mail.refuse_lock_on) f->lock = 1;
    else if (!target) f->cam = f->pa; /* nobody to look at: the camera goes behind the player */
    unseen_ticks = 0;
}

static void lock_tick(struct fight *f) {
    if (standin_test.mail.drop_lock_on) f->lock = standin_test.mail.drop_lock_on = 0;
    if (!f->boss_here || f->boss_dead || world.scene == DYING) f->lock = 0;
    bool seen = hypot(f->bx - f->px, f->by - f->py) <= lock_range();
    unseen_ticks = seen || !f->lock ? 0 : unseen_ticks + 1;
    if (unseen_ticks > real(F_LoSLockOnTime) * TICKS_PER_S) f->lock = 0;
}

static double per_tick(double share_per_step) { return 1.0 - pow(1.0 - share_per_step, 1.0 / 6.0); }

static void camera_tick(struct fight *f, const bool held[ACTIONS]) {
    const struct constants *c = &f->t->constants;
    f->pivot_x += per_tick(c->camera_pivot_share) * (f->px - f->pivot_x);
    f->pivot_y += per_tick(c->camera_pivot_share) * (f->py - f->pivot_y);
    if (f->lock) {
        double error = wrap(heading_to(f->bx - f->pivot_x, f->by - f->pivot_y) - f->cam);
        f->cam = wrap(f->cam + per_tick(c->camera_yaw_share) * error);
        f->view_z += per_tick(c->camera_yaw_share) * (c->camera_view_z - f->view_z);
        return;
    }
    f->cam = wrap(f->cam + CAMERA_RAD_PER_S / TICKS_PER_S * (held[A_cameraright] - held[A_cameraleft]));
    f->view_z += CAMERA_VIEW_PER_S / TICKS_PER_S * (held[A_cameraup] - held[A_cameradown]);
    f->view_z = fmax(-0.8, fmin(0.8, f->view_z));
}

/* ---- keys ---- */

struct wishes { bool held[ACTIONS], pressed[ACTIONS]; };

static struct wishes wishes_of(const struct keys *keys) {
    struct wishes wishes = {0};
    volatile struct mailbox *mail = &standin_test.mail;
    bool menu = mail->menu_open != 0;
    if (menu && keys->pressed[VK_ESC]) mail->menu_open = 0;
    if (menu || mail->ignore_keys) return wishes;
    for (int i = 0; i < ACTIONS; i++) {
        wishes.held[i] = keys->held[ACTION_VKS[i]];
        wishes.pressed[i] = keys->pressed[ACTION_VKS[i]];
    }
    if (switches.roll_on_release) wishes.pressed[A_roll] = keys->released[ACTION_VKS[A_roll]];
    return wishes;
}

/* Clockwise from forward, or -1. */
static int direction_of(const bool held[ACTIONS]) {
    static const int BY_KEYS[3][3] = {{5, 4, 3}, {6, -1, 2}, {7, 0, 1}};
    return BY_KEYS[1 + held[A_forward] - held[A_backward]][1 + held[A_right] - held[A_left]];
}

static enum button button_of(const bool pressed[ACTIONS]) {
    if (pressed[A_roll]) return ROLL_BUTTON;
    if (pressed[A_lightattack]) return LIGHT_BUTTON;
    if (pressed[A_heavyattack]) return HEAVY_BUTTON;
    return pressed[A_parry] ? PARRY_BUTTON : NO_BUTTON;
}

static void interact(struct fight *f) {
    const double *fog = here()->fog_wall;
    standin_test.interactions++;
    bool near_fog = hypot(f->px - fog[0], f->py - fog[1]) <= FOG_M && fabs(f->pz - fog[2]) <= FOG_M;
    if (world.fog_wall && near_fog && !f->boss_active && f->pmove == NO_MOVE) start_scene(f, THROUGH_FOG);
}

/* ---- frost, death, and one tick of it all ---- */

static void frost_tick(struct fight *f) {
    int32_t *left = number(F_PlayerFrostResistance), *most = number(F_PlayerFrostResistanceMax);
    frost_effect = fmax(0.0, frost_effect - 1.0 / FROST_TICKS);
    if (world.place == PLACE_VORDT && f->taken > 0.0 && frost_effect <= 0.0) {
        *left -= FROST_PER_HIT;
        frost_recovery = 0;
        if (*left <= 0) {
            *left = *most;
            frost_effect = 1.0;
            f->hp -= floor(FROST_HP_SHARE * f->max_hp);
        }
    } else if (*left < *most && ++frost_recovery % (TICKS_PER_S / 4) == 0) {
        ++*left;
    }
    *(float *)field_at(F_PlayerFrostEffect) = (float)frost_effect;
}

static void boss_death(struct fight *f) {
    if (f->boss_dead && ++dead_ticks == FLAG_TICKS) *(uint8_t *)field_at(here()->flags) |= (uint8_t)here()->defeated;
    if (!f->boss_here || f->boss_dead || f->boss_hp > 0.0) return;
    if (forbids(F_AllNoDeath)) {
        f->boss_hp = 1.0;
        return;
    }
    f->boss_hp = 0.0;
    f->boss_dead = true;
    f->boss_active = false;
    f->blend_t = 99.0;
    standin_test.boss_deaths++;
    standin_test.souls += SOULS;
    say("boss died");
}

static void player_death(struct fight *f) {
    if (f->hp > 0.0 || world.scene == DYING) return;
    if (forbids(F_AllNoDeath) || forbids(F_PlayerNoDeath)) {
        f->hp = 1.0;
        return;
    }
    f->hp = 0.0;
    standin_test.player_deaths++;
    standin_test.souls = 0;
    world.screen = ON_DEATH;
    start_scene(f, DYING);
    say("player died");
}

static void fight_tick(struct fight *f, int direction, enum button button) {
    double moved_x = 0.0, moved_y = 0.0, x = f->px, y = f->py;
    if (f->pmove != FALL_MOVE && world.scene == NO_SCENE) player_tick(f, direction, button);
    if (f->boss_active) boss_tick(f, &moved_x, &moved_y);
    if (f->boss_here && f->pmove != FALL_MOVE && world.scene == NO_SCENE) separate(f, moved_x, moved_y);
    if (f->boss_active && f->hp > 0.0 && f->boss_hp > 0.0) {
        if (world.scene == NO_SCENE) player_blows(f);
        if (f->boss_hp > 0.0 && f->pmove != FALL_MOVE) boss_blows(f);
    }
    if (f->boss_active) keep_boss_inside(f);
    if (f->boss_here) f->bz = ground_z(f->t, f->bx, f->by);
    if (standin_test.mail.stuck) f->px = x, f->py = y;
}

static void read_rules(struct fight *f) {
    f->no_hits = forbids(F_AllNoHit);
    f->no_attacks = forbids(F_AllNoAttack);
    f->no_moves = forbids(F_AllNoMove);
    f->boss_no_attacks = f->boss_here && flag(here()->attacks) & IudexAttacks_off;
    f->unarmed = standin_test.mail.unarmed != 0;
    f->taken = f->dealt = 0.0;
}

static void obey_mail(struct fight *f) {
    volatile struct mailbox *mail = &standin_test.mail;
    if (mail->player_unknown_ticks > 0) mail->player_unknown_ticks--;
    if (mail->boss_unknown_ticks > 0) mail->boss_unknown_ticks--;
    if (mail->null_chains_ticks > 0) groups_hide(--mail->null_chains_ticks > 0);
    if (mail->wrong_flags) *(uint8_t *)field_at(here()->flags) |= (uint8_t)here()->defeated, mail->wrong_flags = 0;
    if (mail->fall) f->pz -= 6.0, mail->fall = 0;
    if (mail->kill_player) f->hp = 0.0, mail->kill_player = 0;
    if (mail->kill_boss) f->boss_hp = 0.0, mail->kill_boss = 0;
    if (mail->force_boss_move && f->boss_active) start_boss_move(f, mail->force_boss_move - 1);
    mail->force_boss_move = 0;
}

static void game_tick(const struct keys *keys) {
    struct fight *f = &fight;
    world.time_ticks++;
    read_rules(f);
    obey_mail(f);
    struct wishes wishes = wishes_of(keys);
    if (world.scene == NO_SCENE && wishes.pressed[A_lock_on]) toggle_lock(f);
    if (world.scene == NO_SCENE && wishes.pressed[A_interact]) interact(f);
    fight_tick(f, direction_of(wishes.held), button_of(wishes.pressed));
    if (world.scene == NO_SCENE) {
        keep_inside(f);
        gravity(f);
        if (land_ticks > 0 && --land_ticks == 0 && f->plabel == id_land) start_idle(f);
    }
    frost_tick(f);
    lock_tick(f);
    camera_tick(f, wishes.held);
    boss_death(f);
    player_death(f);
    if (world.scene != NO_SCENE) scene_tick(f);
}

static void show_test_block(void) {
    const struct fight *f = &fight;
    volatile struct test_block *t = &standin_test;
    t->screen = world.screen;
    t->place = (uint32_t)world.place;
    t->boss_here = f->boss_here, t->boss_active = f->boss_active, t->phase = (uint32_t)f->phase;
    t->player_move = f->pmove, t->boss_move = f->bmove;
    t->player[0] = f->px, t->player[1] = f->py, t->player[2] = f->pz, t->player[3] = f->pa;
    t->boss[0] = f->bx, t->boss[1] = f->by, t->boss[2] = f->bz, t->boss[3] = boss_heading(f);
    t->camera = f->cam;
}

/* Equal for two runs as long as they went the same way, to the last bit. */
static void digest_tick(void) {
    const struct fight *f = &fight;
    const double values[] = {f->px, f->py, f->pz, f->pa, f->hp, f->sp, f->bx, f->by, f->bsin, f->boss_hp,
                             f->cam, f->bt, f->pt, f->goal_t, f->bmove, f->pmove, f->plabel, f->lock, world.screen};
    uint64_t digest = standin_test.digest;
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        digest = (digest ^ bits) * 0x100000001B3u;
        digest ^= digest >> 29;
    }
    standin_test.digest = digest;
    uint64_t tick = standin_test.ticks + 1;
    if (tick % TICKS_PER_S == 0) standin_test.digests[tick / TICKS_PER_S % DIGESTS] = digest;
}

void world_tick(const struct keys *keys) {
    take_in();
    if (standin_test.mail.to_title) {
        standin_test.mail.to_title = 0;
        start_loading();
        world.screen = ON_TITLE;
    }
    if (world.screen == ON_TITLE) {
        if (keys->pressed[VK_ENTER] || keys->pressed[ACTION_VKS[A_interact]]) start_loading();
    } else if (world.screen == ON_LOADING) {
        if (--world.load_ticks <= 0) arrive();
    } else {
        game_tick(keys);
    }
    digest_tick();
    show_test_block();
    publish();
}
