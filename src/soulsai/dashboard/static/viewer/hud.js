// Bars, names and the end of the fight, over the picture.

import { el, setText } from "./elements.js";

const ENDINGS = { won: "VICTORY ACHIEVED", died: "YOU DIED", fell: "YOU DIED", "time-out": "TIME OUT", "broken off": "BROKEN OFF" };

export class Hud {
  constructor(scene) {
    this.scene = scene;
    this.hp = bar("hp", "Player health");
    this.sp = bar("sp", "Player stamina");
    this.boss = bar("hp boss", "Boss health");
    this.playerText = el("span", { class: "fv-clip" });
    this.bossText = el("span", { class: "fv-clip" });
    this.bossMove = el("span", { class: "fv-move" });
    this.phase = el("span", { class: "fv-faint" });
    this.state = el("span", { class: "fv-state" });
    this.hpNumber = el("span", { class: "fv-number" });
    this.spNumber = el("span", { class: "fv-number" });
    this.bossNumber = el("span", { class: "fv-number" });
    this.now = el("i", { class: "fv-now" });
    this.windows = el("div", { class: "fv-windows" });
    this.strip = el("div", { class: "fv-strip" }, this.windows, this.now);
    this.title = el("div", { class: "fv-title" });
    this.below = el("div", { class: "fv-below" });
    this.end = el("div", { class: "fv-end", role: "status" }, this.title, this.below);
    this.shownMove = null;
    this.root = el(
      "div",
      { class: "fv-hud" },
      el(
        "div",
        { class: "fv-player" },
        el("div", { class: "fv-line" }, this.hp.root, this.hpNumber),
        el("div", { class: "fv-line" }, this.sp.root, this.spNumber),
        el("div", { class: "fv-line fv-text" }, this.playerText, this.state),
      ),
      el("div", { class: "fv-which", text: which(scene.raw) }),
      this.end,
      el(
        "div",
        { class: "fv-boss" },
        el("div", { class: "fv-line fv-text" }, el("b", { text: scene.raw.boss }), this.phase, this.bossMove, this.bossText),
        this.strip,
        el("div", { class: "fv-line" }, this.boss.root, this.bossNumber),
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
    setText(this.hpNumber, String(Math.ceil(hp)));
    setText(this.spNumber, String(Math.round(sp)));
    setText(this.bossNumber, String(Math.ceil(boss)));
    const shown = (names, numbers, ms) => `${names[numbers[record]]} ${(ms[record] / 1000).toFixed(1)} s`;
    setText(this.playerText, shown(raw.player_labels, raw.player_animation, raw.player_animation_ms));
    const move = raw.moves[raw.move[record]]?.name;
    const text = shown(raw.boss_labels, raw.boss_animation, raw.boss_animation_ms);
    setText(this.bossText, move && text.startsWith(`${move} `) ? text.slice(move.length + 1) : text);
    setText(this.phase, `phase ${raw.phase[record]} of ${raw.phases}`);
    const flags = raw.flags[record];
    setText(this.state, flags & 8 ? "falling" : flags & 1 ? "invulnerable" : sp <= 0 ? "exhausted" : "");
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
      setText(this.bossMove, move?.name ?? "");
      this.strip.classList.toggle("still", !move?.hits_ms.length);
      this.windows.replaceChildren(
        ...(move?.hits_ms ?? []).map(([from, to]) => {
          const mark = el("i");
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
    setText(this.title, ENDINGS[raw.outcome] ?? raw.outcome);
    const by = raw.killed_by ? (raw.killed_by === "fall" ? "fell off the cliff" : `killed by ${raw.killed_by}`) : "";
    setText(this.below, [by, `${raw.time_s} s`].filter(Boolean).join(" · "));
  }
}

// Which fight this is: of whom, at which step of the training, and where it was fought.
function which({ about, step, engine, outcome }) {
  const trained = Number.isFinite(step ?? NaN) ? `step ${step.toLocaleString("en")}` : "";
  const number = Number.isFinite(about.fight) ? `fight ${about.fight + 1} of its evaluation` : "";
  const variant = about.variant && about.variant !== "standard" ? about.variant : "";
  return [about.run, trained, number, variant, engine === "game" ? "in the game" : "", outcome].filter(Boolean).join(" · ");
}

function bar(kind, label) {
  const [rest, now] = [el("i", { class: "fv-rest" }), el("i", { class: "fv-fill" })];
  const root = el("div", { class: `fv-bar ${kind}`, role: "img", "aria-label": label }, rest, now);
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
