// A chart on a canvas: lines with bands, or stacked areas; hover, zoom by drag, keyboard, picture.
//
// Its own, because a general library takes longer to start than the whole page may take to draw.

import { el } from "./dom.js";
import { number, share, X_AXES } from "./format.js";
import { axisLabels, linearTicks, nearest, shareLabels, smoothed, xTicks } from "./scales.js";

const MARGIN = { left: 50, right: 12, top: 8, bottom: 22 };
const FEW = 40; // fewer points than this are marked one by one
const LEAST_DRAG_PX = 6;
const FONT = '11px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

export function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const series = Array.from({ length: 8 }, (_, i) => of(`--s${i + 1}`));
  return { series, text: of("--text"), muted: of("--muted"), grid: of("--grid"), line: of("--line"), panel: of("--panel") };
}

let cached = null; // read once per theme: asking for computed style forces layout
window.addEventListener("themechange", () => (cached = null));
export const colours = () => (cached ??= themeColours());

const tellers = { share: (value) => share(value), number: (value) => number(value, 4) };

export class LineChart {
  // options: kind line|stack, values share|number, yRange, label, onZoom(range), onReset(), onHover(x|null)
  constructor(host, options) {
    this.host = host;
    this.options = { kind: "line", values: "number", ...options };
    this.data = { axis: "step", domain: null, series: [], smoothing: 0 };
    this.base = el("canvas", { class: "plot-base", "aria-hidden": "true" });
    this.over = el("canvas", {
      class: "plot-over",
      tabindex: "0",
      role: "img",
      "aria-label": `${options.label ?? "chart"}; arrow keys read values`,
    });
    this.tip = el("div", { class: "tip", hidden: true });
    host.append(this.base, this.over, this.tip);
    this.at = null;
    this.drag = null;
    this.listen();
    this.resizer = new ResizeObserver(() => this.resize());
    this.resizer.observe(host);
    this.onTheme = () => this.draw();
    window.addEventListener("themechange", this.onTheme);
    this.resize();
  }

  set(data) {
    this.data = { ...this.data, ...data };
    this.draw();
  }

  resize() {
    const [width, height] = [this.host.clientWidth, this.host.clientHeight];
    const ratio = window.devicePixelRatio || 1;
    if (width === this.width && height === this.height && ratio === this.ratio) return;
    [this.width, this.height, this.ratio] = [width, height, ratio];
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.draw();
  }

  draw() {
    if (!this.width || !this.host.isConnected || !this.data.series.length) return;
    const context = this.base.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.plot = paint(context, this.width, this.height, this.data, this.options);
    this.host.dataset.points = String(this.plot.points);
    this.host.dataset.traces = String(this.plot.lines.length);
    this.host.dataset.drawn = String(Number(this.host.dataset.drawn ?? 0) + 1);
    this.drawOver();
  }

  // Show the values at x (in units of the axis), or none.
  hover(x, withTip = false) {
    this.at = x;
    this.withTip = withTip;
    this.drawOver();
  }

  drawOver() {
    const context = this.over.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const plot = this.plot;
    if (!plot) return;
    if (this.drag?.moved) {
      const [a, b] = [this.drag.from, this.drag.to].sort((one, two) => one - two);
      context.fillStyle = colours().muted;
      context.globalAlpha = 0.18;
      context.fillRect(a, plot.box.top, b - a, plot.box.height);
      context.globalAlpha = 1;
    }
    const found = this.at === null || !plot.lines.length ? null : this.valuesAt(this.at);
    if (!found) {
      this.tip.hidden = true;
      return;
    }
    const px = Math.round(plot.toX(found.x)) + 0.5;
    context.strokeStyle = colours().muted;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(px, plot.box.top);
    context.lineTo(px, plot.box.top + plot.box.height);
    context.stroke();
    context.setLineDash([]);
    for (const value of found.values) {
      if (value.py === null) continue;
      context.fillStyle = value.colour;
      context.beginPath();
      context.arc(plot.toX(value.x), Math.min(Math.max(value.py, plot.box.top), plot.box.top + plot.box.height), 3, 0, 7);
      context.fill();
    }
    if (this.withTip) this.showTip(found, px);
    else this.tip.hidden = true;
  }

