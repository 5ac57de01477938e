// All runs of a folder: which live, how far they are, how often they win; tick some to compare them.

import { el, empty, fill, setText } from "../dom.js";
import { ago, count, duration, interval, number, plural, share } from "../format.js";
import { pill, setState } from "../header.js";

const COLUMNS = [
  { key: "id", label: "Run", value: (run) => run.id },
  { key: "state", label: "State", value: (run) => run.state },
  { key: "progress", label: "Progress", value: (run) => (run.steps ? run.step / run.steps : 0) },
  { key: "win_rate", label: "Win rate (95 % interval)", value: (run) => run.win_rate ?? -1 },
  { key: "preset", label: "Preset", value: (run) => run.preset ?? "" },
  { key: "elapsed", label: "Trained", value: (run) => run.elapsed_s ?? 0, number: true },
  { key: "updated", label: "Last change", value: (run) => Date.parse(run.updated ?? "") || 0, number: true },
];
const MOST = 8; // as many as there are colours

export function mount(root, context) {
  const ticked = new Set((context.params.get("runs") ?? "").split(",").filter(Boolean).map(decodeURIComponent));
  const rows = new Map();
  let order = { key: null, up: true };
  const filter = el("input", { type: "search", class: "input", placeholder: "Filter by name, preset or state", "aria-label": "Filter the runs", oninput: arrange });
  const compare = el("button", { class: "button primary", type: "button", disabled: true, text: "Compare", onclick: open });
  const total = el("span", { class: "muted" });
  const heads = COLUMNS.map((column) =>
    el(
      "th",
      { scope: "col", class: column.number ? "number" : "", data: { column: column.key } },
      el("button", { class: "sort", type: "button", text: column.label, onclick: () => sortBy(column.key) }),
    ),
  );
  const body = el("tbody");
  const table = el("table", { class: "table runs" }, el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "tick" }, el("span", { class: "hidden", text: "Compare" })), heads)), body);
  const nothing = el("div");
  fill(root, el("div", { class: "toolbar" }, filter, compare, total), el("div", { class: "panel table-frame" }, table, nothing));

  function open() {
    context.go(`#/compare?runs=${[...ticked].map(encodeURIComponent).join(",")}`);
  }

  function sortBy(key) {
    order = { key, up: order.key === key ? !order.up : true };
    COLUMNS.forEach((column, i) => (column.key === key ? heads[i].setAttribute("aria-sort", order.up ? "ascending" : "descending") : heads[i].removeAttribute("aria-sort")));
    arrange();
  }

  function matches(run) {
    const text = filter.value.trim().toLowerCase();
    return !text || [run.id, run.preset, run.state, run.algorithm, run.world].some((value) => String(value ?? "").toLowerCase().includes(text));
  }

  function sorted(runs) {
    const column = COLUMNS.find((each) => each.key === order.key);
    const live = (run) => (run.live ? 0 : 1);
    if (!column) return [...runs].sort((a, b) => live(a) - live(b)); // newest first within
    return [...runs].sort((a, b) => {
      const [one, two] = [column.value(a), column.value(b)];
      return (order.up ? 1 : -1) * (one < two ? -1 : one > two ? 1 : 0);
    });
  }

  function rowOf(run) {
    const tick = el("input", { type: "checkbox", "aria-label": `Compare ${run.id}`, checked: ticked.has(run.id), onchange: () => choose(run.id, tick) });
    const parts = {
      tick,
      state: pill(run.state),
      bar: el("div", { class: "bar-fill" }),
      steps: el("span", { class: "figure-text" }),
      rate: el("b", { class: "figure-text" }),
      between: el("span", { class: "muted figure-text" }),
      whisker: el("div", { class: "whisker" }, el("i", { class: "whisker-band" }), el("i", { class: "whisker-dot" })),
      preset: el("span"),
      kind: el("span", { class: "muted small-text" }),
      elapsed: el("td", { class: "number cell-elapsed" }),
      updated: el("td", { class: "number cell-updated" }),
      problem: el("span", { class: "problem" }),
    };
    parts.row = el(
      "tr",
      { data: { run: run.id } },
      el("td", { class: "tick" }, tick),
      el("td", { class: "cell-id" }, el("a", { href: `#/learning/${encodeURIComponent(run.id)}`, class: "run-link", text: run.id }), parts.problem),
      el("td", { class: "cell-state" }, parts.state),
      el("td", { class: "cell-progress" }, el("div", { class: "bar" }, parts.bar), parts.steps),
      el("td", { class: "cell-rate" }, parts.whisker, el("span", { class: "rate-text" }, parts.rate, " ", parts.between)),
      el("td", { class: "cell-preset" }, parts.preset, parts.kind),
      parts.elapsed,
      parts.updated,
    );
    return parts;
  }

  function choose(id, tick) {
    if (tick.checked && ticked.size >= MOST) tick.checked = false;
    if (tick.checked) ticked.add(id);
    else ticked.delete(id);
    tell();
  }

  function tell() {
    compare.disabled = ticked.size < 2;
    compare.textContent = ticked.size ? `Compare ${ticked.size}` : "Compare";
    compare.title = ticked.size < 2 ? "Tick at least two runs" : "Side by side";
    const runs = context.runs();
    const live = runs.filter((run) => run.live).length;
    const limit = ticked.size >= MOST ? `; ${MOST} runs at most` : ticked.size === 1 ? "; tick one more to compare" : "";
    setText(total, `${plural(runs.length, "run")}, ${count(live)} live${limit}`);
  }

  function show(parts, run) {
    setState(parts.state, run.state);
    parts.row.classList.toggle("live", Boolean(run.live));
    parts.bar.dataset.state = run.state;
    parts.bar.style.setProperty("transform", `scaleX(${run.steps ? Math.min(1, run.step / run.steps) : 0})`);
    setText(parts.steps, run.steps ? `${number(run.step)} / ${number(run.steps)}` : number(run.step));
    setText(parts.rate, run.world === "gym" ? `return ${number(run.return)}` : share(run.win_rate));
    setText(parts.between, interval(run.win_rate_low, run.win_rate_high));
    const known = Number.isFinite(run.win_rate ?? NaN);
    parts.whisker.classList.toggle("unknown", !known);
    if (known) {
      parts.whisker.style.setProperty("--low", String(run.win_rate_low ?? run.win_rate));
      parts.whisker.style.setProperty("--high", String(run.win_rate_high ?? run.win_rate));
      parts.whisker.style.setProperty("--rate", String(run.win_rate));
    }
    setText(parts.preset, run.preset || "–");
    setText(parts.kind, [run.algorithm, run.engine === "game" ? "game" : run.world, run.served ? "served" : ""].filter(Boolean).join(" · "));
    setText(parts.elapsed, duration(run.elapsed_s));
    setText(parts.updated, ago(run.updated));
    setText(parts.problem, run.problem ?? "");
  }

  function arrange() {
    const runs = context.runs();
    const wanted = sorted(runs.filter(matches));
    for (const id of rows.keys()) if (!runs.some((run) => run.id === id)) rows.delete(id);
    for (const run of runs) {
      if (!rows.has(run.id)) rows.set(run.id, rowOf(run));
      show(rows.get(run.id), run);
    }
    const now = [...body.children];
    const then = wanted.map((run) => rows.get(run.id).row);
    if (now.length !== then.length || now.some((row, i) => row !== then[i])) body.replaceChildren(...then);
    fill(nothing, wanted.length ? null : empty(runs.length ? "No run matches the filter." : `There are no runs in ${context.root() || "this folder"} yet.`, runs.length ? "" : "Start one with `souls train`"));
    table.hidden = !wanted.length;
    tell();
  }

  arrange();
  return { update: ({ type }) => type !== "run" && arrange(), destroy() {} };
}
