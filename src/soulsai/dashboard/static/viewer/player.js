// Plays one fight: picture, bars, thoughts and controls.

import { Controls } from "./controls.js";
import { el } from "./elements.js";
import { Hud } from "./hud.js";
import { Panels } from "./panels.js";
import { Scene } from "./scene.js";
import { Stage } from "./stage.js";

const LAST_S = 3;
const LONGEST_FRAME_MS = 250; // a page that was hidden goes on where it was

export function mountPlayer(element, raw, options = {}) {
  const player = new Player(element, raw, options);
  return {
    play: () => player.play(),
    pause: () => player.pause(),
    show: (seconds) => player.seek(seconds),
    seek: (record) => player.seek(player.scene.time[Math.min(Math.max(Math.round(record), 0), player.scene.count - 1)]),
    speed: (value) => player.setSpeed(value),
    destroy: () => player.destroy(),
    get state() {
      return player.state();
    },
  };
}

class Player {
  constructor(element, raw, { autoplay = true, speed = 1, before = 0, bare = false, onEnd, onNextLoss, onTouch, onSpeed, onTime, share, beside } = {}) {
    this.scene = new Scene(raw);
    Object.assign(this, { onEnd, onTouch, onSpeed, onTime, time: before ? Math.max(0, this.scene.duration - before) : 0, speedNow: speed, playing: false, ended: false });
    const touched = (run) => (...values) => {
      this.onTouch?.();
      run(...values);
    };
    const does = {
      toggle: touched(() => (this.playing ? this.pause() : this.play())),
      step: touched((count) => this.step(count)),
      seek: touched((seconds) => this.seek(seconds)),
      speed: (value) => this.setSpeed(value),
      nextLoss: onNextLoss && touched(onNextLoss),
      death: this.scene.lost && touched(() => this.beforeEnd(LAST_S)),
      touched: touched(() => {}),
    };
    const canvas = el("canvas", { class: "fv-stage", role: "img", "aria-label": describe(raw) });
    canvas.addEventListener("click", does.toggle);
    this.hud = new Hud(this.scene);
    this.controls = bare ? null : new Controls(this.scene, does, { share, beside });
    this.panels = bare ? null : new Panels(this.scene, does.seek);
    this.picture = el("div", { class: "fv-picture" }, canvas, this.hud.root);
    this.root = el("div", { class: bare ? "fv-player-root bare" : "fv-player-root" }, el("div", { class: "fv-main" }, this.picture, this.controls?.root), this.panels?.root);
    element.append(this.root);
    this.stage = new Stage(canvas, this.scene);
    this.stage.again = () => this.draw(performance.now());
    this.frame = (now) => this.tick(now);
    this.draw(performance.now());
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (autoplay && !still) this.play();
  }

  // What led to the end.
  beforeEnd(seconds) {
    this.time = Math.max(0, this.scene.duration - seconds);
    this.play();
  }

  get over() {
    return this.time >= this.scene.duration;
  }

  state() {
    return { time: this.time, record: this.scene.at(this.time), playing: this.playing, over: this.over, speed: this.speedNow };
  }

  play() {
    if (this.over) this.time = 0;
    this.ended = false;
    if (this.playing) return;
    this.playing = true;
    this.last = performance.now();
    this.wake();
    this.draw(this.last);
  }

  pause() {
    this.playing = false;
    this.draw(performance.now());
  }

  seek(seconds) {
    this.time = Math.min(Math.max(seconds, 0), this.scene.duration);
    this.ended = this.over;
    this.settleUntil = performance.now() + LONGEST_FRAME_MS;
    this.wake();
    this.draw(performance.now());
  }

  step(count) {
    this.playing = false;
    const record = this.scene.at(this.time);
    // Back from the middle between two records is to the one that was just passed.
    const from = count < 0 && this.time > this.scene.time[record] + 1e-6 ? record + 1 : record;
    this.seek(this.scene.time[Math.min(Math.max(from + count, 0), this.scene.count - 1)]);
  }

  setSpeed(value) {
    this.speedNow = value;
    this.onSpeed?.(value);
    this.draw(performance.now());
  }

  wake() {
    if (!this.asked) this.asked = requestAnimationFrame(this.frame);
  }

  tick(now) {
    this.asked = 0;
    if (this.playing) {
      const passed = Math.min(now - this.last, LONGEST_FRAME_MS);
      this.last = now;
      this.time = Math.min(this.time + (Math.max(passed, 0) / 1000) * this.speedNow, this.scene.duration);
      if (this.over) this.playing = false;
    }
    this.draw(now);
    // Cells of the network still fade for a moment after the picture stands.
    if (this.playing) this.wake();
    else if (now < (this.settleUntil ?? 0)) this.wake();
    if (this.over && !this.ended) {
      this.ended = true;
      this.settleUntil = now + LONGEST_FRAME_MS;
      this.wake();
      this.onEnd?.();
    }
  }

  draw(now) {
    if (!this.stage) return;
    const record = this.scene.at(this.time);
    this.stage.draw(this.time);
    this.hud.show(record, this.time);
    this.panels?.show(record, now);
    this.controls?.show(this.state());
    this.onTime?.(this.time);
    this.root.dataset.record = String(record);
    this.root.dataset.playing = String(this.playing);
  }

  destroy() {
    this.playing = false;
    cancelAnimationFrame(this.asked);
    this.asked = 0;
    this.stage.again = null;
    this.controls?.destroy();
    this.panels?.destroy();
    this.stage.destroy();
    this.root.remove();
  }
}

const describe = (raw) => `A fight against ${raw.boss}, seen from above: ${raw.outcome} after ${raw.time_s} seconds`;
