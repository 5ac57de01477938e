/* One tick of the player: buttons, stamina, motion, labels. A heading a looks along (-sin a, -cos a). */
#include <math.h>

#include "game.h"

#define QUARTER (M_PI / 4.0)
#define BACKWARD (-0.4) /* forward part of a direction below which it counts as backward */
#define ROUNDING_S 1e-6
enum { FIRST_TICKS = 5, STEP_TICKS = 6, QUEUE_TICKS = 24 };
static const int STOP_BY_KEY[8] = {0, 0, 3, 1, 1, 1, 2, 0};

static const struct constants *constants(const struct fight *f) { return &f->t->constants; }
static const struct player_moves *row_of(const struct fight *f) { return &f->t->player_moves[f->pmove]; }
static int held_steps(const struct fight *f) { return (f->held_ticks + STEP_TICKS - 1) / STEP_TICKS; }

static double curve_at(const struct fight *f, int offset, double tick) {
    int whole = (int)tick;
    const double *at = &f->t->curves[offset + whole];
    return at[0] + (tick - whole) * (at[1] - at[0]);
}

void set_heading(struct fight *f, double angle) {
    f->pa = angle;
    f->psin = sin(angle);
    f->pcos = cos(angle);
}

static double boss_direction(const struct fight *f) { return heading_to(f->bx - f->px, f->by - f->py); }

static void turn_to_boss(struct fight *f, double limit) {
    if (!f->no_moves) set_heading(f, turned_to(f->pa, boss_direction(f), limit));
}

/* A straight mix of the two main directions beside a stick angle. */
static double blend_direction(double theta) {
    double turns = theta / M_PI_2, quadrant = floor(turns), share = turns - quadrant;
    return wrap((quadrant - 4.0 * floor(0.25 * quadrant)) * M_PI_2 + atan2(share, 1.0 - share));
}

void show(struct fight *f, int label) {
    f->plabel = label;
    f->plabel_t = 0.0;
}

void start_move(struct fight *f, int move) {
    const struct player_moves *row = &f->t->player_moves[move];
    f->pmove = move;
    f->pt = 0.0;
    f->kf = f->kr = 1.0;
    f->cf = row->forward_curve;
    f->cr = row->right_curve;
    f->paid = f->struck = 0;
    f->flinch_t = -1.0;
    f->walk_ticks = f->held_ticks = 0;
    f->car_s = -1.0;
    f->after_roll = 0;
    show(f, row->animation);
}

static bool regenerates(const struct fight *f) {
    if (f->pmove == NO_MOVE || f->pmove == SCENE_MOVE) return true;
    if (f->pmove == ROLL_MOVE) return f->pt >= constants(f)->roll_regen_s;
    return f->pmove >= 0 && f->pt >= row_of(f)->regen_s;
}

void start_reaction(struct fight *f, int move, double heading) {
    if (!regenerates(f)) f->regen_wait = (int)constants(f)->regen_delay_ticks;
    start_move(f, move);
    set_heading(f, heading);
}

void start_flinch(struct fight *f, int label) {
    f->flinch_t = 0.0;
    show(f, label);
}

void start_idle(struct fight *f) {
    f->pmove = NO_MOVE;
    f->pt = 0.0;
    f->stop_t = constants(f)->linger_s;
    f->walk_ticks = f->held_ticks = 0;
    f->after_roll = 0;
    f->car_s = -1.0;
    f->flinch_t = -1.0;
    show(f, constants(f)->idle_animation);
}

/* Metres per tick, in the heading's frame, that the running motion would do in the next ticks. */
static void move_on(const struct fight *f, int ticks, double *forward, double *right) {
    double now = f->pt * constants(f)->ticks_per_label_s;
    *forward = f->cf >= 0 ? f->kf * (curve_at(f, f->cf, now + ticks) - curve_at(f, f->cf, now)) / ticks : 0.0;
    *right = f->cr >= 0 ? f->kr * (curve_at(f, f->cr, now + ticks) - curve_at(f, f->cr, now)) / ticks : 0.0;
}

static void carry(struct fight *f, double forward, double right, double until_s) {
    f->car_x = -f->psin * forward - f->pcos * right;
    f->car_y = -f->pcos * forward + f->psin * right;
    f->car_s = until_s;
}

