// Save, pause, unpause, stop: with a question first. Nothing else can be changed from here.

import { runPath } from "../api.js";
import { confirm } from "../dialogs.js";
import { copyable, el, fill, setText } from "../dom.js";
import { clock, duration } from "../format.js";
import { STATE_MEANINGS } from "../header.js";

const LOG_EVERY_MS = 2000;
const ACTIONS = {
  save: {
    label: "Save now",
    what: "Writes a checkpoint.",
    question: "Save a checkpoint now?",
    sentences: ["A checkpoint is written as soon as the current update is done. Training continues."],
    isDone: ({ asked }) => !asked.includes("save"),
  },
  pause: {
    label: "Pause",
    what: "Pauses training; the process keeps running.",
    question: "Pause this run?",
    sentences: ["No steps and no updates are made until it is unpaused, here or in a terminal. Nothing is lost.", "Its process stays and keeps its memory."],
    isDone: ({ state }) => state === "paused" || isOver(state),
  },
  unpause: {
    label: "Unpause",
    what: "Training continues where it was paused.",
    question: "Unpause this run?",
    sentences: ["Training continues at the step at which it was paused."],
    isDone: ({ state, asked }) => (state !== "paused" && !asked.includes("pause")) || isOver(state),
  },
  stop: {
    label: "Stop",
    what: "Saves a checkpoint and ends the process.",
    question: "Stop this run?",
    sentences: ["A checkpoint is saved and the process ends. Workers of a served run wait until it is resumed.", "It can be continued later from the command line: COMMAND"],
    danger: true,
    isDone: ({ state }) => isOver(state),
  },
};
const isOver = (state) => !["running", "paused", "stalled"].includes(state);

