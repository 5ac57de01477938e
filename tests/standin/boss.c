/* One tick of the boss: what he wants, what he does, where he goes. */
#include <math.h>

#include "game.h"

enum goal { NEW_GOAL, ATTACKING, APPROACH, BACKING, STRAFING, TURNING, CHANGING };
enum { NO_ACT = -1, ONLY_BACK = -1 /* pending: nothing follows the backing off */ };

static const struct constants *constants(const struct fight *f) { return &f->t->constants; }
static const struct phases *phase_of(const struct fight *f) { return &f->t->phases[f->phase - 1]; }

double boss_heading(const struct fight *f) { return atan2(f->bsin, f->bcos); }

void set_boss_heading(struct fight *f, double angle) {
    f->bsin = sin(angle);
    f->bcos = cos(angle);
}

double bearing_of_player(const struct fight *f) {
    return wrap(heading_to(f->px - f->bx, f->py - f->by) - boss_heading(f));
}

static double distance(const struct fight *f) { return hypot(f->px - f->bx, f->py - f->by); }
static double draw_between(struct fight *f, double low, double high) { return low + (high - low) * draw(f); }

static bool is_attack(const struct fight *f, int move) {
    int kind = f->t->boss_moves[move].kind;
    return kind == BOSS_ATTACK || kind == BOSS_TRANSFORM;
}

static bool is_step(const struct fight *f, int move) {
    int kind = f->t->boss_moves[move].kind;
    return kind == BOSS_WALK || kind == BOSS_RETREAT || kind == BOSS_STRAFE || kind == BOSS_TURN;
}

void start_boss_move(struct fight *f, int move) {
    /* Forbidden attacks and steps become standing; the next tick decides anew. */
    if ((is_attack(f, move) && (f->no_attacks || f->boss_no_attacks)) || (is_step(f, move) && f->no_moves)) {
        move = constants(f)->boss_idle_move;
        f->act = NO_ACT;
    }
    const struct boss_moves *row = &f->t->boss_moves[move];
    if (is_attack(f, move)) standin_test.boss_attacks++;
    f->bmove = move;
    f->bt = f->cum_f = f->cum_r = 0.0;
    f->linked = f->decided = f->hit_bits = f->linked_from = f->thrown = 0;
    f->stretch = -1;
    f->scale = 1.0;
    if (row->animation != f->blabel || row->kind == BOSS_ATTACK) {
        f->blabel = row->animation;
        f->blabel_t = 0.0;
    }
}

void boss_begin(struct fight *f) {
    f->phase = 1;
    f->poise = constants(f)->boss_max_poise;
    f->poise_t = f->clock_s = f->goal_t = f->bcar_x = f->bcar_y = 0.0;
    f->goal = NEW_GOAL;
    f->act = NO_ACT;
    f->link = f->links = f->pending = 0;
    f->first = 1;
    f->blabel = -1;
    f->blend_t = 99.0;
    for (int i = 0; i < MAX_ACTS; i++) f->ready_s[i] = 0.0;
    start_boss_move(f, constants(f)->boss_idle_move);
}

static void choose_chain(struct fight *f, const struct acts *act) {
    double total = 0.0;
    for (int i = 0; i < act->chains; i++) total += f->t->chains[act->first_chain + i].weight;
    double left = draw(f) * total;
    int chosen = act->first_chain;
    for (int i = 0; i < act->chains; i++) {
        chosen = act->first_chain + i;
        if (left < f->t->chains[chosen].weight) break;
        left -= f->t->chains[chosen].weight;
    }
    f->link = f->t->chains[chosen].first_link;
    f->links = f->t->chains[chosen].links;
}

static void take_act(struct fight *f, int act) {
    f->act = phase_of(f)->first_act + act;
    const struct acts *row = &f->t->acts[f->act];
    f->ready_s[act] = f->clock_s + row->cooldown_s;
    f->goal = APPROACH;
    f->goal_t = row->approach_s;
    choose_chain(f, row);
}

static void just_approach(struct fight *f) {
    f->goal = APPROACH;
    f->act = NO_ACT;
    f->goal_t = draw_between(f, phase_of(f)->first_approach_lo_s, phase_of(f)->first_approach_hi_s);
}