  valuesAt(x) {
    const { lines, toY } = this.plot;
    let closest = null;
    for (const line of lines) {
      const i = nearest(line.x, x);
      if (i >= 0 && (closest === null || Math.abs(line.x[i] - x) < Math.abs(closest - x))) closest = line.x[i];
    }
    if (closest === null) return null;
    const values = lines.map((line) => {
      const i = nearest(line.x, closest);
      const y = line.y[i];
      const top = line.top ? line.top[i] : y;
      const raw = line.raw && line.raw !== line.y ? line.raw[i] : undefined;
      const band = line.band ? bandAt(line.band, line.x[i]) : null;
      return { label: line.label, colour: line.colour, x: line.x[i], y, raw, band, py: top === null ? null : toY(top) };
    });
    return { x: closest, values };
  }

  showTip(found, px) {
    const tell = tellers[this.options.values];
    const rows = found.values.map((value) =>
      el(
        "div",
        { class: "tip-row" },
        el("i", { class: "swatch", style: { background: value.colour } }),
        el("span", { class: "tip-name", text: value.label }),
        el("b", { text: tell(value.y) }),
        value.band && el("span", { class: "muted", text: `${tell(value.band[0])}–${tell(value.band[1])}` }),
        value.raw !== undefined && el("span", { class: "muted", text: `raw ${tell(value.raw)}` }),
      ),
    );
    this.tip.replaceChildren(el("div", { class: "tip-x", text: X_AXES[this.data.axis]?.tell(found.x) ?? this.data.tellX(found.x) }), ...rows);
    this.tip.hidden = false;
    const width = this.tip.offsetWidth;
    const left = px + 12 + width > this.width ? px - 12 - width : px + 12;
    this.tip.style.setProperty("transform", `translate(${Math.max(0, Math.min(left, this.width - width))}px, 6px)`);
  }

  listen() {
    const place = (event) => event.clientX - this.over.getBoundingClientRect().left;
    const inside = (px) => Math.min(Math.max(px, this.plot.box.left), this.plot.box.left + this.plot.box.width);
    const report = (x) => {
      this.hover(x, x !== null);
      this.options.onHover?.(x, this);
    };
    this.over.addEventListener("pointerdown", (event) => {
      if (!this.plot || event.button !== 0) return;
      this.drag = { from: inside(place(event)), to: inside(place(event)), moved: false };
      this.over.setPointerCapture(event.pointerId);
    });
    this.over.addEventListener("pointermove", (event) => {
      if (!this.plot) return;
      const px = inside(place(event));
      if (this.drag && this.options.onZoom) {
        this.drag.to = px;
        this.drag.moved ||= Math.abs(px - this.drag.from) >= LEAST_DRAG_PX;
      }
      report(this.plot.fromX(px));
    });
    const end = (event) => {
      const drag = this.drag;
      this.drag = null;
      if (event.type === "pointerup" && drag?.moved) {
        const range = [drag.from, drag.to].map(this.plot.fromX).sort((a, b) => a - b);
        if (range[1] > range[0]) this.options.onZoom?.(range);
      }
      this.drawOver();
    };
    this.over.addEventListener("pointerup", end);
    this.over.addEventListener("pointercancel", end);
    this.over.addEventListener("pointerleave", () => !this.drag && report(null));
    this.over.addEventListener("blur", () => report(null));
    this.over.addEventListener("dblclick", () => this.options.onReset?.());
    this.over.addEventListener("keydown", (event) => this.key(event, report));
  }

  key(event, report) {
    if (!this.plot?.lines.length) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const xs = this.plot.lines.reduce((longest, line) => (line.x.length > longest.length ? line.x : longest), []);
      const now = this.at === null ? (event.key === "ArrowRight" ? -1 : xs.length) : nearest(xs, this.at);
      const step = (event.key === "ArrowRight" ? 1 : -1) * (event.shiftKey ? 10 : 1);
      report(xs[Math.min(Math.max(now + step, 0), xs.length - 1)]);
    } else if (event.key === "Escape" && this.at !== null) {
      report(null);
      event.stopPropagation();
    } else if (event.key === "Backspace") this.options.onReset?.();
    else return;
    event.preventDefault();
  }

  // The chart with its title and legend, larger than on the page: for a paper or a talk.
  picture(title, scale = 2) {
    const [width, height] = [Math.max(this.width, 640), Math.max(this.height, 320)];
    const head = 52;
    const canvas = el("canvas", { width: width * scale, height: (height + head) * scale });
    const context = canvas.getContext("2d");
    const palette = colours();
    context.scale(scale, scale);
    context.fillStyle = palette.panel;
    context.fillRect(0, 0, width, height + head);
    context.fillStyle = palette.text;
    context.font = FONT.replace("11px", "600 15px");
    context.fillText(title, MARGIN.left, 20);
    context.font = FONT;
    let left = MARGIN.left;
    for (const line of this.plot?.lines ?? []) {
      context.fillStyle = line.colour;
      context.fillRect(left, 32, 14, 3);
      context.fillStyle = palette.text;
      context.fillText(line.label, left + 18, 38);
      left += 34 + context.measureText(line.label).width;
    }
    context.translate(0, head - 6);
    paint(context, width, height, this.data, { ...this.options, xTitle: true });
    return canvas;
  }

  destroy() {
    this.resizer.disconnect();
    window.removeEventListener("themechange", this.onTheme);
    for (const canvas of [this.base, this.over]) [canvas.width, canvas.height] = [0, 0]; // gives the pixels back at once
    this.host.replaceChildren();
    this.plot = null;
    this.data = { series: [] };
  }
}