export function mount(root, context) {
  const reason = el("p", { class: "notice", role: "status" });
  const buttons = Object.entries(ACTIONS).map(([action, { label, danger }]) => el("button", { class: danger ? "button danger" : "button", type: "button", data: { action }, disabled: true, text: label, onclick: () => ask(action) }));
  const cards = Object.values(ACTIONS).map(({ what }, i) => el("div", { class: "action" }, buttons[i], el("p", { class: "muted", text: what })));
  const history = el("ol", { class: "requests", "aria-live": "polite" });
  const none = el("p", { class: "muted pad", text: "No requests from this page yet." });
  const open = el("p", { class: "muted pad", hidden: true });
  const log = el("pre", { class: "log", tabindex: "0", "aria-label": "End of the log" });
  const follow = el("input", { type: "checkbox", checked: true });
  const commands = el("dl", { class: "pairs commands" });
  fill(
    root,
    reason,
    el("section", { class: "panel" }, el("header", { class: "panel-head" }, el("h3", { text: "Control" })), el("div", { class: "actions" }, cards)),
    el("section", { class: "panel" }, el("header", { class: "panel-head" }, el("h3", { text: "In a terminal" })), commands),
    el("section", { class: "panel" }, el("header", { class: "panel-head" }, el("h3", { text: "Requests" })), open, none, history),
    el("section", { class: "panel" }, el("header", { class: "panel-head" }, el("h3", { text: "Log" }), el("span", { class: "grow" }), el("label", { class: "check" }, follow, " follow")), log),
  );
  const now = { state: context.entry()?.state ?? null, live: context.entry()?.live ?? null, asked: [], gone: false };
  const requests = [];
  let destroyed = false;
  let looking = false;
  let last = 0;

  async function look() {
    if (looking || document.hidden || destroyed) return;
    looking = true;
    last = Date.now();
    try {
      const details = await context.api.json(runPath(context.run));
      if (destroyed) return;
      Object.assign(now, { state: details.state, live: details.live, asked: details.asked ?? [], gone: false, details });
      showCommands();
      showLog(details.log ?? []);
      refresh();
    } catch (error) {
      if (destroyed) return;
      if (error.status === 404) now.gone = true;
      else setText(reason, error.message);
      refresh();
    } finally {
      looking = false;
    }
  }

  function showLog(lines) {
    const text = (Array.isArray(lines) ? lines : String(lines).split("\n")).join("\n") || "The log is empty.";
    if (log.textContent === text) return;
    log.textContent = text;
    if (follow.checked) log.scrollTop = log.scrollHeight;
  }

  // What to type instead: to continue a run that nobody trains, to invite somebody to one that is served.
  function showCommands() {
    const { folder, command, served, live, state } = now.details ?? {};
    if (!folder) return;
    const lines = [
      state === "paused" && ["Unpause it", `souls unpause ${folder}`],
      !live && command && [state === "finished" ? "Train it longer" : "Continue training", command],
      served && ["Invite somebody to play for it", `souls invite NAME ${folder}`],
      state !== "broken" && ["Evaluate it", `souls eval ${folder}`],
      ["Open this page again", `souls dashboard ${folder}`],
    ].filter(Boolean);
    const text = JSON.stringify(lines);
    if (text === commands.dataset.shown) return;
    commands.dataset.shown = text;
    fill(commands, lines.flatMap(([what, line]) => [el("dt", { text: what }), el("dd", {}, copyable(line))]));
  }

  async function ask(action) {
    const { question, sentences, label, danger } = ACTIONS[action];
    const sure = await confirm({ title: question, sentences: [`Run: ${context.run}`, ...sentences.map((text) => text.replace("COMMAND", now.details?.command ?? "souls train --resume"))], yes: label, danger });
    if (!sure || destroyed) return;
    const request = { action, at: Date.now(), done: null, error: null, item: el("li") };
    requests.unshift(request);
    history.prepend(request.item);
    try {
      const answer = await context.api.post(runPath(context.run, "/control"), { action });
      now.asked = answer.asked ?? now.asked;
    } catch (error) {
      request.error = error.message;
    }
    refresh();
    look();
  }

  function why() {
    if (now.gone) return "The run is gone: its folder was removed or moved.";
    if (!context.connected()) return "The page's server does not answer, so nothing can be requested.";
    if (now.state === null) return "Loading …";
    if (now.live) return "";
    return `This run is not being trained, so there is nothing to control. ${STATE_MEANINGS[now.state] ?? ""}`;
  }

  function refresh() {
    const text = why();
    const told = text || (now.state === "stalled" ? STATE_MEANINGS.stalled : "");
    setText(reason, told);
    reason.hidden = !told;
    const paused = now.state === "paused" || now.asked.includes("pause");
    const blocked = { save: now.asked.includes("save") && "It is being saved.", pause: paused && "It is paused already.", unpause: !paused && "It is not paused.", stop: now.asked.includes("stop") && "It is being stopped." };
    for (const button of buttons) {
      const because = text || blocked[button.dataset.action] || "";
      button.disabled = Boolean(because);
      button.title = because;
    }
    none.hidden = requests.length > 0 || now.asked.length > 0;
    open.hidden = !now.asked.length;
    setText(open, `Pending: ${now.asked.map((action) => (action === "pause" ? "pause, until it is unpaused" : action)).join(", ")}.`);
    for (const request of requests) tell(request);
  }

  function tell(request) {
    if (!request.done && !request.error && Date.now() - request.at > 300 && ACTIONS[request.action].isDone(now)) request.done = Date.now();
    const since = (until) => duration((until - request.at) / 1000);
    const status = request.error ? `refused: ${request.error}` : request.done ? `done after ${since(request.done)}` : `waiting for ${since(Date.now())} …`;
    request.item.className = request.error ? "refused" : request.done ? "done" : "waiting";
    request.item.dataset.action = request.action;
    setText(request.item, `${ACTIONS[request.action].label}, asked at ${clock(request.at)}: ${status}`);
  }

  refresh();
  look();
  return {
    update({ type, data }) {
      if (type === "run") {
        Object.assign(now, { state: data.state ?? now.state, live: data.live ?? now.live, asked: data.asked ?? now.asked, gone: Boolean(data.gone) });
        look();
      }
      if (type === "connection") refresh();
      if (type === "tick") {
        refresh();
        if (Date.now() - last > LOG_EVERY_MS) look();
      }
    },
    destroy: () => (destroyed = true),
  };
}