static bool must_change(const struct fight *f) {
    return phase_of(f)->change_move >= 0 && f->boss_hp <= phase_of(f)->change_hp_share * f->boss_max_hp;
}

static const struct rules *rule_for(const struct fight *f, double bearing, double gap) {
    for (int i = 0; i < phase_of(f)->rules; i++) {
        const struct rules *rule = &f->t->rules[phase_of(f)->first_rule + i];
        if (rule->gap_lo <= gap && gap < rule->gap_hi && rule->bearing_lo <= bearing && bearing <= rule->bearing_hi &&
            fabs(bearing) >= rule->beyond_rad)
            return rule;
    }
    return 0;
}

static double weight_of(const struct fight *f, const struct rules *rule, int act) {
    return rule->weights[act] > 0.0 && f->ready_s[act] > f->clock_s ? fmin(1.0, rule->weights[act]) : rule->weights[act];
}

static void decide(struct fight *f) {
    if (must_change(f)) {
        f->goal = CHANGING;
        return;
    }
    if (f->first) {
        f->first = 0;
        just_approach(f);
        return;
    }
    const struct rules *rule = rule_for(f, bearing_of_player(f), distance(f) - constants(f)->boss_radius_m);
    if (!rule) {
        f->goal = TURNING;
        return;
    }
    double down = knocked_down(f) ? phase_of(f)->down_weight : 0.0, total = down;
    for (int a = 0; a < MAX_ACTS; a++) total += weight_of(f, rule, a);
    double left = draw(f) * total - down;
    if (left < 0.0) {
        just_approach(f);
        return;
    }
    int act = TURN_ACT;
    for (int a = 0; a < MAX_ACTS; a++) {
        double weight = weight_of(f, rule, a);
        if (weight <= 0.0) continue;
        act = a;
        if (left < weight) break;
        left -= weight;
    }
    if (act == TURN_ACT) f->goal = TURNING;
    else take_act(f, act);
}

static void go_sideways(struct fight *f) {
    const struct phases *phase = phase_of(f);
    f->goal = STRAFING;
    if (distance(f) - constants(f)->boss_radius_m < phase->near_gap_m) {
        f->goal_t = draw_between(f, phase->near_lo_s, phase->near_hi_s);
        f->pending = bearing_of_player(f) > 0.0 ? constants(f)->boss_strafe_left_move : constants(f)->boss_strafe_right_move;
    } else {
        f->goal_t = draw_between(f, phase->far_lo_s, phase->far_hi_s);
        f->pending = draw(f) < 0.5 ? constants(f)->boss_strafe_left_move : constants(f)->boss_strafe_right_move;
    }
}

static void back_off(struct fight *f, double seconds, int pending) {
    f->goal = BACKING;
    f->goal_t = seconds;
    f->pending = pending;
}

/* Back off, go sideways, or decide at once what comes next. */
static void after_attack(struct fight *f) {
    const struct phases *phase = phase_of(f);
    double odds = f->act >= 0 ? f->t->acts[f->act].after_odds : 0.0, gap = distance(f) - constants(f)->boss_radius_m;
    bool seen = fabs(bearing_of_player(f)) <= phase->front_rad && gap <= phase->within_gap_m;
    if (odds <= 0.0 || !seen || draw(f) >= odds || must_change(f)) {
        decide(f);
        return;
    }
    for (int i = 0; i < phase->retreats; i++) {
        const struct retreats *retreat = &f->t->retreats[phase->first_retreat + i];
        if (gap < retreat->gap_lo || gap >= retreat->gap_hi || draw(f) >= retreat->chance) continue;
        back_off(f, draw_between(f, retreat->lo_s, retreat->hi_s), ONLY_BACK);
        return;
    }
    if (phase->back_off_s > 0.0) back_off(f, phase->back_off_s, 0);
    else go_sideways(f);
}

static bool within_approach(const struct fight *f) {
    return f->act >= 0 && distance(f) <= f->t->acts[f->act].approach_m;
}

