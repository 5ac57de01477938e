// Whether all machines are well: every worker, what became of each row, who is sick and what that means.

import { runPath } from "../api.js";
import { copyable, el, empty, fill, told } from "../dom.js";
import { count, duration, number, plural, share } from "../format.js";

const EVERY_MS = 2000;
const LONG_GONE_S = 600;
const SICK = {
  silent: "No heartbeat: the process, the machine or the network is gone. What was sent is safe; a worker joins again when it can.",
  frozen: "Heartbeats come but no steps: the game or the environment hangs. Its supervisor restarts it, or you do.",
};
// A version is the life of the learner in the upper half, and the count of its policies in the lower.
const versionsOf = (learner) => Number(learner?.version ?? NaN) % 2 ** 32;
const HEADS = ["Worker", "Host", "State", "Steps/s", "Lag", "Episodes", "Wins", "Seen", "Restarts", "Sent", "Stored", "Dropped"];
const WORDS = new Set(["Worker", "Host", "State", "Dropped"]);

export function mount(root, context) {
  const content = el("div", {}, el("p", { class: "muted", text: "loading …" }));
  fill(root, content);
  let destroyed = false;
  let asking = false;
  let last = 0;
  let shown = "";

  async function look() {
    if (asking || document.hidden || Date.now() - last < EVERY_MS - 100) return;
    asking = true;
    last = Date.now();
    try {
      const report = await context.api.json(runPath(context.run, "/fleet"));
      if (!destroyed) show(report);
    } catch (error) {
      if (!destroyed && !shown) fill(content, empty(error.message));
    } finally {
      asking = false;
    }
  }

  function show(report) {
    const entry = context.entry(); // which may be known later than the report
    const text = JSON.stringify([report, entry?.command, entry?.live]);
    if (text === shown) return;
    shown = text;
    const at = content.querySelector(".table-frame")?.scrollLeft ?? 0;
    fill(content, report.known ? known(report, entry) : unknown(report, entry));
    const frame = content.querySelector(".table-frame");
    if (frame) frame.scrollLeft = at;
  }

  look();
  return { update: ({ type }) => type === "tick" && look(), destroy: () => (destroyed = true) };
}

// How to serve it again.
const again = (entry) => (entry?.command && !entry.live ? el("p", { class: "invite" }, "Serve it again:", " ", copyable(entry.command)) : null);

// How others can play for this run.
function invitation(entry, served) {
  if (!entry?.command) return null;
  const [what, line] = served ? ["Invite somebody to play for it:", `souls invite NAME ${entry.folder}`] : ["Serve it to workers on other machines:", entry.command.replace(/^souls train( --game)?/, "souls serve")];
  return el("p", { class: "invite" }, what, " ", copyable(line));
}

function unknown(report, entry) {
  const rest = Object.entries(report.metrics ?? {});
  return [
    empty(report.reason || "This run is not served, so it has no fleet; `souls serve` gives a run workers on many machines."),
    entry?.live ? null : invitation(entry, false),
    rest.length ? el("section", { class: "panel" }, el("header", { class: "panel-head" }, el("h3", { text: "Last metrics" })), el("dl", { class: "pairs" }, rest.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: number(value) })]))) : null,
  ];
}

function known(report, entry) {
  const workers = report.workers ?? [];
  const gone = workers.filter(isGone);
  const there = workers.filter((worker) => !isGone(worker));
  const sick = there.filter((worker) => worker.state in SICK);
  return [
    report.now ? null : el("p", { class: "notice" }, told(report.reason || "It is not being served now; this is how its fleet was when it ended.")),
    tiles(report, there, sick),
    Object.keys(SICK).map((state) => sickness(state, sick.filter((worker) => worker.state === state))),
    el("section", { class: "panel table-frame" }, there.length || gone.length ? table(there, gone) : el("p", { class: "muted pad" }, "No workers yet.")),
    report.now ? invitation(entry, true) : again(entry),
    names(report.names ?? {}),
    el("section", { class: "panel books" }, el("h2", { text: "Accounting of all rows" }), el("p", { class: "books-line", text: report.line ?? "" }), openBooks(report), (report.refused_lines ?? []).map((line) => el("p", { class: "problem", text: line })), flow(report.total)),
  ];
}

// One line for all workers that have the same trouble.
function sickness(state, workers) {
  if (!workers.length) return null;
  const who = workers.map((worker) => worker.worker);
  const names = who.length > 3 ? `${who.slice(0, 3).join(", ")} and ${who.length - 3} more` : who.join(" and ");
  return el("p", { class: "notice bad" }, el("b", { text: names }), ` ${who.length > 1 ? "are" : "is"} ${state}. `, SICK[state]);
}

const isGone = (worker) => worker.state === "left" || (worker.state === "silent" && (worker.seen_s === null || worker.seen_s > LONG_GONE_S));