static void start_roll(struct fight *f, double angle) {
    const struct constants *c = constants(f);
    bool rolling = f->pmove == ROLL_MOVE, again = rolling || f->since_roll <= c->roll_again_s;
    double forward = 0.0, right = 0.0, old_phi = f->phi, k = c->roll_carry_direction_m / FIRST_TICKS;
    if (rolling) move_on(f, FIRST_TICKS, &forward, &right);
    set_heading(f, f->lock ? boss_direction(f) : angle);
    carry(f, c->roll_carry_from_roll * forward + k * cos(old_phi), c->roll_carry_from_roll * right + k * sin(old_phi),
          c->roll_first_s);
    if (f->held_ticks > 0) {
        f->car_x += f->walk_x * c->roll_carry_from_walk * STEP_TICKS / FIRST_TICKS;
        f->car_y += f->walk_y * c->roll_carry_from_walk * STEP_TICKS / FIRST_TICKS;
    }
    f->phi = blend_direction(angle - f->pa);
    f->kf = cos(f->phi);
    f->kr = sin(f->phi);
    f->cf = f->kf >= 0.0 ? c->roll_forward_curve : f->kr > -1e-6 ? c->roll_back_right_curve : c->roll_back_left_curve;
    f->cr = f->kr > 0.0 ? c->roll_right_curve : c->roll_left_curve;
    f->pmove = ROLL_MOVE;
    f->pt = 0.0;
    f->paid = 0;
    f->flinch_t = -1.0;
    f->walk_ticks = f->held_ticks = f->after_roll = 0;
    f->last_roll = again && f->last_roll == c->roll_animation ? c->roll_again_animation : c->roll_animation;
    show(f, f->last_roll);
}

static void start_get_up(struct fight *f, double angle) {
    int move = constants(f)->get_up_move;
    start_move(f, move);
    set_heading(f, f->lock ? boss_direction(f) : angle);
    f->phi = blend_direction(angle - f->pa);
    f->kf = cos(f->phi);
    f->kr = sin(f->phi);
    if (f->kf < 0.0) f->cf = f->t->player_moves[move].backward_curve;
}

static void press_roll(struct fight *f, int key, double angle) {
    standin_test.rolls++;
    if (f->pmove >= 0 && row_of(f)->on_roll >= 0) start_get_up(f, angle);
    else if (key >= 0) start_roll(f, angle);
    else start_move(f, constants(f)->backstep_move);
}

static void press(struct fight *f, enum button button, int key) {
    const struct constants *c = constants(f);
    double angle = key >= 0 ? wrap(f->cam + key * QUARTER) : f->cam;
    if (button == ROLL_BUTTON) {
        press_roll(f, key, angle);
        return;
    }
    if (f->no_attacks) return;
    if (button == LIGHT_BUTTON && f->boss_active && may_riposte(f)) {
        start_move(f, c->riposte_move);
        f->act = -1;
        start_boss_move(f, c->boss_executed_move);
        standin_test.light_attacks++;
        return;
    }
    bool walked = f->held_ticks > 0, was_rolling = f->pmove == ROLL_MOVE;
    int move = button == LIGHT_BUTTON ? c->light_move : button == HEAVY_BUTTON ? c->heavy_move : c->parry_move;
    if (button == LIGHT_BUTTON) {
        if (was_rolling) move = c->roll_light_move;
        else if (f->pmove >= 0 && row_of(f)->on_light >= 0) move = row_of(f)->on_light;
        standin_test.light_attacks++;
    } else if (button == HEAVY_BUTTON) {
        if (was_rolling) move = c->roll_heavy_move;
        else if (f->pmove >= 0 && row_of(f)->on_heavy >= 0) move = row_of(f)->on_heavy;
        standin_test.heavy_attacks++;
    } else {
        standin_test.parries++;
    }
    start_move(f, move);
    if (was_rolling) f->since_roll = 0.0;
    if (walked) {
        f->car_x = f->walk_x * c->attack_carry_from_walk;
        f->car_y = f->walk_y * c->attack_carry_from_walk;
        f->car_s = c->roll_first_s;
    }
}

bool allowed(const struct fight *f, int what) {
    if (f->pmove == FALL_MOVE || f->pmove == SCENE_MOVE) return false;
    if (what < 2 && floor(f->sp) <= 0.0) return false;
    return f->plabel_t >= f->t->timings[f->plabel + 1][what] - ROUNDING_S;
}

