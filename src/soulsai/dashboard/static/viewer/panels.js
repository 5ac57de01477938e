// What the agent thinks: the actions it weighs, the value it expects, and the layers of its network.

import { el, fitted, setText } from "./elements.js";

const FADE_MS = 140;
const POINT = "point at a cell to read it";
const ZERO = 128;
const HINTS = {
  q: "The return that it expects of each action; the line is zero. Grey ones have no effect now.",
  probability: "How likely it takes each action. Grey ones have no effect now.",
  none: "What was pressed. Grey ones have no effect now.",
  value: "The sum of rewards, discounted, that it expects from here to the end; click to go there.",
  network: "Each cell is a number: orange above zero, blue below, stronger is farther away.",
};

export class Panels {
  constructor(scene, onSeek) {
    this.scene = scene;
    this.actions = new Actions(scene);
    this.value = scene.thoughts ? new Value(scene, onSeek) : null;
    this.network = scene.thoughts?.layers.length ? new Network(scene) : null;
    const { thoughts, raw } = scene;
    const title = thoughts ? "What it wants" : "Actions";
    this.root = el(
      "aside",
      { class: "fv-panels", "aria-label": "What the agent thinks" },
      el("section", {}, el("h3", { text: title }), this.actions.note, el("p", { class: "fv-hint", text: HINTS[thoughts?.kind] ?? HINTS.none }), this.actions.root),
      this.value && el("section", {}, el("h3", {}, "What it expects", this.value.note), el("p", { class: "fv-hint", text: HINTS.value }), this.value.root),
      this.network && el("section", {}, el("h3", { text: "What it sees, and its network" }), el("p", { class: "fv-hint", text: HINTS.network }), this.network.root),
      !thoughts && el("p", { class: "fv-reason", text: thoughtless(raw.reason) }),
    );
  }

  show(record, now) {
    this.actions.show(record);
    this.value?.show(record);
    this.network?.show(record, now);
  }

  destroy() {
    this.value?.destroy();
    this.network?.destroy();
  }
}

const thoughtless = (reason) => (reason ? `No thoughts to show: ${reason}.` : "No thoughts to show.");

class Actions {
  constructor(scene) {
    this.scene = scene;
    this.note = el("p", { class: "fv-says" });
    const numbers = scene.thoughts?.actions ?? scene.raw.actions.map((_, number) => number);
    this.rows = numbers.map((number, position) => {
      const fill = el("i");
      const figure = el("span", { class: "fv-figure" });
      const name = el("span", { class: "fv-name", text: scene.raw.actions[number] });
      const track = el("div", { class: "fv-track" }, fill);
      const root = el("li", {}, name, track, figure);
      return { number, position, fill, figure, root, track };
    });
    this.root = el("ol", { class: "fv-actions" }, ...this.rows.map((row) => row.root));
    this.zero = scene.thoughts?.kind === "q" ? -scene.thoughts.least / Math.max(scene.thoughts.most - scene.thoughts.least, 1e-6) : 0;
    if (this.zero > 0) for (const row of this.rows) row.track.append(el("b", { class: "fv-zero", style: { left: `${100 * this.zero}%` } }));
    this.shown = -2;
  }

  show(record) {
    if (record === this.shown) return;
    this.shown = record;
    const { scene } = this;
    const { thoughts } = scene;
    const k = thoughts ? thoughts.of[record] : -1;
    const isNow = thoughts ? thoughts.isNow(record) : true;
    const played = scene.actionAfter(record);
    this.root.classList.toggle("idle", !isNow);
    setText(this.note, this.remark(record, isNow));
    for (const row of this.rows) {
      row.root.classList.toggle("closed", !scene.isOpen(record, row.number) && !(isNow && k >= 0 && (thoughts.open[k] >> row.position) & 1));
      row.root.classList.toggle("chosen", isNow && row.number === played);
      if (k < 0) continue;
      const score = thoughts.scores[k][row.position];
      const open = (thoughts.open[k] >> row.position) & 1;
      const share = thoughts.kind === "q" ? (score - thoughts.least) / Math.max(thoughts.most - thoughts.least, 1e-6) : score;
      const [from, to] = [Math.min(this.zero, share), Math.max(this.zero, share)];
      row.fill.style.left = `${100 * from}%`;
      row.fill.style.width = `${open ? 100 * Math.max(Math.min(to, 1) - from, 0) : 0}%`;
      row.fill.classList.toggle("below", thoughts.kind === "q" && score < 0);
      setText(row.figure, open ? (thoughts.kind === "q" ? score.toFixed(2) : percent(score)) : "");
    }
  }

