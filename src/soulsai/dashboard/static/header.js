// The top of the page: which run, how it stands, how far it is, how often it wins; the tabs.

import { el, fill, icon, setText } from "./dom.js";
import { count, duration, interval, number, share } from "./format.js";

export const STATE_MEANINGS = {
  running: "It is being trained.",
  paused: "It is paused; unpause it on the Control page.",
  stopped: "It was stopped and can be resumed.",
  finished: "All steps are done.",
  failed: "It ended with an error; see its log.",
  killed: "Its process is gone without saving; it can be resumed from the last checkpoint.",
  stalled: "Its process lives, but has given no sign of life for a minute: it may compile, evaluate for long, or hang.",
  unknown: "Its status file is damaged and its process is gone; it can be resumed.",
  broken: "Its first files cannot be read; the line at the bottom of the page says which.",
  "no connection": "The page's server does not answer, so nothing is known of the run now.",
};
const ACTIVE = ["running", "paused", "stalled"];

// A number and its unit stay on one line.
const unbroken = (text) => text.replace(/(\d) (%|[kMG]\b)/g, "$1\u202f$2");

export function pill(state) {
  const node = el("span", { class: "pill" });
  setState(node, state);
  return node;
}

export function setState(node, state) {
  const known = state in STATE_MEANINGS ? state : "unknown";
  if (node.dataset.state === known && node.textContent === state) return;
  node.dataset.state = known;
  node.textContent = state ?? "unknown";
  node.title = STATE_MEANINGS[state] ?? "Its status cannot be read.";
}

export class Header {
  // callbacks: onRun(id), onHelp(); tabs: [{view, label}]; href(tab)
  constructor(root, tabs, callbacks) {
    this.tabs = tabs;
    this.select = el("select", { class: "run-select", "aria-label": "Run", onchange: () => callbacks.onRun(this.select.value) });
    this.pill = pill("…");
    this.bar = el("div", { class: "bar-fill" });
    this.progress = el("div", { class: "bar", role: "progressbar", "aria-label": "Progress", "aria-valuemin": "0", "aria-valuemax": "100" }, this.bar);
    this.steps = el("span", { class: "figure-text" });
    this.rate = el("b", { class: "rate" });
    this.rateInterval = el("span", { class: "muted" });
    this.facts = el("div", { class: "header-facts", role: "status", "aria-live": "off" });
    this.wins = el("div", { class: "header-rate", title: "Win rate of the newest evaluation, with its 95 % interval" }, el("span", { class: "muted", text: "win rate " }), this.rate, " ", this.rateInterval);
    this.about = el(
      "div",
      { class: "about" },
      this.select,
      this.pill,
      el("div", { class: "header-progress" }, this.progress, this.steps),
      this.wins,
    );
    this.links = tabs.map((tab, i) => el("a", { class: "tab", data: { view: tab.view }, title: `${tab.label} (key ${i + 1})`, text: tab.label }));
    fill(
      root,
      el(
        "div",
        { class: "header-top" },
        el("a", { class: "brand", href: "#/runs", "aria-label": "souls: all runs" }, el("img", { src: "/static/icon.svg", alt: "", width: "22", height: "22" }), el("span", { text: "souls" })),
        this.about,
        el(
          "div",
          { class: "header-buttons" },
          el("button", { class: "icon-button", type: "button", title: "Light or dark (key t)", "aria-label": "Light or dark", onclick: () => window.soulsTheme.toggle() }, icon("theme")),
          el("button", { class: "icon-button", type: "button", title: "Keys (key ?)", "aria-label": "Keys", onclick: callbacks.onHelp, text: "?" }),
        ),
      ),
      this.facts,
      el("nav", { class: "tabs", "aria-label": "Views" }, this.links),
    );
  }

  setRuns(runs, chosen) {
    const wanted = [chosen ? "" : "none", ...runs.map((run) => run.id)].join("\n");
    if (this.known !== wanted) {
      this.known = wanted;
      fill(this.select, chosen ? null : el("option", { value: "", text: runs.length ? "choose a run" : "no runs", hidden: true }), runs.map((run) => el("option", { value: run.id, text: run.id })));
    }
    if (chosen && !runs.some((run) => run.id === chosen)) {
      this.known = null;
      this.select.append(el("option", { value: chosen, text: chosen }));
    }
    this.select.value = chosen ?? "";
    this.select.title = chosen ?? ""; // a long name is cut
    this.select.disabled = runs.length < 1;
    this.about.classList.toggle("none", !chosen);
  }

  setRun(entry) {
    if (!entry) return;
    this.entry = entry;
    this.showState();
    const portion = entry.steps ? Math.min(1, entry.step / entry.steps) : 0;
    this.bar.style.setProperty("transform", `scaleX(${portion})`);
    this.bar.dataset.state = entry.state;
    this.progress.setAttribute("aria-valuenow", String(Math.round(100 * portion)));
    setText(this.steps, entry.steps ? `${number(entry.step)} / ${number(entry.steps)} steps` : `${number(entry.step)} steps`);
    this.steps.title = `${count(entry.step)} of ${count(entry.steps)} steps`;
    setText(this.rate, share(entry.win_rate));
    const between = interval(entry.win_rate_low, entry.win_rate_high);
    setText(this.rateInterval, between && `(${between})`);
    this.wins.hidden = entry.world === "gym";
    this.tick();
  }

  setConnection(how) {
    this.connection = how;
    this.showState();
    this.tick();
  }

  // The state of a run that goes on is only known while the server answers.
  showState() {
    if (!this.entry) return;
    const unknown = (this.connection ?? "open") !== "open" && ACTIVE.includes(this.entry.state);
    setState(this.pill, unknown ? "no connection" : this.entry.gone ? "gone" : this.entry.state);
  }

  // Speed, time left and the age of the last row; and how it goes, in words.
  tick() {
    const { entry } = this;
    if (!entry) return;
    const age = entry.row_at ? Date.now() / 1000 - entry.row_at : null;
    const going = entry.live && this.pill.dataset.state === "running";
    const left = going && entry.speed > 0 && entry.steps ? Math.max(0, entry.steps - entry.step) / entry.speed : null;
    const old = age !== null && age > 30 && ["running", "stalled"].includes(this.pill.dataset.state); // a pause is no alarm
    fill(
      this.facts,
      going && entry.speed > 0 && el("span", { title: "Environment steps a second over the last minute of training" }, `${number(entry.speed)} steps/s`),
      left !== null && el("span", { title: "At the speed of the last minute" }, left ? `${duration(left)} left` : "nearly done"),
      age !== null && el("span", { class: old ? "old" : "", title: "When the last row of metrics was written" }, `last row ${age < 2 ? "now" : `${duration(Math.floor(age)).split(" ")[0]} ago`}`),
      entry.verdict && el("b", { class: "verdict", data: { verdict: entry.verdict.split(/[:,;]/)[0] }, title: "Evaluations a third of the run ago, and now", text: unbroken(entry.verdict) }),
    );
  }

  setTabs(view, hrefOf) {
    this.tabs.forEach((tab, i) => {
      const here = tab.view === view || (view === "compare" && tab.view === "runs");
      this.links[i].setAttribute("href", hrefOf(tab.view));
      if (here) this.links[i].setAttribute("aria-current", "page");
      else this.links[i].removeAttribute("aria-current");
    });
  }
}
