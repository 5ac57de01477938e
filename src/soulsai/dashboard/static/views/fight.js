// Causes of death: what hits and kills, from where, doing what; what is dodged; where the player stands.

import { runPath } from "../api.js";
import { groupedBars } from "../bars.js";
import { LineChart } from "../charts.js";
import { el, empty, fill } from "../dom.js";
import { count, number, share } from "../format.js";
import { HeatMap } from "../heatmap.js";

const BREAKDOWNS = [
  ["attack", "By attack of the boss", false],
  ["animation", "By what the player was doing", false],
  ["distance", "By distance to the boss", true],
  ["stamina", "By stamina left", true],
];

export function mount(root, context) {
  const select = el("select", { class: "input", "aria-label": "Evaluation", onchange: () => choose(select.value) });
  const about = el("span", { class: "muted" });
  const content = el("div", {}, el("p", { class: "muted", text: "loading …" }));
  const bar = el("div", { class: "toolbar", hidden: true }, el("label", { class: "slider" }, el("span", { class: "muted", text: "Evaluation" }), select), about);
  fill(root, bar, content);
  const drawn = [];
  let [chosen, byHand] = [context.params.get("evaluation"), Boolean(context.params.get("evaluation"))];
  let destroyed = false;
  let looking = false;
  let evaluated = null;
  let again = false;
  let shown = "";
  let deaths = new Map();

  async function look() {
    if (looking) {
      again = true;
      return;
    }
    looking = true;
    try {
      const list = await context.api.json(runPath(context.run, "/evaluations"));
      if (!destroyed) await arrange(list);
    } catch (error) {
      if (!destroyed) fail(error);
    } finally {
      looking = false;
      if (again && !destroyed) {
        again = false;
        look();
      }
    }
  }

  function fail(error) {
    if (!shown) fill(content, empty(error.message));
  }

  async function arrange(list) {
    bar.hidden = !list.length;
    if (!list.length) {
      const gym = context.entry()?.world === "gym";
      fill(content, gym ? empty("This run plays a Gymnasium environment, not a boss fight.", "Its returns are on the Learning page.") : empty("No evaluation yet.", "The first comes while training, or with `souls eval RUN`"));
      return;
    }
    fill(select, list.map((each) => el("option", { value: each.name, text: nameOf(each) })));
    const kept = byHand && list.find((each) => each.name === chosen);
    const entry = kept || list[0]; // the newest
    chosen = select.value = entry.name;
    about.textContent = byHand ? "" : "the newest; follows the run";
    deaths = await deathsOf();
    const evaluation = await context.api.json(runPath(context.run, `/evaluations/${encodeURIComponent(entry.name)}`));
    const text = JSON.stringify(evaluation);
    if (destroyed || text === shown) return;
    shown = text;
    show(evaluation);
  }

  // A recorded death by each attack, the newest: to be seen from three seconds before.
  async function deathsOf() {
    try {
      const fights = await context.api.json(runPath(context.run, "/fights"));
      return new Map(fights.filter((fight) => fight.killed_by).map((fight) => [fight.killed_by, fight.name]).reverse());
    } catch {
      return new Map(); // the counts are shown without them
    }
  }

  function seeDeath(attack) {
    const fight = deaths.get(attack);
    if (!fight) return null;
    const address = `#/watch/${encodeURIComponent(context.run)}?fight=${encodeURIComponent(fight)}&before=3`;
    return el("a", { class: "see", href: address, title: `See a death by ${attack}, from three seconds before`, "aria-label": `See a death by ${attack}`, text: "▶" });
  }

  function choose(name) {
    [chosen, byHand, shown] = [name, true, ""];
    look();
  }

  function show(evaluation) {
    clear();
    const { deaths, hits } = evaluation;
    const breakdowns = BREAKDOWNS.map(([key, title, keepOrder]) =>
      panel(
        title,
        groupedBars(
          [
            { name: "deaths", colour: "var(--bad)", groups: deaths?.[key] ?? {} },
            { name: "hits", colour: "var(--s2)", groups: hits?.[key] ?? {} },
          ],
          { keepOrder, more: key === "attack" ? seeDeath : undefined },
        ),
      ),
    );
    const [places, hitPlaces, overTime] = [el("div", { class: "heat-host" }), el("div", { class: "heat-host" }), el("div", { class: "plot" })];
    const damage = evaluation.damage_over_time;
    fill(
      content,
      tiles(evaluation),
      el("h2", {}, "Causes of death", el("span", { class: "key" }, swatch("var(--bad)", "deaths"), swatch("var(--s2)", "hits"), el("span", { class: "muted", text: "count and share of each; ▶ shows one, from three seconds before" }))),
      el("div", { class: "grid wide" }, breakdowns),
      el("h2", { text: "Dodge rate by attack" }),
      dodges(evaluation.attacks ?? []),
      el("h2", { text: "Positions around the boss" }),
      el("div", { class: "grid wide" }, panel("Where the player is", places), panel("Where the player is hit, one step before the hit", hitPlaces)),
      el("h2", { text: "Damage over time" }),
      panel(
        overTimeTitle(damage),
        damage?.seconds?.length ? el("div", {}, el("div", { class: "key pad-side" }, swatch("var(--s4)", "taken"), swatch("var(--s3)", "dealt")), el("div", { class: "plot-frame tall" }, overTime)) : el("p", { class: "muted pad", text: "This evaluation is too old to have this chart; evaluate again." }),
      ),
    );
    heat(places, evaluation.places, evaluation.grid_m, "--s1", "Where the player is around the boss", "steps");
    heat(hitPlaces, evaluation.hit_places, evaluation.grid_m, "--bad", "Where the player is hit around the boss", "hits");
    if (damage?.seconds?.length) curve(overTime, damage);
  }

  function heat(host, grid, reachM, colour, label, unit) {
    if (!grid?.length) {
      fill(host, el("p", { class: "muted pad", text: "not counted" }));
      return;
    }
    const map = new HeatMap(host, { colour, label, unit });
    map.set(grid, reachM ?? 10);
    drawn.push(map);
  }

  function curve(host, damage) {
    const chart = new LineChart(host, { values: "number", label: "Damage over time" });
    const line = (label, y, shade) => ({ label, x: damage.seconds, y, shade, rough: false });
    const width = damage.seconds.length > 1 ? damage.seconds[1] - damage.seconds[0] : 1;
    chart.set({
      axis: "seconds",
      tellX: (x) => `${number(x)}–${number(x + width)} s, ${count(damage.fights?.[damage.seconds.indexOf(x)])} fights still running`,
      xTitle: "seconds of the fight",
      series: [line("taken", damage.taken, 3), line("dealt", damage.dealt, 2)],
    });
    drawn.push(chart);
  }

  function clear() {
    drawn.splice(0).forEach((each) => each.destroy());
  }

  look();
  return {
    update({ type, data }) {
      if (type !== "run") return;
      const stamp = `${data.newest_evaluation} ${data.evaluated}`;
      if (stamp !== evaluated) {
        const first = evaluated === null;
        evaluated = stamp;
        if (!first) look();
      }
    },
    destroy() {
      destroyed = true;
      clear();
    },
  };
}