static void begin_walk(struct fight *f) {
    const struct constants *c = constants(f);
    if (!regenerates(f)) f->regen_wait = (int)c->regen_delay_ticks;
    f->after_roll = f->pmove == ROLL_MOVE;
    if (f->after_roll) {
        double forward, right;
        move_on(f, STEP_TICKS, &forward, &right);
        carry(f, c->walk_carry_from_roll * forward, c->walk_carry_from_roll * right, c->label_step_s);
        f->since_roll = 0.0;
    } else {
        f->car_s = -1.0;
    }
    f->pmove = NO_MOVE;
    f->pt = 0.0;
    f->walk_ticks = f->held_ticks = 0;
    show(f, c->walk_animation);
}

/* A direction is held (key) or not (-1): labels, and the start or end of walking. */
static void hold(struct fight *f, int key) {
    const struct constants *c = constants(f);
    if (key >= 0) {
        if (f->pmove != NO_MOVE) {
            begin_walk(f);
        } else if (f->held_ticks == 0) {
            f->walk_ticks = f->after_roll = 0;
            f->car_s = -1.0;
            if (f->plabel != c->walk_animation) show(f, c->walk_animation);
        }
        f->held_ticks++;
        f->held_key = key;
        f->stop_t = 0.0;
    } else if (f->pmove == NO_MOVE && f->held_ticks > 0) {
        if (f->lock) set_heading(f, boss_direction(f));
        if (held_steps(f) >= c->stops_after_steps) {
            show(f, c->stop_animation + STOP_BY_KEY[f->held_key]);
            double speed = hypot(f->walk_x, f->walk_y);
            if (speed > 0.0) f->held_x = f->walk_x / speed, f->held_y = f->walk_y / speed;
        }
        f->held_ticks = f->walk_ticks = 0;
    }
}

static void walk(struct fight *f, int key) {
    const struct constants *c = constants(f);
    double phi = 0.0;
    if (f->lock) {
        turn_to_boss(f, c->walk_turn_per_tick);
        phi = blend_direction(f->cam + key * QUARTER - f->pa);
    } else {
        set_heading(f, wrap(f->cam + key * QUARTER));
    }
    double forward = cos(phi), right = sin(phi), share = 1.0;
    if (f->walk_ticks < FIRST_TICKS)
        share = f->after_roll ? c->after_roll_first_share : forward < BACKWARD ? c->walk_first_share_back : c->walk_first_share;
    else if (f->after_roll && f->walk_ticks < FIRST_TICKS + STEP_TICKS)
        share = c->after_roll_second_share;
    f->walk_ticks++;
    forward *= share / STEP_TICKS * (forward > 0.0 ? c->walk_m[0] : c->walk_m[2]);
    right *= share / STEP_TICKS * (right > 0.0 ? c->walk_m[1] : c->walk_m[3]);
    f->walk_x = -f->psin * forward - f->pcos * right;
    f->walk_y = -f->pcos * forward + f->psin * right;
    f->vx += f->walk_x;
    f->vy += f->walk_y;
}

static void slide(struct fight *f) {
    const struct constants *c = constants(f);
    int stopping = f->plabel - c->stop_animation;
    if (stopping < 0 || stopping >= 4) return;
    double metres = f->plabel_t < c->label_step_s         ? c->stop_m[stopping]
                    : f->plabel_t < 2.0 * c->label_step_s ? c->stop_tail_m
                                                          : 0.0;
    f->vx += f->held_x * metres / STEP_TICKS;
    f->vy += f->held_y * metres / STEP_TICKS;
}

static void stamina_tick(struct fight *f) {
    const struct constants *c = constants(f);
    if (f->regen_wait > 0) f->regen_wait--;
    else if (regenerates(f)) f->sp = fmin(f->max_sp, f->sp + c->sp_per_tick);
    if (f->pmove == ROLL_MOVE && !f->paid) {
        f->sp = fmax(c->sp_floor, f->sp - c->roll_sp_cost);
        f->paid = 1;
    } else if (f->pmove >= 0 && f->paid < row_of(f)->payments && f->pt >= row_of(f)->payment_s[f->paid]) {
        f->sp = fmax(c->sp_floor, f->sp - row_of(f)->sp_per_payment);
        f->paid++;
    }
}

static void root_motion(struct fight *f) {
    const struct constants *c = constants(f);
    bool turns = f->pmove == ROLL_MOVE
                     ? f->pt < c->roll_settle_s || (c->roll_turn_from_s < f->pt && f->pt < c->roll_turn_to_s)
                     : row_of(f)->turn_from_s <= f->pt && f->pt < row_of(f)->turn_to_s;
    if (f->lock && turns) turn_to_boss(f, c->roll_turn_per_tick);
    double now = f->pt * c->ticks_per_label_s, forward = 0.0, right = 0.0;
    if (f->cf >= 0) forward = f->kf * (curve_at(f, f->cf, now + 1.0) - curve_at(f, f->cf, now));
    if (f->cr >= 0) right = f->kr * (curve_at(f, f->cr, now + 1.0) - curve_at(f, f->cr, now));
    f->vx = -f->psin * forward - f->pcos * right;
    f->vy = -f->pcos * forward + f->psin * right;
}

