/* Blows and bodies: who hits whom, what it does, and that nobody stands inside anybody or off the ground. */
#include <math.h>

#include "game.h"

enum { CORNER_TRIES = 4 };

static const struct constants *constants(const struct fight *f) { return &f->t->constants; }

double wrap(double angle) {
    while (angle > M_PI) angle -= 2.0 * M_PI;
    while (angle < -M_PI) angle += 2.0 * M_PI;
    return angle;
}

double heading_to(double dx, double dy) { return dx == 0.0 && dy == 0.0 ? 0.0 : atan2(-dx, -dy); }

double turned_to(double angle, double wanted, double limit) {
    double away = wrap(wanted - angle);
    return wrap(angle + fmax(-limit, fmin(limit, away)));
}

/* The n-th number of a fight depends on its seed and n alone (the finaliser of SplitMix64). */
double draw(struct fight *f) {
    uint64_t z = f->key + 0x9E3779B97F4A7C15u * (++f->draws);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) / (double)(1ull << 53);
}

double ground_z(const struct tables *t, double x, double y) {
    const struct constants *c = &t->constants;
    double u = x - c->ground_origin_x, v = y - c->ground_origin_y;
    return c->ground_1 + c->ground_u * u + c->ground_v * v + c->ground_uu * u * u + c->ground_uv * u * v + c->ground_vv * v * v;
}

int nearest_edge(const struct tables *t, double x, double y, double *left) {
    int nearest = 0;
    *left = 1e9;
    for (int i = 0; i < t->constants.edge_count; i++) {
        const struct edges *edge = &t->edges[i];
        double away = edge->offset - edge->normal_x * x - edge->normal_y * y;
        if (away < *left) *left = away, nearest = i;
    }
    return nearest;
}

static bool in_hit(const struct fight *f, const struct hits *hit, double share) {
    double dx = f->px - f->bx, dy = f->py - f->by, r = hypot(dx, dy);
    if (hit->shape == SHAPE_DISC)
        return hypot(dx + f->bsin * hit->offset_m, dy + f->bcos * hit->offset_m) <= hit->reach_m;
    if (r > hit->reach_m || r < hit->inner_m) return false;
    if (hit->shape == SHAPE_THRUST) {
        double along = -f->bsin * dx - f->bcos * dy, across = -f->bcos * dx + f->bsin * dy;
        return along > 0.0 && fabs(across) <= hit->half_width_m;
    }
    double bearing = bearing_of_player(f);
    if (!hit->sweep) return hit->arc_from_rad <= bearing && bearing <= hit->arc_to_rad;
    return fabs(wrap(bearing - (hit->arc_from_rad + share * (hit->arc_to_rad - hit->arc_from_rad)))) <= hit->blade_rad;
}

/* 0 front, 1 right, 2 back, 3 left of somebody with a heading. */
static int side_of(double bearing) {
    if (fabs(bearing) <= M_PI_4) return 0;
    if (fabs(bearing) >= 3.0 * M_PI_4) return 2;
    return bearing > 0.0 ? 1 : 3;
}

static void hurt(struct fight *f, double damage) {
    damage = fmin(fmax(f->hp, 0.0), damage);
    f->hp -= damage;
    f->taken += damage;
    f->hit_by = f->bmove;
    standin_test.hits_on_player++;
}

static void grab(struct fight *f, int move) {
    start_reaction(f, constants(f)->grabbed_move, wrap(boss_heading(f) + M_PI));
    f->lock = 0; /* nobody is locked on in a throw */
    double held_m = f->t->player_moves[constants(f)->grabbed_move].held_m;
    f->px = f->bx - f->bsin * held_m;
    f->py = f->by - f->bcos * held_m;
    f->links = 0;
    start_boss_move(f, move);
    standin_test.hits_on_player++;
}

/* Is the boss in the half of the world that the player looks at? */
static bool faces_boss(const struct fight *f) {
    return fabs(wrap(heading_to(f->bx - f->px, f->by - f->py) - f->pa)) <= M_PI_2;
}

static void struck(struct fight *f, const struct hits *hit) {
    const struct player_moves *moves = f->t->player_moves;
    int caught = f->t->boss_moves[f->bmove].grab_move, reaction = hit->reaction;
    double damage = round(hit->damage);
    if (caught >= 0) {
        grab(f, caught);
        return;
    }
    if (f->pmove >= 0 && moves[f->pmove].guard_from_s <= f->pt && f->pt < moves[f->pmove].guard_to_s && faces_boss(f)) {
        bool holds = f->sp - hit->guard_sp > constants(f)->sp_floor;
        f->sp = fmax(constants(f)->sp_floor, f->sp - hit->guard_sp);
        if (holds) {
            hurt(f, round(damage * moves[f->pmove].guard_factor));
            return;
        }
        reaction = constants(f)->guard_break_move;
    }
    hurt(f, damage);
    double to_boss = heading_to(f->bx - f->px, f->by - f->py);
    if (f->pmove == ROLL_MOVE && !moves[reaction].knocked_down) {
        start_flinch(f, constants(f)->flinch_animations[side_of(wrap(to_boss - f->pa))]);
        return;
    }
    start_reaction(f, reaction, to_boss);
    if (hit->push_m > 0.0 && reaction == hit->reaction && moves[reaction].moved_m > 0.0)
        f->kf = f->kr = hit->push_m / moves[reaction].moved_m;
}

