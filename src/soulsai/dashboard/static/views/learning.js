// Does it learn: every metric of a run over steps, game hours, training time or date.

import { runPath } from "../api.js";
import { el, empty, fill } from "../dom.js";
import { Feed } from "../feed.js";
import { chartsOf, specOfRun } from "../groups.js";
import { Panel } from "../panel.js";
import { chartToolbar, keptSettings } from "../toolbar.js";

const LOOK_EVERY_MS = 5000; // new metrics appear rarely

export function mount(root, context) {
  const settings = keptSettings();
  const charts = new ChartWall(settings);
  const grid = el("div", { class: "grid" });
  const otherGrid = el("div", { class: "grid" });
  const others = el("details", { class: "others", hidden: true }, el("summary", { text: "All other metrics" }), otherGrid);
  const place = el("div", {}, grid, others);
  const nothing = el("div", {}, el("p", { class: "muted", text: "loading …" }));
  fill(root, charts.toolbar.root, nothing, place);
  let shown = "";
  let lookedAt = 0;
  let looking = false;
  let destroyed = false;
  others.addEventListener("toggle", () => charts.feed.soon());

  async function look() {
    if (looking || destroyed) return;
    looking = true;
    lookedAt = Date.now();
    try {
      const details = await context.api.json(runPath(context.run));
      if (!destroyed) arrange(details);
    } catch (error) {
      if (!destroyed && !shown) fill(nothing, empty(error.message));
    } finally {
      looking = false;
    }
  }

  function arrange(details) {
    const wanted = details.metrics.map((metric) => metric.name).join("\n");
    if (wanted === shown && shown) return;
    if (!details.metrics.length) {
      fill(nothing, empty("No metrics yet.", "The first row comes after the first update."));
      return;
    }
    shown = wanted;
    fill(nothing);
    const { main, others: rest } = chartsOf(details.metrics);
    charts.arrange(grid, main.map((chart) => specOfRun(chart, context.run, details.metrics)));
    charts.arrange(otherGrid, rest.map((chart) => specOfRun(chart, context.run, details.metrics)));
    others.hidden = rest.length === 0;
    fill(others.firstChild, `All other metrics (${rest.length})`);
  }

  look();
  return {
    update({ type }) {
      if (type !== "run" && type !== "tick") return;
      if (type === "run") charts.feed.grown();
      if ((type === "run" || !shown) && Date.now() - lookedAt > (shown ? LOOK_EVERY_MS : 900)) look();
    },
    destroy() {
      destroyed = true;
      charts.destroy();
    },
  };
}

// The zoom outlives a reload of the page, in this window and for this address.
const zoomKey = (axis) => `souls.zoom ${location.hash} ${axis}`;

function keptZoom(axis) {
  try {
    const range = JSON.parse(sessionStorage.getItem(zoomKey(axis)));
    return Array.isArray(range) && range[0] < range[1] ? range : null;
  } catch {
    return null;
  }
}

function keepZoom(axis, range) {
  try {
    if (range) sessionStorage.setItem(zoomKey(axis), JSON.stringify(range));
    else sessionStorage.removeItem(zoomKey(axis));
  } catch {
    // lasts until the page is loaded again
  }
}

// Charts that share axis, zoom, smoothing and the place of the pointer.
export class ChartWall {
  constructor(settings) {
    this.settings = settings;
    this.panels = new Map();
    this.feed = new Feed({ axis: settings.axis, onError: (error) => this.toolbar.note(error?.message ?? "") });
    this.feed.smoothing = settings.smoothing;
    this.toolbar = chartToolbar(settings, {
      onAxis: (axis) => {
        this.feed.look({ axis, range: null });
        this.toolbar.zoomed(false);
        keepZoom(axis, null);
      },
      onSmoothing: (smoothing) => this.feed.look({ smoothing }),
      onReset: () => this.zoom(null),
      onFilter: (pattern) => this.filter(pattern),
    });
    this.feed.range = keptZoom(settings.axis);
    this.toolbar.zoomed(Boolean(this.feed.range));
  }

  zoom(range) {
    if (!range && !this.feed.range) return;
    this.feed.look({ range });
    this.toolbar.zoomed(Boolean(range));
    keepZoom(this.settings.axis, range);
  }

  filter(pattern) {
    this.pattern = pattern;
    for (const panels of this.panels.values()) for (const panel of panels.values()) panel.root.hidden = !panel.fits(pattern);
    for (const folded of document.querySelectorAll("details.others")) if (pattern) folded.open = true;
    this.feed.soon();
  }

  // Charts that stay are kept; new ones are put in their place, others leave.
  arrange(grid, specs) {
    const before = this.panels.get(grid) ?? new Map();
    const after = new Map();
    for (const spec of specs) {
      const key = JSON.stringify([spec.id, spec.lines.map((line) => [line.run, line.name, line.band, line.colour])]);
      const panel = before.get(key) ?? this.make(spec);
      before.delete(key);
      after.set(key, panel);
    }
    for (const panel of before.values()) {
      this.feed.remove(panel);
      panel.destroy();
    }
    this.panels.set(grid, after);
    fill(grid, [...after.values()].map((panel) => panel.root));
  }

  make(spec) {
    const panel = new Panel(spec, {
      axis: this.settings.axis,
      onZoom: (range) => this.zoom(range),
      onReset: () => this.zoom(null),
      sync: "wall", // the pointer is shown in all of them
    });
    panel.root.hidden = !panel.fits(this.pattern);
    this.feed.add(panel);
    return panel;
  }

  destroy() {
    this.feed.destroy();
    for (const panels of this.panels.values()) for (const panel of panels.values()) panel.destroy();
    this.panels.clear();
  }
}