const swatch = (colour, text) => el("span", { class: "key-item" }, el("i", { class: "swatch", style: { background: colour } }), text);

const panel = (title, body) => el("section", { class: "panel", "aria-label": title }, el("header", { class: "panel-head" }, el("h3", { text: title })), body);

const overTimeTitle = (damage) =>
  damage?.seconds?.length > 1 ? `Mean damage in each ${number(damage.seconds[1] - damage.seconds[0])} s of the fights still running` : "Mean damage of the fights still running";

const stepOf = (entry) => (Number.isFinite(entry.step ?? NaN) ? `, step ${count(entry.step)}` : "");
// "20261118-075307-final" is the final one, and when it was.
const titleOf = (name) => name.replace(/^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)\d\d-?(.*)$/, (_, year, month, day, hour, minute, what) => `${what || "evaluation"}, ${year}-${month}-${day} ${hour}:${minute} UTC`);
const nameOf = (entry) => `${entry.live ? `while training${stepOf(entry)}` : titleOf(entry.name)}: ${share(entry.win_rate)} of ${count(entry.fights)} fights${entry.settings?.engine === "game" ? ", in the game" : ""}`;

function tiles(evaluation) {
  const { settings = {} } = evaluation;
  const figures = [
    ["Fights", count(evaluation.fights), [settings.boss, settings.variant !== "standard" && settings.variant].filter(Boolean).join(", ")],
    ["Time-outs", count(evaluation.time_outs), "count as lost"],
    ...(evaluation.phases ?? []).map((phase) => [`Phase ${phase.phase}`, `${count(phase.reached)} reached`, `${count(phase.won)} won, ${count(phase.died + phase.fell)} died`]),
  ];
  return [
    el("p", { class: "headline", text: evaluation.headline ?? "" }),
    el("dl", { class: "tiles" }, figures.map(([name, value, note = ""]) => el("div", { class: "tile" }, el("dt", { text: name }), el("dd", { text: value }), note && el("dd", { class: "muted small-text", text: note })))),
  ];
}

function dodges(attacks) {
  if (!attacks.length) return el("p", { class: "muted", text: "No attack was seen." });
  const rows = [...attacks]
    .sort((one, two) => two.deaths - one.deaths || two.hits - one.hits)
    .map((attack) => {
      const known = attack.dodge_rate !== null && attack.dodge_rate !== undefined;
      const reached = attack.hits + Math.max(0, attack.dodged);
      return el(
        "tr",
        {},
        el("th", { scope: "row", text: attack.name }),
        el("td", { class: "cell-dodge" }, el("div", { class: "bar" }, el("div", { class: "bar-fill good", style: { transform: `scaleX(${known ? attack.dodge_rate : 0})` } })), el("b", { class: "figure-text", text: known ? share(attack.dodge_rate, 0) : "–" })),
        [attack.dodged < 0 ? "not known" : `${count(attack.dodged)} of ${count(reached)}`, ...[attack.started, attack.hits, attack.damage, attack.deaths].map(count)].map(
          (text) => el("td", { class: "number", text }),
        ),
      );
    });
  const heads = ["Attack", "Dodge rate", "Blows dodged", "Started", "Hits", "Damage", "Deaths"];
  return el("section", { class: "panel table-frame" }, el("table", { class: "table dodges" }, el("thead", {}, el("tr", {}, heads.map((text, i) => el("th", { scope: "col", class: i > 1 ? "number" : "", text })))), el("tbody", {}, rows)));
}
