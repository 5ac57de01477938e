// Questions and help in a <dialog>: Esc closes, the focus comes back.

import { el } from "./dom.js";

function show(dialog) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close("")); // beside it
  dialog.showModal();
}

// Resolves to true only if the answer is yes.
export function confirm({ title, sentences, yes, danger = false }) {
  return new Promise((resolve) => {
    const dialog = el(
      "dialog",
      { class: "dialog", "aria-labelledby": "dialog-title" },
      el(
        "form",
        { method: "dialog" },
        el("h2", { id: "dialog-title", text: title }),
        sentences.map((text) => el("p", { text })),
        el(
          "div",
          { class: "dialog-buttons" },
          el("button", { class: "button", value: "", type: "submit", text: "Cancel" }),
          el("button", { class: danger ? "button danger" : "button primary", value: "yes", type: "submit", text: yes }),
        ),
      ),
    );
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"));
    show(dialog);
  });
}

export function help(rows) {
  if (document.querySelector("dialog[open]")) return;
  show(
    el(
      "dialog",
      { class: "dialog", "aria-labelledby": "dialog-title" },
      el(
        "form",
        { method: "dialog" },
        el("h2", { id: "dialog-title", text: "Keys" }),
        el("dl", { class: "keys" }, rows.flatMap(([key, text]) => [el("dt", {}, el("kbd", { text: key })), el("dd", { text })])),
        el("div", { class: "dialog-buttons" }, el("button", { class: "button primary", value: "", type: "submit", text: "Close" })),
      ),
    ),
  );
}
