// Charts by uPlot (vendor/uplot): lines with bands, or stacked areas, in the colours of the page; with a tip that reads
// values by pointer, finger and keyboard, zoom by drag, and a picture to take away.

import { el } from "./dom.js";
import { number, share, X_AXES } from "./format.js";
import { axisLabels, dateLabel, durationLabel, nearestFilled, shareLabels, smoothed, SPANS_S } from "./scales.js";

const FEW = 40; // fewer points than this are marked one by one
const LEAST_DRAG_PX = 6;
const FONT = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const PICTURE = { width: 1280, height: 640, head: 104, scale: 2 };

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
const shadeOf = (line) => colours().series[line.shade % 8];
const faded = (colour, alpha) => `${colour}${Math.round(255 * alpha).toString(16).padStart(2, "0")}`;

export class LineChart {
  // options: kind line|stack, values share|number, yRange, label, sync, onZoom(range), onReset()
  constructor(host, options) {
    this.host = host;
    this.options = { kind: "line", values: "number", ...options };
    this.data = { axis: "step", domain: null, series: [], smoothing: 0 };
    this.tip = el("div", { class: "tip", hidden: true });
    host.setAttribute("tabindex", "0");
    host.setAttribute("role", "img");
    host.setAttribute("aria-label", `${options.label ?? "chart"}; arrow keys read values`);
    host.append(this.tip);
    this.onKey = (event) => this.key(event);
    this.onBlur = () => this.read(null);
    host.addEventListener("keydown", this.onKey);
    host.addEventListener("blur", this.onBlur);
    this.resizer = new ResizeObserver(() => this.resize());
    this.resizer.observe(host);
    this.onTheme = () => this.chart?.redraw(false);
    window.addEventListener("themechange", this.onTheme);
  }

  set(data) {
    this.data = { ...this.data, ...data };
    const [width, height] = [this.host.clientWidth, this.host.clientHeight];
    if (!width || !this.data.series.length) return;
    this.plot = plotOf(this.data, this.options);
    this.host.dataset.points = String(this.plot.points);
    this.host.dataset.traces = String(this.plot.lines.length);
    const key = JSON.stringify([this.data.axis, this.plot.shapes]);
    if (this.chart && key === this.key_) this.chart.setData(this.plot.data);
    else {
      this.chart?.destroy();
      this.chart = new uPlot({ ...this.settings(), width, height }, this.plot.data, this.host);
      this.key_ = key;
    }
  }

  resize() {
    const [width, height] = [this.host.clientWidth, this.host.clientHeight];
    if (!width || !height) return;
    if (!this.chart) this.set({});
    else if (width !== this.chart.width || height !== this.chart.height) this.chart.setSize({ width, height });
  }

  settings(scale = 1) {
    const { options } = this;
    return {
      ...looks(this, scale),
      legend: { show: false },
      cursor: {
        x: true,
        y: false,
        sync: options.sync ? { key: options.sync, setSeries: false, scales: ["x", null] } : undefined,
        drag: { x: Boolean(options.onZoom), y: false, setScale: false, dist: LEAST_DRAG_PX },
        dataIdx: (chart, series, i) => nearestFilled(chart.data[series], i),
        points: { size: 7, width: 0 },
        bind: { dblclick: () => () => options.onReset?.() },
      },
      hooks: {
        draw: [() => (this.host.dataset.drawn = String(Number(this.host.dataset.drawn ?? 0) + 1))],
        setCursor: [(chart) => this.pointed(chart)],
        setSelect: [(chart) => this.selected(chart)],
      },
    };
  }

  selected(chart) {
    const { left, width } = chart.select;
    if (width < LEAST_DRAG_PX) return;
    const range = [left, left + width].map((px) => chart.posToVal(px, "x"));
    chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.options.onZoom?.(range);
  }

  // Values are told where the pointer is, or the keyboard has the focus; other charts only show the line.
  pointed(chart) {
    const { idx, event } = chart.cursor;
    if (idx === null || idx === undefined || (!event && !this.reading)) this.tip.hidden = true;
    else this.showTip(chart, idx);
  }

