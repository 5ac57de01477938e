// Several runs side by side: the same charts with a colour per run, their last figures, and how their configs differ.

import { runPath, seriesQuery } from "../api.js";
import { el, empty, fill, icon } from "../dom.js";
import { count, duration, interval, number, share } from "../format.js";
import { chartsOf, isDetail, specsOfRuns } from "../groups.js";
import { pill } from "../header.js";
import { keptSettings } from "../toolbar.js";
import { differences } from "../toml_lines.js";
import { ChartWall } from "./learning.js";

const MOST = 8;
const LAST = ["return/evaluation", "return/training", "steps_per_s", "game_hours", "updates"]; // beside what the list says

export function mount(root, context) {
  const ids = [...new Set((context.params.get("runs") ?? "").split(",").filter(Boolean).map(decoded))].slice(0, MOST);
  if (ids.length < 1) {
    fill(root, empty("No runs chosen.", "Tick two or more on the Runs page."), el("p", { class: "centre" }, el("a", { class: "button", href: "#/runs", text: "Choose runs" })));
    return { update() {}, destroy() {} };
  }
  const charts = new ChartWall(keptSettings());
  const chips = el("div", { class: "chips" }, ids.map(chip));
  const figures = el("section", { class: "panel table-frame" }, el("p", { class: "muted pad", text: "loading …" }));
  const grid = el("div", { class: "grid" });
  const more = el("div", { class: "grid" });
  const folded = el("details", { class: "others", hidden: true }, el("summary", { text: "All other metrics" }), more);
  const config = el("section", { class: "panel table-frame" });
  fill(root, chips, figures, el("div", { class: "gap" }), charts.toolbar.root, grid, el("h2", { text: "Config differences" }), config, folded);
  let destroyed = false;
  const known = new Map();

  function chip(id, i) {
    const rest = ids.filter((other) => other !== id).map(encodeURIComponent).join(",");
    return el(
      "span",
      { class: "chip" },
      el("i", { class: "swatch", style: { background: `var(--s${i + 1})` } }),
      el("a", { href: `#/learning/${encodeURIComponent(id)}`, text: id }),
      ids.length > 1 && el("a", { class: "chip-close", href: `#/compare?runs=${rest}`, "aria-label": `Without ${id}` }, icon("close")),
    );
  }

  async function look() {
    const answers = await Promise.allSettled(ids.map((id) => context.api.json(runPath(id))));
    if (destroyed) return;
    const lost = [];
    answers.forEach((answer, i) => (answer.status === "fulfilled" ? known.set(ids[i], answer.value) : lost.push(`${ids[i]}: ${answer.reason.message}`)));
    if (lost.length) charts.toolbar.note(lost.join(" "));
    arrange();
    await lastFigures();
  }

  function arrange() {
    const metrics = [...new Map([...known.values()].flatMap((details) => details.metrics).map((metric) => [metric.name, metric])).values()];
    const runs = ids.map((id, colour) => ({ id, colour, names: new Set(known.get(id)?.metrics.map((metric) => metric.name)) }));
    const { main, others } = chartsOf(metrics);
    const rest = [...main.filter(isDetail), ...others];
    const specs = (list) => list.flatMap((chart) => specsOfRuns(chart, runs, metrics));
    charts.arrange(grid, specs(main.filter((chart) => !isDetail(chart))));
    charts.arrange(more, specs(rest));
    folded.hidden = !rest.length;
    fill(folded.firstChild, `All other metrics (${specs(rest).length})`);
    fill(config, configTable());
  }

  async function lastFigures() {
    const values = await Promise.all(ids.filter((id) => known.has(id)).map(async (id) => [id, await lastOf(id)]));
    if (!destroyed) fill(figures, figureTable(new Map(values)));
  }

  // The newest value of each, not the mean of its bucket: the last stretch is asked for by itself.
  async function lastOf(id) {
    const names = LAST.filter((name) => known.get(id).metrics.some((metric) => metric.name === name));
    if (!names.length) return {};
    try {
      const whole = await context.api.json(runPath(id, `/series?${seriesQuery(names, "step", null, 200)}`));
      const from = Math.min(...names.map((name) => whole.series[name]?.x.at(-2) ?? Infinity));
      const end = Number.isFinite(from) ? await context.api.json(runPath(id, `/series?${seriesQuery(names, "step", [from, Number.MAX_SAFE_INTEGER], 5000)}`)) : whole;
      return Object.fromEntries(names.map((name) => [name, end.series[name]?.y.at(-1) ?? whole.series[name]?.y.at(-1)]));
    } catch {
      return {}; // the table says so with dashes
    }
  }

  function figureTable(last) {
    const rows = ids.filter((id) => known.has(id)).map((id) => {
      const run = known.get(id);
      return el(
        "tr",
        {},
        el("th", { scope: "row", title: id }, el("i", { class: "swatch", style: { background: `var(--s${ids.indexOf(id) + 1})` } }), id),
        el("td", {}, pill(run.state)),
        el("td", { class: "number" }, el("b", { text: share(run.win_rate) }), " ", el("span", { class: "muted", text: interval(run.win_rate_low, run.win_rate_high) })),
        el("td", { class: "number", text: count(run.step) }),
        el("td", { class: "number", text: duration(run.elapsed_s) }),
        LAST.map((name) => el("td", { class: "number", text: number(last.get(id)?.[name], 4) })),
      );
    });
    const heads = ["Run", "State", "Win rate", "Steps", "Trained", "Return (eval.)", "Return (training)", "Steps/s", "Game hours", "Updates"];
    return el("table", { class: "table figures" }, el("thead", {}, el("tr", {}, heads.map((text, i) => el("th", { scope: "col", class: i > 1 ? "number" : "", text })))), el("tbody", {}, rows));
  }

  function configTable() {
    const there = ids.filter((id) => known.has(id));
    const found = differences(there.map((id) => known.get(id).config ?? ""));
    if (there.length < 2) return el("p", { class: "muted pad", text: "Select a second run to compare configs." });
    if (!found.length) return el("p", { class: "muted pad", text: "None: the configs are the same." });
    const head = el("tr", {}, el("th", { scope: "col", text: "Setting" }), there.map((id) => el("th", { scope: "col" }, el("i", { class: "swatch", style: { background: `var(--s${ids.indexOf(id) + 1})` } }), id)));
    const rows = found.map(({ key, values }) => el("tr", {}, el("th", { scope: "row" }, el("code", { text: key })), values.map((value) => el("td", {}, value === null ? el("span", { class: "muted", text: "not set" }) : el("code", { text: value })))));
    return el("table", { class: "table config" }, el("thead", {}, head), el("tbody", {}, rows));
  }

  look();
  let beats = 0;
  return {
    update({ type, data }) {
      if (type === "runs" && data.runs.some((run) => run.live && ids.includes(run.id))) charts.feed.grown();
      if (type === "tick" && ++beats % 10 === 0 && context.runs().some((run) => run.live && ids.includes(run.id))) look();
    },
    destroy() {
      destroyed = true;
      charts.destroy();
    },
  };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
