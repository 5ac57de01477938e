// Above the charts: x axis, smoothing, way back from a zoom.

import { el, setText } from "./dom.js";
import { X_AXES } from "./format.js";

const KEY = "souls.charts";
const DEFAULTS = { axis: "step", smoothing: 0 };

export function keptSettings() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY)) ?? {};
    return {
      axis: kept.axis in X_AXES ? kept.axis : DEFAULTS.axis,
      smoothing: kept.smoothing >= 0 && kept.smoothing < 1 ? kept.smoothing : DEFAULTS.smoothing,
    };
  } catch {
    return { ...DEFAULTS }; // storage is closed, or holds something else
  }
}

function keep(settings) {
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // lasts until the page is closed
  }
}

// The slider runs evenly over what the eye can tell apart: 0.9 and 0.99 are as far apart as 0 and 0.9.
const weightOf = (place) => (place <= 0 ? 0 : 1 - 10 ** (-place / 50));
const placeOf = (weight) => Math.round(-50 * Math.log10(1 - weight));

// What was typed, as a pattern; a broken one is taken as plain text.
function patternOf(text) {
  if (!text) return null;
  try {
    return new RegExp(text, "i");
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  }
}

export function chartToolbar(settings, { onAxis, onSmoothing, onReset, onFilter }) {
  const radios = Object.entries(X_AXES).map(([axis, { label }]) =>
    el(
      "label",
      { class: "segment" },
      el("input", { type: "radio", name: "x-axis", value: axis, checked: axis === settings.axis, onchange: () => { settings.axis = axis; keep(settings); onAxis(axis); } }),
      el("span", { text: label }),
    ),
  );
  const value = el("output", { class: "figure-text", text: settings.smoothing.toFixed(2) });
  const slider = el("input", {
    type: "range", min: "0", max: "100", step: "1", value: String(placeOf(settings.smoothing)), "aria-label": "Smoothing",
    oninput: () => {
      settings.smoothing = weightOf(Number(slider.value));
      setText(value, settings.smoothing.toFixed(2));
      keep(settings);
      onSmoothing(settings.smoothing);
    },
  });
  const back = el("button", { class: "button small", type: "button", text: "Whole run", title: "Back from the zoom", hidden: true, onclick: onReset });
  const filter = el("input", { type: "search", class: "input", placeholder: "Filter charts", "aria-label": "Filter the charts by name or pattern", oninput: () => onFilter(patternOf(filter.value.trim())) });
  const note = el("span", { class: "muted toolbar-note", role: "status" });
  const root = el(
    "div",
    { class: "toolbar" },
    el("fieldset", { class: "segmented" }, el("legend", { class: "hidden", text: "X axis" }), radios),
    el("label", { class: "slider" }, el("span", { class: "muted", text: "Smoothing" }), slider, value),
    filter,
    back,
    note,
  );
  return {
    root,
    zoomed: (is) => (back.hidden = !is),
    note: (text) => setText(note, text),
  };
}
