// Elements without HTML text: whatever comes from outside becomes text, never markup.

import { el, fill, setText, svg } from "./viewer/elements.js";

export { el, fill, setText };

const ICONS = {
  image: "M2 3h12v10H2zM2 11l4-4 3 3 2-2 3 3M11 6h.01",
  table: "M2 3h12v10H2zM2 6.500h12M2 10h12M6 3v10",
  grow: "M9.500 2H14v4.500M14 2L9 7M6.500 14H2V9.500M2 14l5-5",
  info: "M8 7.200v4M8 4.800h.01M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z",
  theme: "M8 2a6 6 0 1 0 6 6 4.500 4.500 0 0 1-6-6z",
  close: "M4 4l8 8M12 4l-8 8",
};

export function icon(name) {
  return svg(
    "svg",
    { viewBox: "0 0 16 16", width: "14", height: "14", fill: "none", "aria-hidden": "true", class: "icon" },
    svg("path", {
      d: ICONS[name],
      stroke: "currentColor",
      "stroke-width": "1.4",
      "stroke-linecap": "round",
      "stroke-linejoin": "round",
    }),
  );
}

// A sentence in which `commands` stand between backticks.
export function told(sentence) {
  return String(sentence).split("`").map((part, i) => (i % 2 ? el("code", { text: part }) : part));
}

export function empty(sentence, detail = "") {
  return el("div", { class: "empty" }, el("p", {}, told(sentence)), detail && el("p", { class: "muted" }, told(detail)));
}

// A command with a button that copies it.
export function copyable(command) {
  const code = el("code", { text: command });
  const button = el("button", { class: "button small", type: "button", "aria-label": `Copy ${command}`, text: "Copy" });
  button.addEventListener("click", async () => {
    const copied = await copy(command, code);
    button.textContent = copied ? "Copied" : "Press Ctrl-C";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return el("span", { class: "copyable" }, code, button);
}

async function copy(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(node); // no clipboard here: it is selected, at least
    return false;
  }
}

// Takes what is at an address as a file.
export function follow(address, name = "") {
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

export function download(blob, name) {
  const url = URL.createObjectURL(blob);
  follow(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 10_000); // the browser has read it by then
}