static void motion_tick(struct fight *f, int key) {
    f->vx = f->vy = 0.0;
    if (f->pmove == NO_MOVE) {
        if (key >= 0) walk(f, key);
        else slide(f);
    } else {
        root_motion(f);
    }
    if (f->car_s > 0.0 && f->pt < f->car_s) f->vx += f->car_x, f->vy += f->car_y;
    if (f->no_moves || standin_test.mail.stuck) f->vx = f->vy = 0.0;
    f->px += f->vx;
    f->py += f->vy;
}

static void roll_clock(struct fight *f) {
    const struct constants *c = constants(f);
    f->since_roll = 0.0;
    if (f->flinch_t >= 0.0) {
        f->flinch_t += c->tick_s;
        if (f->flinch_t >= c->flinch_s + c->flinch_after_s) {
            f->flinch_t = -1.0;
            show(f, f->last_roll);
        } else if (f->flinch_t >= c->flinch_s && f->plabel != c->flinch_after_animation) {
            show(f, c->flinch_after_animation);
        }
    } else if (f->plabel_t >= c->roll_end_s || f->pt >= 2.0 * c->roll_end_s - c->label_step_s) {
        start_idle(f);
    }
}

static void clock_tick(struct fight *f, int key) {
    const struct constants *c = constants(f);
    f->pt += c->tick_s;
    f->plabel_t += c->tick_s;
    if (f->pmove == ROLL_MOVE) {
        roll_clock(f);
        return;
    }
    f->since_roll += c->tick_s;
    if (f->pmove >= 0) {
        if (f->pt < row_of(f)->end_s) return;
        if (row_of(f)->on_end >= 0) start_move(f, row_of(f)->on_end);
        else start_idle(f);
    } else if (key < 0) {
        bool stopping = f->plabel >= c->stop_animation && f->plabel < c->stop_animation + 4;
        if (stopping && f->plabel_t >= c->stop_s) start_idle(f);
        else if (f->plabel == c->walk_animation && (f->stop_t += c->tick_s) > c->linger_s) start_idle(f);
    }
}

/* A button pressed while the player cannot act is remembered for a while, as in the game. */
static bool button_tick(struct fight *f, int direction, enum button pressed) {
    static enum button queued;
    static int wait, life;
    if (pressed != NO_BUTTON) {
        queued = pressed;
        wait = (int)constants(f)->input_delay_ticks;
        life = QUEUE_TICKS;
    }
    if (queued == NO_BUTTON) return false;
    if (wait > 0) {
        wait--;
        return true;
    }
    if (allowed(f, queued == ROLL_BUTTON ? 1 : 0)) {
        enum button button = queued;
        queued = NO_BUTTON;
        press(f, button, direction);
        return true;
    }
    if (--life <= 0) queued = NO_BUTTON;
    return false;
}

void player_tick(struct fight *f, int direction, enum button pressed) {
    stamina_tick(f);
    bool busy = button_tick(f, direction, pressed);
    int key = direction >= 0 && !busy && !f->no_moves && allowed(f, 2) ? direction : -1;
    if (!busy) hold(f, key);
    /* The key takes its time to start a walk, not to keep one up. */
    if (f->held_ticks <= (int)constants(f)->input_delay_ticks) key = -1;
    if (f->pmove >= 0 && row_of(f)->kind == PLAYER_GRABBED) held_tick(f);
    motion_tick(f, key);
    clock_tick(f, f->held_ticks > 0 ? f->held_key : -1);
}

bool invulnerable(const struct fight *f) {
    const struct constants *c = constants(f);
    if (f->pmove == ROLL_MOVE) return c->roll_invulnerable_from_s <= f->pt && f->pt < c->roll_invulnerable_to_s;
    if (f->pmove >= 0) return row_of(f)->invulnerable_from_s <= f->pt && f->pt < row_of(f)->invulnerable_to_s;
    return f->pmove == FALL_MOVE || f->pmove == SCENE_MOVE;
}

bool knocked_down(const struct fight *f) { return f->pmove >= 0 && row_of(f)->knocked_down == 1; }