  showTip(chart, idx) {
    const tell = tellers[this.options.values];
    const rows = this.plot.lines.map((line) => {
      const i = nearestFilled(chart.data[line.at], idx);
      const value = line.values ? line.values[i] : chart.data[line.at][i];
      const [low, high] = line.band ? line.band.map((at) => chart.data[at][i]) : [];
      const raw = line.raw ? chart.data[line.raw][i] : undefined;
      return el(
        "div",
        { class: "tip-row" },
        el("i", { class: "swatch", style: { background: shadeOf(line) } }),
        el("span", { class: "tip-name", text: line.label }),
        el("b", { text: tell(value) }),
        Number.isFinite(low) && Number.isFinite(high) && el("span", { class: "muted", text: `${tell(low)}–${tell(high)}` }),
        raw !== undefined && el("span", { class: "muted", text: `raw ${tell(raw)}` }),
      );
    });
    const x = chart.data[0][idx];
    this.tip.replaceChildren(el("div", { class: "tip-x", text: X_AXES[this.data.axis]?.tell(x) ?? this.data.tellX(x) }), ...rows);
    this.tip.hidden = false;
    const [at, width, whole] = [chart.cursor.left + chart.bbox.left / devicePixelRatio, this.tip.offsetWidth, this.host.clientWidth];
    const left = at + 12 + width > whole ? at - 12 - width : at + 12;
    this.tip.style.setProperty("transform", `translate(${Math.max(0, Math.min(left, whole - width))}px, 6px)`);
  }

  // Reads the values at a place of the data, or none.
  read(i) {
    if (!this.chart) return;
    this.reading = i !== null;
    const left = i === null ? -10 : this.chart.valToPos(this.chart.data[0][i], "x");
    this.chart.setCursor({ left, top: i === null ? -10 : 1 });
    if (i !== null) this.showTip(this.chart, i);
    else this.tip.hidden = true;
  }

  key(event) {
    const xs = this.chart?.data[0] ?? [];
    if (!xs.length) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const step = (event.key === "ArrowRight" ? 1 : -1) * (event.shiftKey ? 10 : 1);
      const now = this.reading ? this.at : step > 0 ? -1 : xs.length;
      this.at = Math.min(Math.max(now + step, 0), xs.length - 1);
      this.read(this.at);
    } else if (event.key === "Escape" && this.reading) {
      this.read(null);
      event.stopPropagation();
    } else if (event.key === "Backspace") this.options.onReset?.();
    else return;
    event.preventDefault();
  }

  // The chart with its title and legend, larger than on the page: for a paper or a talk.
  async picture(title) {
    const { width, height, head, scale } = PICTURE;
    const place = el("div", { style: { position: "fixed", left: "-9999px", width: `${width}px` } });
    document.body.append(place);
    const chart = new uPlot({ ...looks(this, scale), legend: { show: false }, cursor: { show: false }, width, height }, this.plot.data, place);
    await new Promise(requestAnimationFrame); // it is drawn with the next frame
    const canvas = el("canvas", { width, height: height + head });
    const context = canvas.getContext("2d");
    context.fillStyle = colours().panel;
    context.fillRect(0, 0, width, height + head);
    context.fillStyle = colours().text;
    context.font = `600 30px ${FONT}`;
    context.fillText(title, 24, 40);
    context.font = `22px ${FONT}`;
    let left = 24;
    for (const line of this.plot.lines) {
      context.fillStyle = shadeOf(line);
      context.fillRect(left, 66, 28, 6);
      context.fillStyle = colours().text;
      context.fillText(line.label, left + 36, 76);
      left += 68 + context.measureText(line.label).width;
    }
    context.drawImage(chart.ctx.canvas, 0, head, width, height);
    chart.destroy();
    place.remove();
    return canvas;
  }

  destroy() {
    this.resizer.disconnect();
    window.removeEventListener("themechange", this.onTheme);
    this.host.removeEventListener("keydown", this.onKey);
    this.host.removeEventListener("blur", this.onBlur);
    this.chart?.destroy();
    this.chart = null;
    this.host.replaceChildren();
    this.data = { series: [] };
  }
}

// What uPlot draws: one list of x for all, lists of y, and which of them belong to which line.
function plotOf({ series, smoothing }, { kind }) {
  const shown = series.filter((line) => !line.hidden && line.x.length);
  const points = shown.reduce((sum, line) => sum + line.x.length, 0);
  return { ...(kind === "stack" ? stacked(shown, smoothing) : plain(shown, smoothing)), points };
}

function plain(shown, smoothing) {
  const [tables, lines, shapes, bands] = [[], [], [], []];
  const add = (x, y, shape) => {
    tables.push([x, y]);
    return shapes.push(shape);
  };
  for (const line of shown) {
    const weight = line.rough === false ? 0 : smoothing;
    const entry = { ...line };
    const around = line.band ?? (line.low && line.high ? line : null);
    if (around) {
      entry.band = ["low", "high"].map((edge) => add(around.x, around[edge], { line: entry.label, edge, shade: line.shade }));
      bands.push({ series: [entry.band[1], entry.band[0]], shade: line.shade, alpha: line.band ? 0.2 : 0.13 });
      if (!line.band) entry.band = null; // of a bucket of rows: too much for a tip
    }
    if (weight > 0) entry.raw = add(line.x, line.y, { line: entry.label, faint: true, shade: line.shade });
    entry.at = add(line.x, smoothed(line.y, weight), { line: entry.label, shade: line.shade, dim: line.dim, few: line.x.length < FEW });
    lines.push(entry);
  }
  return { data: tables.length ? uPlot.join(tables) : [[]], lines, shapes, bands };
}

