// Bars, names and the end of the fight, over the picture.

import { make, write } from "./elements.js";

const ENDINGS = { won: "VICTORY ACHIEVED", died: "YOU DIED", fell: "YOU DIED", "time-out": "TIME OUT", "broken off": "BROKEN OFF" };

export class Hud {
  constructor(scene) {
    this.scene = scene;
    this.hp = bar("hp", "Player health");
    this.sp = bar("sp", "Player stamina");
    this.boss = bar("hp boss", "Boss health");
    this.playerText = make("span", { class: "fv-clip" });
    this.bossText = make("span", { class: "fv-clip" });
    this.bossMove = make("span", { class: "fv-move" });
    this.phase = make("span", { class: "fv-faint" });
    this.state = make("span", { class: "fv-state" });
    this.hpNumber = make("span", { class: "fv-number" });
    this.spNumber = make("span", { class: "fv-number" });
    this.bossNumber = make("span", { class: "fv-number" });
    this.now = make("i", { class: "fv-now" });
    this.windows = make("div", { class: "fv-windows" });
    this.strip = make("div", { class: "fv-strip" }, this.windows, this.now);
    this.title = make("div", { class: "fv-title" });
    this.below = make("div", { class: "fv-below" });
    this.end = make("div", { class: "fv-end", role: "status" }, this.title, this.below);
    this.shownMove = null;
    this.root = make(
      "div",
      { class: "fv-hud" },
      make(
        "div",
        { class: "fv-player" },
        make("div", { class: "fv-line" }, this.hp.root, this.hpNumber),
        make("div", { class: "fv-line" }, this.sp.root, this.spNumber),
        make("div", { class: "fv-line fv-text" }, this.playerText, this.state),
      ),
      this.end,
      make(
        "div",
        { class: "fv-boss" },
        make("div", { class: "fv-line fv-text" }, make("b", { text: scene.raw.boss }), this.phase, this.bossMove, this.bossText),
        this.strip,
        make("div", { class: "fv-line" }, this.boss.root, this.bossNumber),
      ),
    );
  }

  show(record, time) {
    const { raw } = this.scene;
    const [hp, sp, boss] = [raw.player_hp[record], raw.player_sp[record], raw.boss_hp[record]];
    this.hp.set(hp / raw.player_max_hp);
    this.sp.set(Math.abs(sp) / raw.player_max_sp);
    this.sp.root.classList.toggle("exhausted", sp <= 0);
    this.boss.set(boss / raw.boss_max_hp);
    write(this.hpNumber, String(Math.ceil(hp)));
    write(this.spNumber, String(Math.round(sp)));
    write(this.bossNumber, String(Math.ceil(boss)));
    const shown = (names, numbers, ms) => `${names[numbers[record]]} ${(ms[record] / 1000).toFixed(1)} s`;
    write(this.playerText, shown(raw.player_labels, raw.player_animation, raw.player_animation_ms));
    write(this.bossText, shown(raw.boss_labels, raw.boss_animation, raw.boss_animation_ms));
    write(this.phase, `phase ${raw.phase[record]} of ${raw.phases}`);
    const flags = raw.flags[record];
    write(this.state, flags & 8 ? "falling" : flags & 1 ? "invulnerable" : sp <= 0 ? "exhausted" : "");
    this.state.dataset.kind = flags & 8 ? "bad" : flags & 1 ? "good" : "warn";
    this.showMove(record, time);
    this.showEnd(record);
  }

  // The way through the boss's move, with the times at which it hits.
  showMove(record, time) {
    const { raw } = this.scene;
    const place = raw.move[record];
    const move = raw.moves[place];
    if (place !== this.shownMove) {
      this.shownMove = place;
      write(this.bossMove, move?.name ?? "");
      this.strip.classList.toggle("still", !move?.hits_ms.length);
      this.windows.replaceChildren(
        ...(move?.hits_ms ?? []).map(([from, to]) => {
          const mark = make("i");
          mark.style.left = `${Math.min(100, (100 * from) / move.end_ms)}%`;
          mark.style.width = `${Math.max(1, (100 * (to - from)) / move.end_ms)}%`;
          return mark;
        }),
      );
    }
    if (!move) return;
    const passed = raw.move_ms[record] + 1000 * Math.max(0, time - this.scene.time[record]);
    this.now.style.left = `${Math.min(100, (100 * passed) / Math.max(move.end_ms, 1))}%`;
  }

  showEnd(record) {
    const { raw, count } = this.scene;
    const over = record === count - 1;
    this.end.classList.toggle("shown", over);
    if (!over) return;
    this.end.dataset.outcome = raw.outcome;
    write(this.title, ENDINGS[raw.outcome] ?? raw.outcome);
    const by = raw.killed_by ? (raw.killed_by === "fall" ? "fell off the cliff" : `killed by ${raw.killed_by}`) : "";
    write(this.below, [by, `${raw.time_s} s`].filter(Boolean).join(" · "));
  }
}

function bar(kind, label) {
  const [rest, now] = [make("i", { class: "fv-rest" }), make("i", { class: "fv-fill" })];
  const root = make("div", { class: `fv-bar ${kind}`, role: "img", "aria-label": label }, rest, now);
  let shown = -1;
  const set = (share) => {
    const width = Math.min(Math.max(share, 0), 1);
    if (width === shown) return;
    shown = width;
    now.style.transform = `scaleX(${width})`;
    rest.style.transform = `scaleX(${width})`;
  };
  return { root, set };
}
