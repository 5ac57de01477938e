// Keys for the whole page.

import { help } from "./dialogs.js";

const typing = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)) && !["checkbox", "radio", "range"].includes(target.type);

export function listen(tabs, go) {
  const rows = [
    ...tabs.map((tab, i) => [String(i + 1), tab.label]),
    ["/", "filter the runs"],
    ["t", "light or dark"],
    ["drag", "zoom a chart; double click or Backspace: back"],
    ["← →", "read values of the focused chart; with Shift in steps of ten"],
    ["space", "Watch: play or pause the fight"],
    ["← →", "Watch: one step back or forward; with Shift a second"],
    ["Home End", "Watch: to the beginning or the end"],
    ["d", "Watch: three seconds before the end"],
    ["[ ]", "Watch: slower, faster"],
    ["n", "Watch: next lost fight"],
    ["s", "Watch: share the fight"],
    ["?", "these keys"],
    ["Esc", "close"],
  ];
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || typing(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const tab = tabs[Number(event.key) - 1];
    if (tab) go(tab);
    else if (event.key === "?") help(rows);
    else if (event.key === "t") window.soulsTheme.toggle();
    else if (event.key === "/" && document.querySelector("input[type=search]")) document.querySelector("input[type=search]").focus();
    else return;
    event.preventDefault();
  });
  return () => help(rows);
}