// Areas upon each other, the whole first; a phase without a value at some place counts as nothing there.
function stacked(shown, smoothing) {
  const data = shown.length ? uPlot.join(shown.map((line) => [line.x, smoothed(line.y, smoothing)])) : [[]];
  const sums = new Array(data[0].length).fill(0);
  const tops = data.slice(1).map((values) => values.map((value, i) => (sums[i] += value ?? 0)));
  const count = shown.length;
  return {
    data: [data[0], ...tops.toReversed()],
    lines: shown.map((line, i) => ({ ...line, at: count - i, values: data[i + 1], band: null })),
    shapes: shown.map((line) => ({ line: line.label, shade: line.shade, area: true })).toReversed(),
    bands: [],
  };
}

function looks(owner, scale) {
  const { shapes, bands } = owner.plot;
  const { options } = owner;
  const shade = (i) => colours().series[i % 8];
  const axis = { font: `${11 * scale}px ${FONT}`, stroke: () => colours().muted, ticks: { show: false } };
  const grid = { stroke: () => colours().grid, width: 1 };
  return {
    padding: [8 * scale, 18 * scale, 0, 0],
    scales: {
      x: { time: owner.data.axis === "time", range: (chart, low, high) => opened(owner.data.domain ?? [low, high]) },
      y: { range: (chart, low, high) => options.yRange ?? (options.values === "share" ? shares(low, high) : padded(low, high)) },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 26 * scale, space: 72 * scale, ...xAxis(owner) },
      { ...axis, grid, size: (chart, labels) => scale * widthOf(labels), space: 30 * scale, values: (chart, ticks, i, space, step) => (options.values === "share" ? shareLabels : axisLabels)(ticks, step) },
    ],
    series: [{}, ...shapes.map((shape) => ({ ...lineLooks(shape, shade, scale), spanGaps: false }))],
    bands: bands.map((band) => ({ series: band.series, fill: () => faded(shade(band.shade), band.alpha) })),
  };
}

function lineLooks({ shade: i, edge, faint, dim, area, few }, shade, scale) {
  if (edge) return { width: 0, points: { show: false }, stroke: "transparent" };
  if (area) return { width: 0, points: { show: false }, fill: () => shade(i) };
  const alpha = faint ? 0.25 : dim ? 0.65 : 1;
  const stroke = () => (alpha < 1 ? faded(shade(i), alpha) : shade(i));
  return { width: (faint ? 1 : dim ? 1.25 : 1.75) * scale, stroke, points: { show: Boolean(few), size: (dim ? 4 : 5) * scale, width: 0, fill: stroke } };
}

function xAxis(owner) {
  const label = owner.data.xTitle ?? "";
  const marks = { elapsed_s: (ticks, step) => ticks.map((tick) => durationLabel(tick, step)), time: (ticks, step) => ticks.map((tick, i) => dateLabel(tick, step, i ? ticks[i - 1] : null)) };
  return {
    ...(owner.data.axis === "elapsed_s" && { incrs: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, ...SPANS_S] }),
    ...(label && { label, labelSize: 16, labelFont: `11px ${FONT}` }),
    values: (chart, ticks, i, space, step) => (marks[owner.data.axis] ?? axisLabels)(ticks, step),
  };
}

// A single place lies in the middle of a stretch.
function opened([low, high]) {
  if (high > low) return [low, high];
  const around = Math.max(1, Math.abs(low ?? 0) * 0.01);
  return [(low ?? 0) - around, (low ?? 0) + around];
}

// Shares lie between nothing and the whole, and so does their axis.
function shares(low, high) {
  const [bottom, top] = padded(low, high);
  return [low >= 0 ? Math.max(bottom, 0) : bottom, high <= 1 ? Math.min(top, 1) : top];
}

// Of the axis, so that the longest label fits, a minus sign before it included.
const widthOf = (labels) => Math.max(50, 16 + 6.4 * Math.max(0, ...(labels ?? []).map((label) => label.length)));

function padded(low, high) {
  if (low === null || low === undefined) return [0, 1];
  if (low === high) {
    const around = Math.abs(low) * 0.1 || 1;
    return [low - around, high + around];
  }
  const pad = 0.06 * (high - low);
  return [low >= 0 && low - pad < 0 ? 0 : low - pad, high <= 0 && high + pad > 0 ? 0 : high + pad];
}
