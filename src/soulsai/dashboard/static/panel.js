// A chart with its title, legend, meaning and exports; drawn only while it is in view.

import * as api from "./api.js";
import { LineChart } from "./charts.js";
import { download, el, follow, icon, setText } from "./dom.js";
import { number, share } from "./format.js";

export class Panel {
  // spec: {id, title, kind, values, yRange, lines: [{run, name, label, band, dim, rough}], meaning: [{name, unit, text}]}
  constructor(spec, { axis, sync, onZoom, onReset }) {
    this.spec = spec;
    this.callbacks = { sync, onZoom, onReset };
    this.hidden = new Set();
    this.latest = null;
    this.feed = null;
    this.axis = axis;
    this.plotHost = el("div", { class: "plot" });
    this.legend = el("div", { class: spec.lines.length > 2 ? "legend two" : "legend" });
    this.note = el("p", { class: "plot-note muted", text: "loading …" });
    this.root = el(
      "section",
      { class: "panel chart", "aria-label": spec.title, data: { chart: spec.id } },
      el("header", { class: "panel-head" }, el("h3", { text: spec.title }), this.unit(), this.meaning(), el("span", { class: "grow" }), this.tools()),
      this.legend,
      el("div", { class: "plot-frame" }, this.plotHost, this.note),
    );
    this.legendRows();
  }

  // Whether its title or one of its metrics fits what was typed.
  fits(pattern) {
    return !pattern || [this.spec.title, ...this.spec.lines.map((line) => line.name)].some((text) => pattern.test(text));
  }

  get needs() {
    return this.spec.lines.flatMap(({ run, name, band }) => [name, ...(band ?? [])].map((each) => ({ run, name: each })));
  }

  width() {
    return this.plotHost.clientWidth || 400;
  }

  // What the numbers of the axis are, where neither the title nor the labels say it.
  unit() {
    const units = new Set(this.spec.meaning.map((metric) => metric.unit));
    const [unit] = units;
    return units.size === 1 && unit && unit !== "share" && unit !== "1/s" ? el("span", { class: "muted unit", text: unit }) : null;
  }

  meaning() {
    const known = this.spec.meaning.filter((metric) => metric.text);
    if (!known.length) return null;
    const id = `meaning-${this.spec.id.replace(/[^\w-]/g, "-")}`;
    const lines = known.map((metric) =>
      el("span", { class: "meaning-row" }, el("code", { text: metric.name }), metric.unit ? ` [${metric.unit}] ` : " ", metric.text),
    );
    return el(
      "span",
      { class: "meaning" },
      el("button", { class: "icon-button", type: "button", "aria-label": `What ${this.spec.title} means`, "aria-describedby": id }, icon("info")),
      el("span", { class: "popover", id, role: "tooltip" }, lines),
    );
  }

  tools() {
    const { title } = this.spec;
    return el(
      "span",
      { class: "tools" },
      el(
        "button",
        { class: "icon-button", type: "button", title: "Larger", "aria-label": `${title} larger`, "aria-pressed": "false", onclick: (event) => this.grow(event.currentTarget) },
        icon("grow"),
      ),
      el("button", { class: "icon-button", type: "button", title: "Picture (PNG)", "aria-label": `${title} as PNG`, onclick: () => this.picture() }, icon("image")),
      this.csvLinks(),
    );
  }

  // A file per run; where there are several, one click takes them all.
  csvLinks() {
    const runs = [...new Set(this.spec.lines.map((line) => line.run))];
    const label = { class: "icon-button", title: "All rows as CSV", "aria-label": `${this.spec.title} as CSV` };
    if (runs.length > 1) return el("button", { ...label, type: "button", onclick: () => runs.forEach((run) => follow(this.csvPath(run))) }, icon("table"));
    const link = el("a", { ...label, href: this.csvPath(runs[0]), download: "" }, icon("table"));
    for (const event of ["pointerenter", "focus", "click"]) link.addEventListener(event, () => link.setAttribute("href", this.csvPath(runs[0])));
    return link;
  }

  grow(button) {
    const large = this.root.classList.toggle("large");
    button.setAttribute("aria-pressed", String(large));
    this.feed?.look({ range: this.feed.range }); // more room: more points
  }

  csvPath(run) {
    const names = [...new Set(this.needs.filter((need) => need.run === run).map(({ name }) => name))];
    const { axis = this.axis, range = null } = this.feed ?? {};
    return api.runPath(run, `/series.csv?${api.seriesQuery(names, axis, range)}`);
  }

  async picture() {
    if (!this.chart) return;
    const name = `${this.spec.file ?? this.spec.id}.png`.replace(/[^\w.-]+/g, "-");
    const canvas = await this.chart.picture(this.spec.title);
    canvas.toBlob((blob) => blob && download(blob, name), "image/png");
  }

  legendRows() {
    this.rows = this.spec.lines.map((line, i) => {
      const value = el("b", { class: "legend-value" });
      const swatch = el("i", { class: line.dim ? "swatch dim" : "swatch", style: { background: this.colour(line, i) } });
      const row = el(
        "button",
        { class: "legend-row", type: "button", "aria-pressed": "true", title: `Show or hide ${line.label}`, onclick: () => this.toggle(i, row) },
        swatch,
        el("span", { class: "legend-name", text: line.label }),
        value,
      );
      return { row, value, swatch };
    });
    this.legend.replaceChildren(...this.rows.map(({ row }) => row));
  }

  toggle(i, row) {
    if (this.hidden.has(i)) this.hidden.delete(i);
    else this.hidden.add(i);
    row.setAttribute("aria-pressed", String(!this.hidden.has(i)));
    if (this.feed) this.redraw(this.feed);
  }

  colour(line, i) {
    return `var(--s${((line.colour ?? i) % 8) + 1})`;
  }

  show() {
    if (this.chart) return;
    this.chart = new LineChart(this.plotHost, {
      kind: this.spec.kind,
      values: this.spec.values,
      yRange: this.spec.yRange,
      label: this.spec.title,
      ...this.callbacks,
    });
  }

  leave() {
    this.chart?.destroy();
    this.chart = null;
    this.latest = null;
  }

  receive(series, feed) {
    this.latest = series;
    this.redraw(feed);
  }

  redraw(feed) {
    this.feed = feed;
    if (!this.chart || !this.latest) return;
    const lines = this.spec.lines.map((line, i) => {
      const found = this.latest.get(`${line.run}\n${line.name}`) ?? { x: [], y: [] };
      return { ...line, ...found, shade: line.colour ?? i, band: this.band(line), hidden: this.hidden.has(i) };
    });
    this.chart.set({ axis: feed.axis, domain: feed.domain, smoothing: feed.smoothing, series: lines });
    const drawn = lines.some((line) => line.x.length);
    this.note.hidden = drawn;
    setText(this.note, feed.range ? "no data in this range" : "no values yet");
    const tell = this.spec.values === "share" ? share : (value) => number(value, 4);
    lines.forEach((line, i) => setText(this.rows[i].value, line.y.length ? tell(lastOf(line.y)) : ""));
  }

  band(line) {
    if (!line.band) return null;
    const [low, high] = line.band.map((name) => this.latest.get(`${line.run}\n${name}`));
    if (!low?.x.length || low.x.length !== high?.x.length) return null;
    return { x: low.x, low: low.y, high: high.y };
  }

  destroy() {
    this.leave();
    this.root.remove();
  }
}

function lastOf(values) {
  for (let i = values.length - 1; i >= 0; i--) if (values[i] !== null) return values[i];
  return null;
}
