/* What a test may know and do that the real game would never show: exported as `standin_test`.
   standin_kit.py has the same structures; `size` tells when they differ. */
#ifndef TEST_BLOCK_H
#define TEST_BLOCK_H

#include <stdint.h>

enum source { BY_MESSAGES, BY_RAW, BY_ASYNC, BY_DINPUT, SOURCES };
enum screen { ON_TITLE, ON_LOADING, IN_FIELD, IN_ARENA, ON_DEATH };
enum { EVENTS = 512, DIGESTS = 64 };

struct input_event {
    uint8_t source, vk, down, spare;
    uint32_t spare_2;
    uint64_t tick;
    int64_t qpc;
};

/* Written by a test. A count of ticks runs down by itself; a switch stays; an order is set back to 0 when done. */
struct mailbox {
    int32_t crash;                /* order: write to address 0 */
    int32_t hang;                 /* switch: neither messages nor ticks */
    int32_t player_unknown_ticks; /* the player's animation has a name that nobody knows */
    int32_t boss_unknown_ticks;
    int32_t stuck;                /* switch: the player is in a wall, neither keys nor teleports move him */
    int32_t null_chains_ticks;    /* pointers to characters are 0 although the game runs */
    int32_t lose_focus_ticks;     /* another window takes the foreground; -1 for ever */
    int32_t menu_open;            /* switch, which Escape sets back: keys do nothing */
    int32_t unarmed;              /* switch: attacks hit nobody and look different */
    int32_t wrong_flags;          /* order: the boss counts as defeated from the next load on */
    int32_t fall;                 /* order: the player is far under the ground */
    int32_t kill_player;          /* order */
    int32_t kill_boss;            /* order */
    int32_t refuse_lock_on;       /* switch */
    int32_t lag_ms;               /* switch: every turn of the main loop takes this much longer */
    int32_t force_boss_move;      /* order: number of a move of the moveset + 1 */
    int32_t drop_lock_on;         /* order */
    int32_t to_title;             /* order: back to the title screen */
    int32_t ignore_keys;          /* switch: the window is in front, but keys do nothing */
    int32_t boss_still;           /* switch: the boss ends what he does and stands */
    int32_t spare[12];
};

struct test_block {
    char magic[8];
    uint32_t size, screen;
    uint64_t ticks, turns, frames;
    int64_t qpc_per_s, qpc_at_tick;
    uint32_t has_focus, loads, place, boss_here, boss_active, phase;
    uint32_t light_attacks, heavy_attacks, rolls, parries, boss_attacks;
    uint32_t hits_on_boss, hits_on_player, player_deaths, boss_deaths, lock_presses, interactions;
    int32_t souls, player_move, boss_move;
    double player[4], boss[4], camera; /* x, y, height, heading */
    uint32_t downs[SOURCES], ups[SOURCES];
    uint8_t held[SOURCES][256]; /* by virtual key */
    uint64_t event_count;
    struct input_event events[EVENTS];
    uint64_t digest, digests[DIGESTS]; /* of all the fights so far; and as it was after each whole second of ticks */
    struct mailbox mail;
};

extern volatile struct test_block standin_test;

#endif
