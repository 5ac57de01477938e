// Which metrics belong in a chart together, and how it is titled.

// Good is green and bad is red, wherever a metric means one of them.
const COLOURS = { win: 2, dealt: 0, taken: 3, far: 1, death: 7, evaluation: 0, training: 1, length_evaluation: 0, length: 1 };
const LABELS = { "episode/length": "training", "episode/length_evaluation": "evaluation", "boss_health_left/all": "all fights" };
const BAND = ["win_rate/evaluation_low", "win_rate/evaluation_high"];

// pick: names by their own order, or all that a family has; `each`: one chart per name, as their scales differ.
const GROUPS = [
  { id: "win_rate", title: "Win rate", pick: ["win_rate/evaluation", "win_rate/training"], values: "share", yRange: [0, 1] },
  { id: "boss_health", title: "Boss health left", family: "boss_health_left/", values: "share", yRange: [0, 1], measured: true },
  { id: "length", title: "Length of an episode", pick: ["episode/length_evaluation", "episode/length"] },
  { id: "return", title: "Return of an episode", pick: ["return/evaluation", "return/training"] },
  { id: "reward", title: "Terms of the reward", family: "reward/" },
  { id: "loss", title: "Loss", family: "loss/", each: true },
  { id: "q", title: "Q values", family: "q/" },
  { id: "value", title: "Explained variance of the value", pick: ["value/explained_variance"] },
  { id: "entropy", title: "Entropy of the policy", pick: ["policy/entropy"] },
  { id: "kl", title: "KL divergence of an update", pick: ["policy/kl"] },
  { id: "clip", title: "Clipped samples", pick: ["policy/clip_fraction"], values: "share" },
  { id: "explore", title: "Epsilon and beta", pick: ["epsilon", "beta"], yRange: [0, 1.02] },
  { id: "priority", title: "Priorities in the replay", family: "replay/priority_" },
  { id: "replay", title: "Replay size", pick: ["replay/size"] },
  { id: "steps_per_s", title: "Steps per second", pick: ["steps_per_s"] },
  { id: "updates_per_s", title: "Updates per second", pick: ["updates_per_s"] },
  { id: "lag", title: "Policy lag", pick: ["fleet/lag"] },
  { id: "age", title: "Age of experience", pick: ["fleet/age_s", "fleet/oldest_s"] },
  { id: "time", title: "Time per phase of the loop", family: "time/", kind: "stack", values: "share", yRange: [0, 1] },
];

const TITLES = {
  "loss/policy": "Loss of the policy",
  "loss/value": "Loss of the value",
  "loss/q": "Loss of the Q values",
};

// Without what all names of the chart begin with.
export function shortName(name, group) {
  if (LABELS[name]) return LABELS[name];
  if (name.startsWith("boss_health_left/")) return `ended in ${name.split("/")[1].replace("_", " ")}`;
  if (group.family) return name.slice(group.family.length) || name;
  return name.split("/").pop().replaceAll("_", " ");
}

function namesOf(group, names) {
  if (group.family) return names.filter((name) => name.startsWith(group.family));
  return group.pick.filter((name) => names.includes(name));
}

const bandOf = (name, names) => (name === "win_rate/evaluation" && BAND.every((each) => names.includes(each)) ? BAND : null);

// {main, others}: charts to make of these metrics, each {id, title, kind, values, yRange, names, group}.
export function chartsOf(metrics) {
  const names = metrics.map((metric) => metric.name);
  const taken = new Set(BAND);
  const main = [];
  for (const group of GROUPS) {
    const found = namesOf(group, names);
    if (!found.length) continue;
    found.forEach((name) => taken.add(name));
    const parts = group.each ? found.map((name) => [name]) : [found];
    for (const part of parts)
      main.push({
        ...group,
        id: group.each ? part[0] : group.id,
        title: group.each ? (TITLES[part[0]] ?? part[0]) : group.title,
        names: part,
      });
  }
  const others = metrics
    .filter(({ name }) => !taken.has(name))
    .map(({ name, unit }) => ({ id: name, title: name, names: [name], values: unit === "share" ? "share" : "number" }));
  return { main, others };
}

// The chart of one run: a line per metric.
export function specOfRun(chart, run, metrics) {
  const names = metrics.map((metric) => metric.name);
  return {
    id: chart.id,
    title: chart.title,
    kind: chart.kind ?? "line",
    values: chart.values ?? "number",
    yRange: chart.yRange,
    file: `${run}-${chart.id}`,
    meaning: metrics.filter((metric) => chart.names.includes(metric.name)),
    lines: chart.names.map((name) => ({
      run,
      name,
      label: chart.family || chart.pick ? shortName(name, chart) : name,
      band: bandOf(name, names),
      dim: name.endsWith("/training") || name === "episode/length",
      colour: COLOURS[name.split("/")[1]], // the same before the first evaluation and after
      rough: name !== "win_rate/evaluation" && !chart.measured, // each point of it is a measurement of its own
    })),
  };
}

// Side by side, phases of the loop are details.
export const isDetail = (chart) => chart.kind === "stack";

// The charts of several runs: one per metric, a line per run.
export function specsOfRuns(chart, runs, metrics) {
  return chart.names.map((name) => ({
    id: name,
    title: chart.names.length > 1 ? `${chart.title}: ${shortName(name, chart)}` : chart.title,
    kind: "line",
    values: chart.values ?? "number",
    yRange: chart.kind === "stack" ? undefined : chart.yRange,
    meaning: metrics.filter((metric) => metric.name === name),
    file: name.replaceAll("/", "-"),
    lines: runs
      .filter((run) => run.names.has(name))
      .map((run) => ({
        run: run.id,
        name,
        label: run.id,
        colour: run.colour,
        band: name === "win_rate/evaluation" && BAND.every((each) => run.names.has(each)) ? BAND : null,
        rough: name !== "win_rate/evaluation",
      })),
  }));
}
