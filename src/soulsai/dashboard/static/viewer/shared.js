// The page that somebody was sent: one fight, and who fought it.

import { el } from "./elements.js";
import { mountPlayer } from "./player.js";

const sceneElement = document.getElementById("scene");
const root = document.getElementById("fight");

try {
  const raw = JSON.parse(sceneElement.textContent);
  const { about } = raw;
  const told = [
    about.run && `run ${about.run}`,
    Number.isFinite(raw.step) && raw.step !== null && `after ${raw.step.toLocaleString("en")} steps of training`,
    about.algorithm && String(about.algorithm).toUpperCase(),
    raw.engine === "game" ? "in the game" : raw.engine === "sim" ? "in the simulator" : "",
    about.variant && about.variant !== "standard" && `variant ${about.variant}`,
  ].filter(Boolean);
  root.append(el("header", { class: "fv-head" }, el("h1", { text: raw.boss }), el("p", { text: told.join(" · ") })));
  window.fight = mountPlayer(root, raw, { autoplay: true });
} catch (error) {
  root.append(el("p", { class: "fv-reason", text: `This fight cannot be shown: ${error.message}` }));
}