function bandAt(band, x) {
  const i = nearest(band.x, x);
  return i >= 0 && band.x[i] === x && band.low[i] !== null && band.high[i] !== null ? [band.low[i], band.high[i]] : null;
}

function paint(context, width, height, data, options) {
  const bottom = MARGIN.bottom + (options.xTitle ? 18 : 0);
  const box = { left: MARGIN.left, top: MARGIN.top, width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - bottom };
  const lines = (options.kind === "stack" ? stacked : plain)(data).filter((line) => line.x.length);
  const xs = opened(data.domain ?? extent(lines.map((line) => line.x)));
  const ys = options.yRange ?? yDomain(lines, xs);
  const spread = xs[1] - xs[0];
  const toX = (value) => box.left + ((value - xs[0]) / spread) * box.width;
  const toY = (value) => box.top + (1 - (value - ys[0]) / (ys[1] - ys[0])) * box.height;
  const fromX = (px) => xs[0] + ((px - box.left) / box.width) * spread;
  const plot = { box, lines, toX, toY, fromX, domain: xs, points: lines.reduce((sum, line) => sum + line.x.length, 0) };
  if (!lines.length || box.width < 20 || box.height < 20) return plot;
  axes(context, plot, ys, data, options, width, height);
  context.save();
  context.beginPath();
  context.rect(box.left, box.top - 2, box.width + 3, box.height + 4);
  context.clip();
  if (options.kind === "stack") for (const line of lines.toReversed()) area(context, plot, line);
  else {
    for (const line of lines) bands(context, plot, line);
    for (const line of lines) strokes(context, plot, line);
  }
  context.restore();
  return plot;
}

// Colours are looked up with every drawing: the theme may have changed.
const shadeOf = (line) => colours().series[line.shade % 8];

function plain({ series, smoothing }) {
  return series.filter((line) => !line.hidden).map((line) => {
    const weight = line.rough === false ? 0 : smoothing;
    return { ...line, colour: shadeOf(line), raw: line.y, y: smoothed(line.y, weight) };
  });
}

// Areas upon each other; a phase without a value at some place counts as nothing there.
function stacked({ series, smoothing }) {
  const shown = series.filter((line) => !line.hidden && line.x.length);
  const xs = shown.reduce((longest, line) => (line.x.length > longest.length ? line.x : longest), []);
  const sums = new Array(xs.length).fill(0);
  return shown.map((line) => {
    const same = line.x.length === xs.length;
    const values = smoothed(line.y, smoothing);
    const y = same ? values : xs.map((x) => values[nearest(line.x, x)]);
    const bottom = sums.slice();
    y.forEach((value, i) => (sums[i] += value ?? 0));
    return { ...line, colour: shadeOf(line), x: xs, y, raw: y, bottom, top: sums.slice() };
  });
}

function extent(lists) {
  let [low, high] = [Infinity, -Infinity];
  for (const values of lists) {
    if (!values.length) continue;
    low = Math.min(low, values[0]);
    high = Math.max(high, values[values.length - 1]);
  }
  return low <= high ? [low, high] : [0, 1];
}

// A single place lies in the middle of a stretch.
function opened([low, high]) {
  if (high > low) return [low, high];
  const around = Math.max(1, Math.abs(low) * 0.01);
  return [low - around, high + around];
}

function yDomain(lines, xs) {
  let [low, high] = [Infinity, -Infinity];
  const look = (x, values) => {
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (value === null || x[i] < xs[0] || x[i] > xs[1]) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  };
  for (const line of lines) {
    look(line.x, line.raw);
    if (line.band) {
      look(line.band.x, line.band.low);
      look(line.band.x, line.band.high);
    }
  }
  if (low > high) return [0, 1];
  if (low === high) {
    const around = Math.abs(low) * 0.1 || 1;
    return [low - around, high + around];
  }
  const pad = 0.06 * (high - low);
  return [low >= 0 && low - pad < 0 ? 0 : low - pad, high <= 0 && high + pad > 0 ? 0 : high + pad];
}