static void begin_goal(struct fight *f) {
    const struct constants *c = constants(f);
    if (f->goal == CHANGING) {
        start_boss_move(f, phase_of(f)->change_move);
        return;
    }
    if (f->goal == APPROACH && within_approach(f)) {
        f->goal = ATTACKING;
        start_boss_move(f, f->t->acts[f->act].move);
        return;
    }
    if (f->goal == BACKING) {
        start_boss_move(f, c->boss_back_move);
        return;
    }
    double bearing = bearing_of_player(f), away = fabs(bearing);
    if (f->goal == TURNING || away > c->turn_beyond_rad) {
        if (away > c->turn_around_beyond_rad) start_boss_move(f, bearing > 0.0 ? c->boss_turn_right_around_move : c->boss_turn_left_around_move);
        else start_boss_move(f, bearing > 0.0 ? c->boss_turn_right_move : c->boss_turn_left_move);
        return;
    }
    int move = f->goal == APPROACH ? c->boss_walk_move : f->pending;
    if (f->bmove != move || f->bt + f->goal_t >= f->t->boss_moves[move].end_s) start_boss_move(f, move);
}

static void carry_on(struct fight *f) {
    decide(f);
    begin_goal(f);
}

/* Recovering from an attack: the next one is already chosen, and shown, before this one is over. */
static void lead(struct fight *f) {
    f->decided = f->linked = 1;
    after_attack(f);
    bool forbidden = f->no_attacks || f->boss_no_attacks || standin_test.mail.boss_still;
    if (f->goal == APPROACH && within_approach(f) && !forbidden) {
        f->goal = ATTACKING;
        f->blabel = f->t->boss_moves[f->t->acts[f->act].move].animation;
    } else {
        f->blabel = constants(f)->boss_idle_animation;
    }
    f->linked_from = 0;
    f->blabel_t = 0.0;
}

static void end_attack(struct fight *f) {
    if (f->goal == ATTACKING && f->act >= 0) {
        double label_t = f->blabel_t;
        start_boss_move(f, f->t->acts[f->act].move);
        f->blabel_t = label_t;
    } else {
        begin_goal(f);
    }
}

static void attack_mind(struct fight *f, const struct boss_moves *row) {
    if (standin_test.mail.boss_still) f->links = 0;
    if (!f->linked && f->links > 0 && row->link_s >= 0.0 && f->bt >= row->link_s) {
        f->linked = 1;
        const struct links *link = &f->t->links[f->link];
        double bearing = bearing_of_player(f);
        if (distance(f) < link->within_m && link->bearing_lo <= bearing && bearing <= link->bearing_hi) {
            f->link++;
            f->links--;
            start_boss_move(f, link->move);
            f->linked_from = 1;
            return;
        }
        f->links = 0;
    }
    if (!f->decided && f->bt >= row->label_end_s) {
        f->links = 0;
        lead(f);
    }
    if (f->bt >= row->end_s) end_attack(f);
}

static void walk_mind(struct fight *f) {
    f->goal_t -= constants(f)->tick_s;
    if (f->act >= 0) {
        if (f->goal_t > 0.0 && !within_approach(f)) return;
        f->goal = ATTACKING;
        start_boss_move(f, f->t->acts[f->act].move);
    } else if (f->goal_t <= 0.0 || distance(f) <= phase_of(f)->first_approach_m) {
        carry_on(f);
    }
}

static void retreat_mind(struct fight *f) {
    f->goal_t -= constants(f)->tick_s;
    bool only_back = f->pending == ONLY_BACK, far_enough = !only_back && -f->cum_f >= phase_of(f)->back_off_m;
    if (f->goal_t > 0.0 && !far_enough) return;
    if (only_back || must_change(f)) {
        carry_on(f);
    } else {
        go_sideways(f);
        begin_goal(f);
    }
}

static void special_mind(struct fight *f, const struct boss_moves *row) {
    if (f->bt < row->end_s) return;
    if (row->kind == BOSS_TRANSFORM) {
        f->phase++;
        f->first = 1;
        for (int a = 0; a < MAX_ACTS; a++) f->ready_s[a] = 0.0;
    }
    f->act = NO_ACT;
    carry_on(f);
}

