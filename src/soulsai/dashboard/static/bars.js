// Horizontal bars: counts by name, two kinds beside each other, each as a share of its own sum.

import { el } from "./dom.js";
import { count, share } from "./format.js";

const MOST = 12;

// kinds: [{name, colour, groups: {label: count}}]; the order is that of the first with the rest behind.
// more(label): what stands behind the name of a row, if anything.
export function groupedBars(kinds, { keepOrder = false, more } = {}) {
  const sums = kinds.map(({ groups }) => Object.values(groups).reduce((sum, value) => sum + value, 0));
  const labels = [...new Set(kinds.flatMap(({ groups }) => Object.keys(groups)))];
  const shareOf = (k, label) => (sums[k] ? (kinds[k].groups[label] ?? 0) / sums[k] : 0);
  if (!keepOrder) labels.sort((a, b) => shareOf(0, b) - shareOf(0, a) || shareOf(1, b) - shareOf(1, a));
  const largest = kinds.map((_, k) => Math.max(...labels.map((label) => shareOf(k, label)), 1e-9)); // each kind has its scale
  const row = (label) =>
    el(
      "div",
      { class: "bars-row" },
      el("span", { class: "bars-label", title: label }, label, more?.(label)),
      el(
        "div",
        { class: "bars-pair" },
        kinds.map(({ name, colour, groups }, k) =>
          el(
            "div",
            { class: "bars-line", title: `${label}: ${count(groups[label] ?? 0)} ${name}, ${share(shareOf(k, label))} of all` },
            el("i", { class: "bars-bar", style: { width: `${(78 * shareOf(k, label)) / largest[k]}%`, background: colour } }),
            el("span", { class: "bars-value", text: groups[label] ? `${count(groups[label])}` : "0" }),
            groups[label] ? el("span", { class: "muted bars-share", text: share(shareOf(k, label), 0) }) : null,
          ),
        ),
      ),
    );
  const rows = labels.slice(0, MOST).map(row);
  const rest = labels.slice(MOST).map(row);
  return el("div", { class: "bars" }, rows, rest.length ? el("details", {}, el("summary", { text: `${rest.length} rarer ones` }), rest) : null);
}