  // In words: what it does, how sure it is, and what it expects.
  remark(record, isNow) {
    const { thoughts, raw, count } = this.scene;
    if (record === count - 1) return "over";
    if (!isNow) return "no choice until its move ends";
    const played = this.scene.actionAfter(record);
    const does = raw.wants?.[played] ?? raw.actions[played] ?? "";
    const k = thoughts ? thoughts.of[record] : -1;
    const row = this.rows.find(({ number }) => number === played);
    if (k < 0 || !row) return does;
    const score = thoughts.scores[k][row.position];
    if (thoughts.kind === "q") return `${does}: expects ${score.toFixed(2)}`;
    return `${does}: ${percent(score)}, expects ${thoughts.value[k].toFixed(2)}`;
  }
}

function percent(share) {
  if (share < 0.0005) return "0";
  return share >= 0.0995 ? `${Math.round(100 * share)} %` : `${(100 * share).toFixed(1)} %`;
}

class Value {
  constructor(scene, onSeek) {
    this.scene = scene;
    this.note = el("span", { class: "fv-note" });
    this.root = el("canvas", { class: "fv-value", role: "img", "aria-label": "Value over the fight" });
    this.root.addEventListener("pointerdown", (event) => {
      const { left, width } = this.root.getBoundingClientRect();
      onSeek(((event.clientX - left) / width) * scene.duration);
    });
    this.style = new Inks(this.root, () => this.draw());
    this.record = 0;
    this.unfit = fitted(this.root, (width, height) => {
      Object.assign(this, { width, height });
      this.draw();
    });
  }

  show(record) {
    if (record === this.record) return;
    this.record = record;
    this.draw();
  }

  draw() {
    const { thoughts, time, duration } = this.scene;
    const context = this.root.getContext("2d");
    if (!this.width || !thoughts.value.length) return;
    const least = Math.min(0, ...thoughts.value);
    const most = Math.max(...thoughts.value, least + 1e-6);
    const x = (seconds) => 1 + (seconds / Math.max(duration, 1e-6)) * (this.width - 2);
    const y = (value) => 4 + (1 - (value - least) / (most - least)) * (this.height - 8);
    const { accent, line, muted } = this.style.inks;
    context.clearRect(0, 0, this.width, this.height);
    context.strokeStyle = line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(0, y(0));
    context.lineTo(this.width, y(0));
    context.stroke();
    const at = x(time[this.record]);
    for (const [from, to, alpha] of [[0, at, 1], [at, this.width, 0.35]]) {
      context.save();
      context.beginPath();
      context.rect(from, 0, Math.max(to - from, 0), this.height);
      context.clip();
      context.globalAlpha = alpha;
      context.strokeStyle = accent;
      context.lineWidth = 1.6;
      context.lineJoin = "round";
      context.beginPath();
      thoughts.value.forEach((value, k) => context.lineTo(x(time[thoughts.records[k]]), y(value)));
      context.stroke();
      context.restore();
    }
    context.fillStyle = muted;
    context.fillRect(at - 0.5, 0, 1, this.height);
    const k = thoughts.of[this.record];
    setText(this.note, k >= 0 ? thoughts.value[k].toFixed(2) : "");
    if (k < 0) return;
    context.beginPath();
    context.arc(at, y(thoughts.value[k]), 3, 0, 2 * Math.PI);
    context.fillStyle = accent;
    context.fill();
  }

  destroy() {
    this.unfit();
    this.style.destroy();
  }
}

// Every unit of every layer as a cell that glows: warm above zero, cold below.
class Network {
  constructor(scene) {
    this.scene = scene;
    this.told = el("p", { class: "fv-told", text: POINT });
    const [first, ...rest] = scene.thoughts.layers;
    const tell = (unit) => this.tell(unit);
    const groups = groupsOf(scene.thoughts.sights, first.units);
    this.names = groups.flatMap(([title, names]) => names.map((name) => (title ? `${title}: ${name}` : name)));
    let from = 0;
    const seen = groups.map(([title, names]) => new Grid({ ...first, name: title || first.name, first: from, shown: names.length, next: (from += names.length) }, tell, () => this.refresh()));
    const further = rest.map((layer) => new Grid({ ...layer, first: 0, shown: layer.units }, null, () => this.refresh()));
    this.grids = [...seen, ...further];
    this.root = el("div", { class: "fv-network" }, ...seen.map((grid) => grid.figure), this.told, ...further.map((grid) => grid.figure));
    this.k = -1;
    this.style = new Inks(this.root, () => this.refresh());
    this.from = this.grids.map((grid) => new Float32Array(grid.layer.shown).fill(0));
    this.to = this.grids.map((grid) => new Float32Array(grid.layer.shown).fill(0));
    this.since = 0;
    this.settled = false;
  }

  tell(unit) {
    this.pointed = unit;
    const { thoughts } = this.scene;
    const name = this.names[unit];
    if (unit === null || !name || this.k < 0) {
      setText(this.told, POINT);
      return;
    }
    const layer = thoughts.layers[0];
    const value = ((layer.shades[this.k * layer.units + unit] - ZERO) / 127) * thoughts.sight_scale[unit];
    setText(this.told, `${name}  ${value.toFixed(2)}`);
  }

  refresh() {
    this.settled = false;
    if (this.k !== undefined) this.paint(performance.now());
  }