void boss_blows(struct fight *f) {
    const struct boss_moves *row = &f->t->boss_moves[f->bmove];
    if (f->no_hits) return;
    for (int i = 0; i < row->hits; i++) {
        const struct hits *hit = &f->t->hits[row->first_hit + i];
        double since = f->bt - hit->from_s, lasts = hit->to_s - hit->from_s;
        if (f->hit_bits & (1 << i) || since < 0.0 || since > lasts) continue;
        if (!in_hit(f, hit, since / lasts) || invulnerable(f)) continue;
        f->hit_bits |= 1 << i;
        const struct player_moves *mine = f->pmove >= 0 ? &f->t->player_moves[f->pmove] : 0;
        if (mine && hit->parriable && mine->parry_from_s <= f->pt && f->pt < mine->parry_to_s && faces_boss(f)) {
            f->act = -1;
            f->links = 0;
            start_boss_move(f, constants(f)->boss_parried_move);
        } else {
            struck(f, hit);
        }
        return;
    }
}

static void wound_boss(struct fight *f, double damage) {
    damage = fmin(f->boss_hp, damage);
    f->boss_hp -= damage;
    f->dealt += damage;
    f->blend_t = 0.0;
    f->blend_side = side_of(bearing_of_player(f));
    standin_test.hits_on_boss++;
}

static void strike_boss(struct fight *f, const struct strikes *strike) {
    const struct boss_moves *its = &f->t->boss_moves[f->bmove];
    bool opened = its->kind == BOSS_OPEN || its->kind == BOSS_PARRIED;
    wound_boss(f, round(strike->damage * (opened ? constants(f)->open_damage_factor : 1.0)));
    f->poise_t = 0.0;
    if (opened || its->kind == BOSS_EXECUTED || its->kind == BOSS_TRANSFORM) return;
    f->poise -= strike->poise;
    if (f->poise > 0.0 || its->throws > 0 || f->boss_hp <= 0.0) return;
    f->poise = constants(f)->boss_max_poise;
    f->act = -1;
    f->links = 0;
    start_boss_move(f, constants(f)->boss_stagger_move);
}

static bool in_strike(const struct fight *f, const struct strikes *strike) {
    double dx = f->bx - f->px, dy = f->by - f->py;
    return hypot(dx, dy) <= strike->reach_m && fabs(wrap(heading_to(dx, dy) - f->pa)) <= strike->arc_rad;
}

void player_blows(struct fight *f) {
    if (f->pmove < 0 || f->no_hits || f->unarmed) return;
    const struct player_moves *mine = &f->t->player_moves[f->pmove];
    for (int i = 0; i < mine->strikes; i++) {
        const struct strikes *strike = &f->t->strikes[mine->first_strike + i];
        if (f->struck & (1 << i) || f->pt < strike->from_s || f->pt > strike->to_s) continue;
        if (mine->kind != PLAYER_RIPOSTE && !in_strike(f, strike)) continue;
        f->struck |= 1 << i;
        strike_boss(f, strike);
    }
}

bool may_riposte(const struct fight *f) {
    return f->t->boss_moves[f->bmove].kind == BOSS_PARRIED && faces_boss(f) &&
           hypot(f->px - f->bx, f->py - f->by) <= constants(f)->riposte_m &&
           fabs(wrap(boss_heading(f) - f->pa)) >= constants(f)->riposte_facing_rad;
}

/* A player who is held takes the damage of the throw, blow by blow. */
void held_tick(struct fight *f) {
    const struct boss_moves *its = &f->t->boss_moves[f->bmove];
    const struct throws *blows = &f->t->throws[its->first_throw];
    for (; f->thrown < its->throws && f->bt >= blows[f->thrown].at_s; f->thrown++)
        if (!f->no_hits) hurt(f, round(blows[f->thrown].damage));
}

/* Whoever moves in is stopped. (boss_x, boss_y) is the boss's motion in this tick. */
void separate(struct fight *f, double boss_x, double boss_y) {
    double least = constants(f)->least_distance_m, dx = f->px - f->bx, dy = f->py - f->by, r = hypot(dx, dy);
    if (r >= least || (f->pmove >= 0 && f->t->player_moves[f->pmove].kind == PLAYER_GRABBED)) return;
    double nx = r < 1e-9 ? -f->bsin : dx / r, ny = r < 1e-9 ? -f->bcos : dy / r, overlap = least - r;
    double mine = fmax(0.0, -(f->vx * nx + f->vy * ny)), its = fmax(0.0, boss_x * nx + boss_y * ny);
    double share = mine + its > 1e-9 ? mine / (mine + its) : 1.0;
    double stopped = fmin(its, overlap * (1.0 - share));
    if (stopped > 0.0) {
        double held = constants(f)->contact_drag * stopped / its;
        f->bx -= nx * stopped + held * (boss_x - nx * its);
        f->by -= ny * stopped + held * (boss_y - ny * its);
    }
    if (standin_test.mail.stuck) return;
    f->px += nx * (overlap - stopped);
    f->py += ny * (overlap - stopped);
}

void keep_boss_inside(struct fight *f) {
    double radius = constants(f)->boss_radius_m, left;
    int which = nearest_edge(f->t, f->bx, f->by, &left);
    for (int i = 0; i < CORNER_TRIES && left < radius; i++) {
        f->bx += f->t->edges[which].normal_x * (left - radius);
        f->by += f->t->edges[which].normal_y * (left - radius);
        which = nearest_edge(f->t, f->bx, f->by, &left);
    }
}