function openBooks(report) {
  const open = Object.entries(report.open ?? {});
  return open.map(([worker, rows]) => el("p", { class: "problem", text: `${worker}: the counts do not add up: ${count(rows.expected)} rows should be on their way, ${count(rows.found)} are.` }));
}

// The same line as a picture.
function flow(total) {
  if (!total?.sent) return null;
  const dropped = Object.values(total.dropped ?? {}).reduce((sum, rows) => sum + rows, 0);
  const parts = [
    ["stored", total.stored, "good"],
    ["in flight", total.in_flight, "flying"],
    ["dropped", dropped, "bad"],
  ];
  return el("div", { class: "flow", "aria-hidden": "true" }, parts.map(([name, rows, kind]) => el("i", { class: `flow-${kind}`, title: `${name} ${count(rows)}`, style: { "flex-grow": String(Math.max(0, rows)) } })));
}

function tiles(report, there, sick) {
  const sum = (key) => there.reduce((total, worker) => total + (worker[key] ?? 0), 0);
  const [wins, fights] = ["wins", "fights"].map((key) => (report.workers ?? []).reduce((total, worker) => total + (worker[key] ?? 0), 0));
  const playing = there.filter((worker) => !(worker.state in SICK)).length;
  const unreadable = Object.values(report.unreadable ?? {}).reduce((total, messages) => total + messages, 0);
  const figures = [
    ["Healthy workers", `${playing} of ${there.length}`, sick.length ? "bad" : ""],
    ["Total steps/s", number(sum("steps_per_s"))],
    ["Episodes", count((report.workers ?? []).reduce((total, worker) => total + (worker.episodes ?? 0), 0))],
    ["Wins in training", fights ? share(wins / fights) : "–"],
    ["Policies published", count(versionsOf(report.learner))],
    ["Unreadable messages", count(unreadable), unreadable ? "bad" : ""],
  ];
  return el("dl", { class: "tiles" }, figures.map(([name, value, kind = ""]) => el("div", { class: `tile ${kind}` }, el("dt", { text: name }), el("dd", { text: value }))));
}

function table(there, gone) {
  const head = el("tr", {}, HEADS.map((text) => el("th", { scope: "col", class: WORDS.has(text) ? "" : "number", text })));
  const rows = there.map((worker) =>
    el(
      "tr",
      { class: worker.state in SICK ? "sick" : "", data: { worker: worker.worker } },
      el("th", { scope: "row", text: worker.worker }),
      el("td", { text: worker.host || "–" }),
      el("td", {}, el("span", { class: "pill", title: SICK[worker.state] ?? "", data: { state: worker.state }, text: worker.state })),
      cells([number(worker.steps_per_s), worker.lag === null ? "–" : count(worker.lag), count(worker.episodes), worker.win_rate === null ? "–" : share(worker.win_rate), seen(worker.seen_s), count(worker.restarts), count(worker.sent), count(worker.stored)]),
      el("td", { text: reasons(worker.dropped) }),
    ),
  );
  if (gone.length) {
    const sum = (key) => gone.reduce((total, worker) => total + (worker[key] ?? 0), 0);
    const dropped = {};
    for (const worker of gone) for (const [reason, lost] of Object.entries(worker.dropped ?? {})) dropped[reason] = (dropped[reason] ?? 0) + lost;
    rows.push(
      el(
        "tr",
        { class: "gone" },
        el("th", { scope: "row", text: `${plural(gone.length, "earlier session", "earlier sessions")}` }),
        el("td"),
        el("td", {}, el("span", { class: "pill", data: { state: "left" }, text: "left" })),
        cells(["", "", count(sum("episodes")), sum("fights") ? share(sum("wins") / sum("fights")) : "–", "", count(sum("restarts")), count(sum("sent")), count(sum("stored"))]),
        el("td", { text: reasons(dropped) }),
      ),
    );
  }
  return el("table", { class: "table workers" }, el("thead", {}, head), el("tbody", {}, rows));
}

const cells = (texts) => texts.map((text) => el("td", { class: "number", text }));
const seen = (seconds) => (seconds === null || seconds === undefined ? "never" : `${duration(Math.round(seconds))} ago`);
const reasons = (dropped) => Object.entries(dropped ?? {}).sort().map(([reason, rows]) => `${reason} ${count(rows)}`).join(", ") || "none";

function names(byName) {
  const entries = Object.entries(byName).sort(([, one], [, two]) => two.stored - one.stored);
  if (entries.length < 2) return null;
  const head = el("tr", {}, ["Who", "Sessions", "Steps", "Episodes", "Stored", "Share"].map((text, i) => el("th", { scope: "col", class: i ? "number" : "", text })));
  const rows = entries.map(([name, sum]) => el("tr", {}, el("th", { scope: "row", text: name }), cells([count(sum.lives), count(sum.steps), count(sum.episodes), count(sum.stored), share(sum.share)])));
  return [el("h2", { text: "Contributions" }), el("section", { class: "panel table-frame" }, el("table", { class: "table" }, el("thead", {}, head), el("tbody", {}, rows)))];
}