  show(record, now) {
    const k = this.scene.thoughts.of[record];
    if (k !== this.k) {
      const share = this.share(now);
      this.grids.forEach(({ layer }, g) => {
        for (let u = 0; u < layer.shown; u++) {
          this.from[g][u] += (this.to[g][u] - this.from[g][u]) * share;
          this.to[g][u] = k >= 0 ? (layer.shades[k * layer.units + layer.first + u] - ZERO) / 127 : 0;
        }
      });
      [this.k, this.since, this.settled] = [k, now, false];
      if (this.pointed !== undefined) this.tell(this.pointed);
    }
    this.paint(now);
  }

  share(now) {
    return Math.min(Math.max((now - this.since) / FADE_MS, 0), 1);
  }

  paint(now) {
    if (this.settled || !this.from) return;
    const share = this.share(now);
    this.grids.forEach((grid, g) => grid.draw(this.from[g], this.to[g], share, this.style.inks));
    this.settled = share >= 1;
  }

  destroy() {
    for (const grid of this.grids) grid.destroy();
    this.style.destroy();
  }
}

// [title, names] of the numbers that stand together; one group where nothing is known of them.
function groupsOf(sights, units) {
  const named = sights.reduce((sum, [, names]) => sum + names.length, 0);
  return named === units ? sights : [["", Array.from({ length: units }, (_, i) => `number ${i + 1}`)]];
}

// A stretch of the units of a layer: from `first` on, `shown` of them.
class Grid {
  constructor(layer, onPoint, onSize) {
    this.layer = layer;
    this.canvas = el("canvas", { class: "fv-grid", role: "img", "aria-label": `${layer.name}, ${layer.shown} cells` });
    this.figure = el("figure", {}, el("figcaption", {}, layer.name, el("span", { class: "fv-note", text: String(layer.shown) })), this.canvas);
    this.unfit = fitted(this.canvas, (width, height) => {
      this.width = width;
      this.columns = Math.max(8, Math.floor(width / this.cell(width)));
      const rows = Math.ceil(layer.shown / this.columns);
      this.size = width / this.columns;
      const wanted = Math.ceil(rows * this.size);
      if (Math.abs(wanted - height) >= 1) this.canvas.style.height = `${wanted}px`;
      onSize();
    });
    if (!onPoint) return;
    const unitAt = (event) => {
      const { left, top } = this.canvas.getBoundingClientRect();
      const unit = Math.floor((event.clientY - top) / this.size) * this.columns + Math.floor((event.clientX - left) / this.size);
      return unit >= 0 && unit < layer.shown ? layer.first + unit : null;
    };
    for (const kind of ["pointermove", "pointerdown"]) this.canvas.addEventListener(kind, (event) => onPoint(unitAt(event)));
    this.canvas.addEventListener("pointerleave", () => onPoint(null));
  }

  // Cells as large as they can be, as long as the layer takes a few rows only.
  cell(width) {
    return Math.max(4, Math.min(12, Math.sqrt((width * 52) / this.layer.units)));
  }

  draw(from, to, share, inks) {
    const context = this.canvas.getContext("2d");
    if (!this.size) return;
    context.clearRect(0, 0, this.width, this.canvas.height);
    const gap = this.size > 6 ? 1.2 : 0.6;
    for (let u = 0; u < this.layer.shown; u++) {
      const value = from[u] + (to[u] - from[u]) * share;
      const strength = Math.sqrt(Math.abs(value));
      const [x, y] = [(u % this.columns) * this.size, Math.floor(u / this.columns) * this.size];
      context.fillStyle = inks.cell;
      context.fillRect(x, y, this.size - gap, this.size - gap);
      if (strength < 0.02) continue;
      context.globalAlpha = Math.min(1, strength * 1.05);
      context.fillStyle = value > 0 ? inks.warm : inks.cold;
      context.fillRect(x, y, this.size - gap, this.size - gap);
      context.globalAlpha = 1;
    }
  }

  destroy() {
    this.unfit();
  }
}

// Colours of the page's style sheet for what is drawn; read again when light turns to dark.
class Inks {
  constructor(element, onChange) {
    this.element = element;
    this.system = window.matchMedia("(prefers-color-scheme: dark)");
    this.again = () => {
      this.read = null;
      onChange();
    };
    window.addEventListener("themechange", this.again);
    this.system.addEventListener("change", this.again);
  }

  get inks() {
    if (!this.read) {
      const style = getComputedStyle(this.element);
      const value = (name) => style.getPropertyValue(name).trim();
      const read = {
        accent: value("--accent"),
        line: value("--line"),
        muted: value("--muted"),
        cell: value("--fv-cell"),
        warm: value("--fv-warm"),
        cold: value("--fv-cold"),
      };
      if (!this.element.isConnected) return read; // it has no style yet
      this.read = read;
    }
    return this.read;
  }

  destroy() {
    window.removeEventListener("themechange", this.again);
    this.system.removeEventListener("change", this.again);
  }
}