static void mind_tick(struct fight *f) {
    const struct boss_moves *row = &f->t->boss_moves[f->bmove];
    bool still = standin_test.mail.boss_still;
    if (((f->no_moves || still) && is_step(f, f->bmove)) || (still && f->bt >= row->end_s)) {
        f->act = NO_ACT;
        f->links = 0;
        start_boss_move(f, constants(f)->boss_idle_move);
    } else if (row->kind == BOSS_ATTACK) {
        attack_mind(f, row);
    } else if (row->kind == BOSS_WALK) {
        walk_mind(f);
    } else if (row->kind == BOSS_RETREAT) {
        retreat_mind(f);
    } else if (row->kind == BOSS_STRAFE) {
        if ((f->goal_t -= constants(f)->tick_s) <= 0.0) carry_on(f);
    } else if (row->kind == BOSS_TURN) {
        if (f->bt >= row->end_s && f->goal == TURNING) carry_on(f);
        else if (f->bt >= row->end_s) begin_goal(f);
    } else if (row->kind == BOSS_IDLE) {
        if (!still && !(f->no_moves && (f->no_attacks || f->boss_no_attacks))) carry_on(f);
    } else {
        special_mind(f, row);
    }
}

/* The forward motion of a tick, scaled to the distance that the player had when the stretch began. */
static double stretched(struct fight *f, const struct boss_moves *row, double forward) {
    for (int i = 0; i < row->stretches; i++) {
        const struct stretches *part = &f->t->stretches[row->first_stretch + i];
        if (f->bt < part->from_s || f->bt >= part->to_s) continue;
        if (f->stretch != i) {
            f->stretch = i;
            f->scale = fmin(fmax(distance(f) - part->arrive_m, part->least_m), part->most_m) / part->reference_m;
        }
        return forward * f->scale;
    }
    return forward;
}

/* Move and turn for one tick. */
static void body_tick(struct fight *f, double *moved_x, double *moved_y) {
    const struct constants *c = constants(f);
    const struct boss_moves *row = &f->t->boss_moves[f->bmove];
    double dx = f->px - f->bx, dy = f->py - f->by;
    f->bt += c->tick_s;
    f->blabel_t += c->tick_s;
    f->clock_s += c->tick_s;
    double tick = fmin(f->bt * c->ticks_per_label_s, row->rows - 2.0);
    int whole = (int)tick;
    double share = tick - whole;
    const double(*curve)[4] = f->t->boss_curves + row->first_row + whole;
    double cum_f = curve[0][0] + share * (curve[1][0] - curve[0][0]);
    double cum_r = curve[0][1] + share * (curve[1][1] - curve[0][1]);
    double forward = cum_f - f->cum_f, right = cum_r - f->cum_r;
    f->cum_f = cum_f;
    f->cum_r = cum_r;
    forward = stretched(f, row, forward);
    const double *last = share < 0.5 && whole > 0 ? curve[-1] : curve[0];
    *moved_x = *moved_y = 0.0;
    if (f->no_moves) return;
    if (last[3] > 0.0) set_boss_heading(f, turned_to(boss_heading(f), heading_to(dx, dy), last[3]));
    if (last[2] > 0.0) forward += last[2] * fmax(0.0, -f->bsin * dx - f->bcos * dy);
    double x = -f->bsin * forward - f->bcos * right, y = -f->bcos * forward + f->bsin * right;
    if (f->bt < row->blend_s) {
        double fade = 1.0 - f->bt / row->blend_s;
        x += f->bcar_x * fade;
        y += f->bcar_y * fade;
    } else {
        f->bcar_x = x;
        f->bcar_y = y;
    }
    f->bx += x;
    f->by += y;
    *moved_x = x;
    *moved_y = y;
}

void boss_tick(struct fight *f, double *moved_x, double *moved_y) {
    mind_tick(f);
    body_tick(f, moved_x, moved_y);
    f->blend_t += 1.0 / TICKS_PER_S;
    f->poise_t += constants(f)->tick_s;
    if (f->poise_t >= constants(f)->poise_recovery_s) f->poise = constants(f)->boss_max_poise;
}
