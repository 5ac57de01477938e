// Brings the series of those charts that are in view, at most once a second, in one request per run.

import * as api from "./api.js";

const EVERY_MS = 1000;
const LEAST_MS = 900; // between two requests: events come once a second, a little early or late
const GATHER_MS = 20; // charts that come into view together are asked for together
const AHEAD_PX = 240;
const MOST_POINTS = 2000;
const MOST_NAMES = 48; // the server answers 64 at once

export class Feed {
  // onError(error) tells what went wrong; null when nothing does.
  constructor({ axis, onError }) {
    this.axis = axis;
    this.range = null;
    this.smoothing = 0;
    this.panels = new Map();
    this.version = 1;
    this.onError = onError;
    this.extents = new Map();
    this.stopper = new AbortController();
    this.busy = false;
    this.watcher = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: `${AHEAD_PX}px 0px` });
    this.pumpedAt = -EVERY_MS;
    this.timer = setInterval(() => this.rested() && this.pump(), EVERY_MS);
    this.onShown = () => !document.hidden && this.pump();
    document.addEventListener("visibilitychange", this.onShown);
  }

  // panel: {root, needs: [{run, name}], width(), show(), receive(data, feed), leave()}
  add(panel) {
    this.panels.set(panel.root, { panel, inView: false, version: 0 });
    this.watcher.observe(panel.root);
  }

  remove(panel) {
    this.watcher.unobserve(panel.root);
    this.panels.delete(panel.root);
  }

  // The history has grown: what is in view is asked for again, at once if it has not been for a while.
  grown() {
    this.version++;
    clearTimeout(this.growing);
    this.growing = setTimeout(() => this.pump(), Math.max(0, this.pumpedAt + LEAST_MS - performance.now()));
  }

  rested() {
    return performance.now() - this.pumpedAt >= LEAST_MS;
  }

  look(changes) {
    const fetched = "axis" in changes || "range" in changes;
    if ("axis" in changes && changes.axis !== this.axis) {
      this.extents.clear();
      this.range = null;
    }
    Object.assign(this, changes);
    if (!fetched) {
      for (const { panel, inView } of this.panels.values()) if (inView) panel.redraw(this);
      return;
    }
    this.stopper.abort();
    this.stopper = new AbortController();
    this.busy = false;
    for (const entry of this.panels.values()) entry.version = 0;
    this.soon();
  }

  // From the least to the largest x of all that was brought: every chart shows the same stretch.
  get domain() {
    if (this.range) return this.range;
    let [low, high] = [Infinity, -Infinity];
    for (const [from, to] of this.extents.values()) [low, high] = [Math.min(low, from), Math.max(high, to)];
    return low <= high ? [low, high] : null;
  }

  destroy() {
    clearInterval(this.timer);
    clearTimeout(this.gathering);
    clearTimeout(this.growing);
    document.removeEventListener("visibilitychange", this.onShown);
    this.watcher.disconnect();
    this.stopper.abort();
    this.panels.clear();
    this.destroyed = true;
  }

  seen(entries) {
    for (const { target, isIntersecting } of entries) {
      const entry = this.panels.get(target);
      if (!entry || entry.inView === isIntersecting) continue;
      entry.inView = isIntersecting;
      if (isIntersecting) entry.panel.show();
      else {
        entry.panel.leave();
        entry.version = 0;
      }
    }
    this.soon();
  }

  soon() {
    clearTimeout(this.gathering);
    this.gathering = setTimeout(() => this.pump(), GATHER_MS);
  }

  async pump() {
    if (this.busy || this.destroyed || document.hidden) return;
    const due = [...this.panels.values()].filter((entry) => entry.inView && entry.version !== this.version);
    if (!due.length) return;
    this.busy = true;
    this.pumpedAt = performance.now();
    const { version, stopper } = this;
    try {
      const series = await this.fetch(due.map((entry) => entry.panel), stopper.signal);
      if (stopper.signal.aborted || this.destroyed) return;
      for (const entry of due) entry.version = version;
      for (const entry of due) if (entry.inView) entry.panel.receive(series, this);
      this.onError?.(null);
    } catch (error) {
      if (!stopper.signal.aborted && !this.destroyed) this.onError?.(error);
    } finally {
      if (this.stopper === stopper) {
        this.busy = false;
        const late = [...this.panels.values()].some((entry) => entry.inView && !entry.version && !due.includes(entry));
        if (late && !this.destroyed) this.soon(); // came into view meanwhile
      }
    }
  }

  async fetch(panels, signal) {
    const wanted = new Map();
    let points = 200;
    for (const panel of panels) {
      points = Math.max(points, Math.ceil((1.5 * panel.width()) / 100) * 100);
      for (const { run, name } of panel.needs) {
        if (!wanted.has(run)) wanted.set(run, new Set());
        wanted.get(run).add(name);
      }
    }
    const series = new Map();
    const ask = async (run, names) => {
      const query = api.seriesQuery(names, this.axis, this.range, Math.min(points, MOST_POINTS));
      const answer = await api.json(api.runPath(run, `/series?${query}`), { signal });
      for (const name of names) {
        const found = answer.series?.[name] ?? { x: [], y: [] };
        series.set(`${run}\n${name}`, found);
        if (!this.range && found.x.length) this.extents.set(`${run}\n${name}`, [found.x[0], found.x[found.x.length - 1]]);
      }
    };
    await Promise.all([...wanted].flatMap(([run, names]) => slices([...names], MOST_NAMES).map((part) => ask(run, part))));
    return series;
  }
}

function slices(list, size) {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));
}