function axes(context, plot, ys, data, options, width, height) {
  const { box, toX, toY } = plot;
  const palette = colours();
  context.font = FONT;
  context.lineWidth = 1;
  const upright = linearTicks(ys[0], ys[1], Math.max(2, Math.floor(box.height / 30)));
  const labels = (options.values === "share" ? shareLabels : axisLabels)(upright.ticks, upright.step);
  context.textAlign = "right";
  context.textBaseline = "middle";
  upright.ticks.forEach((tick, i) => {
    const py = Math.round(toY(tick)) + 0.5;
    context.strokeStyle = tick === 0 ? palette.line : palette.grid;
    context.beginPath();
    context.moveTo(box.left, py);
    context.lineTo(box.left + box.width, py);
    context.stroke();
    context.fillStyle = palette.muted;
    context.fillText(labels[i], box.left - 6, py);
  });
  const wide = data.axis === "time" ? 86 : 72;
  const flat = xTicks(data.axis, plot.domain[0], plot.domain[1], Math.max(2, Math.floor(box.width / wide)));
  context.textBaseline = "top";
  let free = -Infinity;
  flat.ticks.forEach((tick, i) => {
    const px = toX(tick);
    const half = context.measureText(flat.labels[i]).width / 2;
    const centre = Math.min(Math.max(px, half), width - half - 1);
    if (centre - half < free) return;
    free = centre + half + 8;
    context.fillStyle = palette.muted;
    context.textAlign = "center";
    context.fillText(flat.labels[i], centre, box.top + box.height + 6);
  });
  if (options.xTitle) {
    context.textAlign = "center";
    context.fillText(data.xTitle ?? X_AXES[data.axis]?.title ?? "", box.left + box.width / 2, height - 16);
  }
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
}

function trace(context, plot, x, y) {
  let open = false;
  for (let i = 0; i < x.length; i++) {
    if (y[i] === null) {
      open = false;
      continue;
    }
    const [px, py] = [plot.toX(x[i]), plot.toY(y[i])];
    if (open) context.lineTo(px, py);
    else context.moveTo(px, py);
    open = true;
  }
}

function ribbon(context, plot, x, low, high) {
  let start = 0;
  while (start < x.length) {
    while (start < x.length && (low[start] === null || high[start] === null)) start++;
    let end = start;
    while (end < x.length && low[end] !== null && high[end] !== null) end++;
    if (end - start > 1) {
      context.beginPath();
      for (let i = start; i < end; i++) context.lineTo(plot.toX(x[i]), plot.toY(high[i]));
      for (let i = end - 1; i >= start; i--) context.lineTo(plot.toX(x[i]), plot.toY(low[i]));
      context.closePath();
      context.fill();
    } else if (end - start === 1) {
      const px = plot.toX(x[start]); // one value: the band is a bar
      context.fillRect(px - 2, plot.toY(high[start]), 4, plot.toY(low[start]) - plot.toY(high[start]));
    }
    start = end + 1;
  }
}

function bands(context, plot, line) {
  context.fillStyle = line.colour;
  if (line.band) {
    context.globalAlpha = 0.2;
    ribbon(context, plot, line.band.x, line.band.low, line.band.high);
  } else if (line.low && line.high) {
    context.globalAlpha = 0.13;
    ribbon(context, plot, line.x, line.low, line.high);
  }
  context.globalAlpha = 1;
}

function strokes(context, plot, line) {
  context.strokeStyle = line.colour;
  context.lineJoin = "round";
  if (line.raw !== line.y) {
    context.globalAlpha = 0.25;
    context.lineWidth = 1;
    context.beginPath();
    trace(context, plot, line.x, line.raw);
    context.stroke();
  }
  context.globalAlpha = line.dim ? 0.65 : 1;
  context.lineWidth = line.dim ? 1.25 : 1.75;
  context.beginPath();
  trace(context, plot, line.x, line.y);
  context.stroke();
  if (line.x.length < FEW) {
    context.fillStyle = line.colour;
    for (let i = 0; i < line.x.length; i++) {
      if (line.y[i] === null) continue;
      context.beginPath();
      context.arc(plot.toX(line.x[i]), plot.toY(line.y[i]), line.dim ? 1.75 : 2.5, 0, 7);
      context.fill();
    }
  }
  context.globalAlpha = 1;
}

function area(context, plot, line) {
  context.fillStyle = line.colour;
  context.globalAlpha = 0.75;
  ribbon(context, plot, line.x, line.bottom, line.top);
  context.globalAlpha = 1;
}
