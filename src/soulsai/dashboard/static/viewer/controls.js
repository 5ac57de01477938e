// Play, pause, step, scrub, speed; by button, key and finger.

import { el, fitted, setText, sign } from "./elements.js";

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const MARKS = { hurt: ["#ff5a3c", 1], dealt: ["#d9a93c", 0.55], dodged: ["#3fbf68", 0.8] };
const PHASE_COLOUR = "#966edc";
const WHOLE_SECOND = 10;

function legend(scene) {
  const names = { hurt: "hit taken", dealt: "hit dealt", dodged: "dodge" };
  const entries = Object.entries(names).filter(([kind]) => scene.events.some((event) => event.kind === kind));
  const rows = entries.map(([kind, name]) => [MARKS[kind][0], name]);
  if (scene.phaseChanges.length) rows.push([PHASE_COLOUR, "next phase"]);
  return el(
    "span",
    { class: "fv-legend" },
    ...rows.map(([colour, name]) => {
      const mark = el("i");
      mark.style.background = colour;
      return el("span", {}, mark, name);
    }),
  );
}

export class Controls {
  // `does` holds toggle, step(count), seek(seconds), speed(number), death?, nextLoss?; `share` are [label, address, name of
  // a file to take], the first by key; `beside` is an element of the page around.
  constructor(scene, does, { share, beside } = {}) {
    this.scene = scene;
    this.does = does;
    const button = (name, label, key, run) =>
      el(
        "button",
        { type: "button", class: "fv-button", "aria-label": label, title: `${label} (${key})`, "data-do": name, onclick: run },
        sign(name),
      );
    this.play = button("play", "Play", "space", () => does.toggle());
    this.speed = el(
      "select",
      { class: "fv-speed", "aria-label": "Speed", title: "Speed ([ slower, ] faster)" },
      ...SPEEDS.map((value) => el("option", { value: String(value), text: `${value}×` })),
    );
    this.speed.addEventListener("change", () => does.speed(Number(this.speed.value)));
    this.now = el("span");
    this.clock = el("span", { class: "fv-clock" }, this.now, el("span", { class: "fv-whole", text: ` / ${scene.duration.toFixed(1)}` }), " s");
    this.range = el("input", {
      type: "range",
      class: "fv-range",
      min: "0",
      max: String(scene.count - 1),
      step: "1",
      value: "0",
      "aria-label": "Time of the fight",
    });
    this.range.addEventListener("input", () => does.seek(scene.time[Number(this.range.value)]));
    this.marks = el("canvas", { class: "fv-marks", "aria-hidden": "true" });
    this.unfit = fitted(this.marks, (width, height) => this.drawMarks(width, height));
    const wide = (tag, name, text, attributes) =>
      el(tag, { class: "fv-button fv-wide", "data-do": name, "aria-label": text, ...attributes }, sign(name), el("span", { text }));
    this.shared = (share ?? []).map(([label, href, download]) => el("a", { href, download, text: label, onclick: () => does.touched() }));
    this.share =
      this.shared.length > 0 &&
      el(
        "details",
        { class: "fv-share" },
        el("summary", { class: "fv-button fv-wide", "data-do": "share", title: "Save this fight as a file to send to somebody (s)" }, sign("share"), el("span", { text: "Share" })),
        el("div", { class: "fv-menu" }, ...this.shared),
      );
    this.death =
      does.death &&
      wide("button", "death", "Last 3 s", { type: "button", title: "Three seconds before the end (d)", onclick: () => does.death() });
    this.loss =
      does.nextLoss &&
      wide("button", "loss", "Next loss", { type: "button", title: "Next lost fight (n)", onclick: () => does.nextLoss() });
    this.root = el(
      "div",
      { class: "fv-controls", role: "group", "aria-label": "Playing" },
      el("div", { class: "fv-scrub" }, this.marks, this.range),
      el(
        "div",
        { class: "fv-buttons" },
        button("back", "Step back", "←", () => does.step(-1)),
        this.play,
        button("forward", "Step forward", "→", () => does.step(1)),
        this.clock,
        this.speed,
        el("span", { class: "fv-gap" }),
        legend(scene),
        beside,
        this.death,
        this.loss,
        this.share,
      ),
    );
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  // What happened when: hits taken and dealt, dodges, and the line where the boss changes.
  drawMarks(width, height) {
    const { scene, marks } = this;
    const context = marks.getContext("2d");
    context.clearRect(0, 0, width, height);
    const edge = 8; // the handle of the range is this wide to either side
    const x = (record) => edge + (record / Math.max(scene.count - 1, 1)) * (width - 2 * edge);
    context.fillStyle = "rgba(140,140,150,0.28)";
    context.fillRect(edge, height - 7, width - 2 * edge, 3);
    for (const record of scene.phaseChanges) {
      context.fillStyle = PHASE_COLOUR;
      context.fillRect(x(record) - 1, 0, 2, height);
    }
    for (const kind of ["dealt", "dodged", "hurt"])
      for (const event of scene.events) {
        if (event.kind !== kind) continue;
        const [colour, tall] = MARKS[kind];
        context.fillStyle = colour;
        const rise = (height - 8) * tall;
        context.fillRect(x(event.record) - 1, height - 8 - rise, 2, rise);
      }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target;
    const tag = target?.tagName;
    if (tag === "TEXTAREA" || tag === "SELECT" || (tag === "INPUT" && target.type !== "range") || document.querySelector("dialog[open]")) return;
    if (event.key === " " && (tag === "BUTTON" || tag === "A")) return; // presses what has the focus
    const stride = event.shiftKey ? WHOLE_SECOND : 1;
    const does = {
      " ": () => this.does.toggle(),
      ArrowLeft: () => this.does.step(-stride),
      ArrowRight: () => this.does.step(stride),
      Home: () => this.does.seek(0),
      End: () => this.does.seek(this.scene.duration),
      "[": () => this.faster(-1),
      "]": () => this.faster(1),
      n: () => this.does.nextLoss?.(),
      d: () => this.does.death?.(),
      s: () => this.shared[0]?.click(),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  faster(by) {
    const place = SPEEDS.indexOf(Number(this.speed.value)) + by;
    this.does.speed(SPEEDS[Math.min(Math.max(place, 0), SPEEDS.length - 1)]);
  }

  show({ record, time, playing, over, speed }) {
    const name = playing ? "pause" : over ? "again" : "play";
    if (this.play.dataset.shown !== name) {
      this.play.dataset.shown = name;
      this.play.replaceChildren(sign(name));
      this.play.setAttribute("aria-label", { pause: "Pause", again: "Play again", play: "Play" }[name]);
    }
    if (this.range.value !== String(record)) this.range.value = String(record);
    this.range.setAttribute("aria-valuetext", `${time.toFixed(1)} s of ${this.scene.duration.toFixed(1)} s`);
    setText(this.now, time.toFixed(1));
    if (this.speed.value !== String(speed)) this.speed.value = String(speed);
  }

  destroy() {
    document.removeEventListener("keydown", this.onKey);
    this.unfit();
  }
}
