// The page: which view of which run is shown, and what the events change in it.

import * as api from "./api.js";
import { empty, fill, setText } from "./dom.js";
import { Events } from "./events.js";
import { Header } from "./header.js";
import * as keys from "./keys.js";

const TABS = [
  { view: "runs", label: "Runs" },
  { view: "learning", label: "Learning" },
  { view: "fleet", label: "Fleet" },
  { view: "fight", label: "Fight" },
  { view: "watch", label: "Watch" },
  { view: "control", label: "Control" },
];
const MODULES = {
  runs: () => import("./views/runs.js"),
  compare: () => import("./views/compare.js"),
  learning: () => import("./views/learning.js"),
  fleet: () => import("./views/fleet.js"),
  fight: () => import("./views/fight.js"),
  watch: () => import("./viewer/view.js"),
  control: () => import("./views/control.js"),
};
const OF_A_RUN = ["learning", "fleet", "fight", "watch", "control"];
const TICK_MS = 1000;

const view = document.getElementById("view");
const banner = document.getElementById("banner");
const state = { runs: [], root: "", run: null, entry: null, view: null, handle: null, route: 0, loaded: false };

const go = (hash) => {
  if (location.hash === hash) route();
  else location.hash = hash;
};
const hrefOf = (name) => (OF_A_RUN.includes(name) && state.run ? `#/${name}/${encodeURIComponent(state.run)}` : `#/${name}`);
const header = new Header(document.getElementById("header"), TABS, {
  onRun: (run) => go(`#/${OF_A_RUN.includes(state.view) ? state.view : "learning"}/${encodeURIComponent(run)}`),
  onHelp: () => showHelp(),
});
const showHelp = keys.listen(TABS, (tab) => go(hrefOf(tab.view)));
const events = new Events({ onRuns, onRun, onState: onConnection });

function tell(text) {
  setText(banner, text);
  banner.hidden = !text;
}

let connection = "open";

function onConnection(how) {
  if (how === "lost" && connection === "ended") return; // that was the last word
  if (how === connection) return;
  connection = how;
  header.setConnection(how);
  refreshBanner();
  state.handle?.update({ type: "connection", data: how });
}

// Nothing is known of a run whose page does not answer: `souls train --dashboard` takes its page along when it ends.
function lostText() {
  const place = state.entry?.folder;
  const again = place ? `; open it again with: souls dashboard ${place}` : "";
  if (connection === "ended") return `The server of this page has ended${again}`;
  return `Connection lost, trying again. If the training was stopped or killed, its page ended with it${again}`;
}

function refreshBanner() {
  if (connection !== "open") tell(lostText());
  else if (state.entry?.gone) tell("The run is gone: its folder was removed or moved.");
  else if (state.entry?.problem) tell(`${state.run}: ${state.entry.problem}`);
  else tell("");
}

function onRuns({ runs, root }) {
  state.runs = runs;
  state.root = root ?? state.root;
  const first = !state.loaded;
  state.loaded = true;
  const entry = runs.find((run) => run.id === state.run);
  if (entry) setEntry(entry);
  header.setRuns(runs, state.run);
  if ((first && !state.view) || (!state.run && runs.length && OF_A_RUN.includes(state.view))) route();
  else state.handle?.update({ type: "runs", data: { runs, root: state.root } });
}

function onRun(event) {
  if (event.id !== state.run) return;
  setEntry(event);
  state.handle?.update({ type: "run", data: event });
}

function setEntry(values) {
  state.entry = { ...state.entry, gone: false, ...values };
  header.setRun(state.entry);
  document.title = `${state.entry.id} · souls`;
  refreshBanner();
}

// "#/learning/RUN?x=y" in parts; a broken escape is no run.
function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [name = "", run = ""] = path.split("/");
  try {
    return { name, run: decodeURIComponent(run) || null, params: new URLSearchParams(query) };
  } catch {
    return { name, run: null, params: new URLSearchParams() };
  }
}

const preferred = () => (state.runs.find((run) => run.live) ?? state.runs[0])?.id ?? null;

function landing() {
  const live = state.runs.filter((run) => run.live);
  return state.runs.length === 1 || live.length === 1 ? "learning" : "runs";
}

async function route() {
  const number = ++state.route;
  const asked = parse(location.hash);
  const name = asked.name in MODULES ? asked.name : landing();
  const run = asked.run ?? (OF_A_RUN.includes(name) ? (state.run ?? preferred()) : state.run);
  if (run !== state.run) {
    state.run = run;
    state.entry = state.runs.find((entry) => entry.id === run) ?? null;
    if (state.entry) setEntry(state.entry);
    else document.title = "souls";
    refreshBanner();
  }
  events.follow(state.run);
  state.view = name;
  header.setRuns(state.runs, state.run);
  header.setTabs(name, hrefOf);
  leave();
  if (OF_A_RUN.includes(name) && !run) {
    fill(view, noRuns());
    return;
  }
  try {
    const module = await MODULES[name]();
    if (number !== state.route) return;
    view.replaceChildren();
    view.dataset.view = name;
    state.handle = module.mount(view, contextOf(run, asked.params));
  } catch (error) {
    if (number === state.route) fill(view, empty("This view could not be loaded.", error.message));
  }
}

function contextOf(run, params) {
  return { run, params, go, api: { json: api.json, post: api.post }, runs: () => state.runs, root: () => state.root, entry: () => state.entry, connected: () => connection === "open" };
}

function leave() {
  state.handle?.destroy();
  state.handle = null;
}

function noRuns() {
  if (!state.loaded) return empty("Loading runs …");
  return empty(`There are no runs in ${state.root || "this folder"} yet.`, "Start one with `souls train`");
}

async function begin() {
  window.addEventListener("hashchange", route);
  setInterval(() => {
    if (document.hidden) return;
    header.tick();
    state.handle?.update({ type: "tick" });
  }, TICK_MS);
  const asked = parse(location.hash);
  if (asked.run && asked.name in MODULES) route(); // need not wait for the list
  try {
    const payload = await api.json("/api/runs");
    if (!state.loaded) onRuns(payload);
  } catch (error) {
    fill(view, empty(error.message, error.status === 0 ? "The page tries again by itself." : ""));
    events.follow(null);
  }
}

begin();
