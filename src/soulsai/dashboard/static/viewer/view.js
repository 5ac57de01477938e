// The fights of a run: the list, the one that plays, and the newest by itself while the run goes on.

import { el, setText } from "./elements.js";
import { mountPlayer } from "./player.js";

const STYLE = "/static/viewer/viewer.css";
const REST_MS = 1200; // how long the end of a fight stays before the next plays by itself
const SHOWN = 60;
const MOST_RUNS = 8;
const MOST_OF_A_RUN = 20;
const NOT_YET = "No fight is recorded yet; the first one comes with the first evaluation.";
const NONE = "No fight of this run is recorded. They are recorded while it trains, and by: souls eval RUN --record 10";
const NO_FIGHTS = "This run plays a Gymnasium environment, not a boss fight: there is nothing to watch here. Learning has its curves.";

export function mount(root, context) {
  const view = new View(root, context);
  view.begin();
  return { update: (event) => view.update(event), destroy: () => view.destroy() };
}

class View {
  constructor(root, context) {
    Object.assign(this, { root, context, fights: [], filter: "all", shown: null, player: null, asked: 0, speed: 1, newest: null });
    this.wanted = context.params?.get("fight") ?? null;
    this.before = Number(context.params?.get("before")) || 0; // seconds before the end
    this.pair = el("div", { class: "fv-pair", hidden: true });
    this.besides = el("select", { class: "fv-speed", "aria-label": "Side by side with", title: "Another policy in the same fight", onchange: () => this.showPair() });
    this.live = !this.wanted && isLive(context.entry?.());
    this.following = this.wanted === null;
    this.place = el("div", { class: "fv-place" });
    this.list = el("ol", { class: "fv-list" });
    this.caption = el("span", { class: "fv-caption", role: "status" });
    this.liveButton = el(
      "button",
      {
        type: "button",
        class: "fv-live",
        "aria-pressed": "false",
        title: "Play the newest fight of the training as soon as it is there",
        onclick: () => this.setFollowing(!this.following),
      },
      el("i"),
      el("span", { text: "Live" }),
    );
    this.filters = ["all", "lost"].map((name) =>
      el("button", { type: "button", "data-filter": name, text: name === "all" ? "All" : "Lost", onclick: () => this.setFilter(name) }),
    );
    this.more = el("p", { class: "muted" });
    this.top = el(
      "div",
      { class: "fv-bar-top", hidden: true },
      el("h2", { text: "Fights" }),
      el("div", { class: "fv-filter", role: "group", "aria-label": "Which fights" }, ...this.filters),
      this.liveButton,
      this.caption,
    );
    this.frame = el(
      "div",
      { class: "fv-view" },
      this.place,
      this.pair,
      this.top,
      this.list,
      this.more,
    );
  }

  async begin() {
    style();
    this.root.append(this.frame);
    this.showLive();
    await this.load();
  }

  get path() {
    return `/api/runs/${encodeURIComponent(this.context.run)}/fights`;
  }

  async load() {
    const number = ++this.asked;
    try {
      const fights = await this.context.api.json(this.path);
      if (number !== this.asked || this.gone) return;
      this.fights = fights;
    } catch (error) {
      if (number === this.asked && !this.gone) this.tell(error.message);
      return;
    }
    this.showList();
    if (!this.fights.length) {
      this.tell(this.context.entry()?.world === "gym" ? NO_FIGHTS : this.live ? NOT_YET : NONE);
      return;
    }
    if (this.shown && !this.following) return;
    const newest = this.fights[0].name;
    const asked = this.wanted && this.fights.find((fight) => fight.name === this.wanted)?.name;
    if (this.wanted && !asked) this.say(`There is no fight ${this.wanted} any more; this is the newest.`);
    this.wanted = null;
    if (!this.shown || (this.following && newest !== this.newest)) this.open(asked || newest);
    this.newest = newest;
  }

  async open(name) {
    if (this.opening === name) return;
    this.opening = name;
    try {
      const scene = await this.context.api.json(`${this.path}/${encodeURIComponent(name)}`);
      if (this.gone || this.opening !== name) return;
      this.player?.destroy();
      this.player = null;
      this.place.replaceChildren();
      this.shown = name;
      const losses = this.fights.some((fight) => isLost(fight));
      this.leavePair();
      this.player = mountPlayer(this.place, scene, {
        autoplay: true,
        speed: this.speed,
        before: this.before,
        beside: this.besides,
        onTime: (seconds) => this.second?.show(seconds),
        onEnd: () => this.ended(),
        onNextLoss: losses ? () => this.nextLoss() : undefined,
        onTouch: () => this.setFollowing(false),
        onSpeed: (value) => (this.speed = value),
        share: [
          ["Page (HTML), plays anywhere", `${this.path}/${encodeURIComponent(name)}/share`, `${this.context.run}-${name}.html`],
          ["Video (MP4), takes a while", `${this.path}/${encodeURIComponent(name)}/video?as=mp4`, `${this.context.run}-${name}.mp4`],
          ["Picture (GIF), takes a while", `${this.path}/${encodeURIComponent(name)}/video?as=gif`, `${this.context.run}-${name}.gif`],
        ],
      });
      this.before = 0;
      this.markShown();
      this.findBesides(name);
    } catch (error) {
      if (!this.gone && this.opening === name) this.tell(error.message);
    } finally {
      if (this.opening === name) this.opening = null;
    }
  }

  // Fights that began alike, with the same seed, by another policy: of this run at another step, or of another run.
  async findBesides(name) {
    const { draw } = this.fights.find((fight) => fight.name === name) ?? {};
    const own = draw ? this.fights.filter((fight) => fight.draw === draw && fight.name !== name).map((fight) => ({ ...fight, run: this.context.run })) : [];
    const others = this.context.runs().filter((run) => run.id !== this.context.run && run.world === "fight" && run.fights).slice(0, MOST_RUNS);
    const lists = draw ? await Promise.allSettled(others.map((run) => this.context.api.json(`/api/runs/${encodeURIComponent(run.id)}/fights`))) : [];
    if (this.gone || this.shown !== name) return;
    const further = lists.flatMap((list, i) => (list.value ?? []).filter((fight) => fight.draw === draw).slice(0, MOST_OF_A_RUN).map((fight) => ({ ...fight, run: others[i].id })));
    this.besides.hidden = !own.length && !further.length;
    const label = (fight) => `${fight.run === this.context.run ? "" : `${fight.run}, `}step ${Number(fight.step ?? 0).toLocaleString("en")}: ${fight.outcome}`;
    this.besides.replaceChildren(
      el("option", { value: "", text: "Side by side …" }),
      ...[...own.slice(0, MOST_OF_A_RUN), ...further].map((fight) => el("option", { value: JSON.stringify([fight.run, fight.name]), text: label(fight) })),
    );
  }

  async showPair() {
    const chosen = this.besides.value;
    this.leavePair(chosen);
    if (!chosen) return;
    const [run, name] = JSON.parse(chosen);
    try {
      const scene = await this.context.api.json(`/api/runs/${encodeURIComponent(run)}/fights/${encodeURIComponent(name)}`);
      if (this.gone || this.besides.value !== chosen) return;
      this.pair.hidden = false;
      this.frame.classList.add("paired");
      this.second = mountPlayer(this.pair, scene, { autoplay: false, bare: true });
      this.player?.show(0);
      this.player?.play();
    } catch (error) {
      this.say(error.message);
    }
  }

  leavePair(chosen = "") {
    this.second?.destroy();
    this.second = null;
    this.pair.hidden = true;
    this.frame.classList.remove("paired");
    this.besides.value = chosen;
    if (!chosen) this.besides.hidden = this.besides.options.length < 2;
  }

  // While live, the fight plays again until there is a newer one.
  ended() {
    if (!this.following || !this.live) return;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.following && this.live && !this.gone && this.player?.play(), REST_MS);
  }

  nextLoss() {
    const here = this.fights.findIndex((fight) => fight.name === this.shown);
    const order = [...this.fights.slice(here + 1), ...this.fights.slice(0, here + 1)];
    const next = order.find((fight) => isLost(fight));
    if (next) this.choose(next.name);
  }

  async choose(name, scroll = false) {
    this.setFollowing(false);
    await this.open(name);
    if (scroll) this.frame.querySelector(".fv-picture")?.scrollIntoView({ block: "nearest" }); // the list may be far below
  }

  setFilter(name) {
    this.filter = name;
    this.showList();
  }

  setFollowing(on) {
    if (this.following === on) return;
    this.following = on;
    clearTimeout(this.resting);
    this.showLive();
    if (!on || !this.fights.length) return;
    if (this.shown !== this.fights[0].name) this.open(this.fights[0].name);
    else this.player?.play();
  }

  showLive() {
    this.liveButton.hidden = !this.live;
    this.liveButton.setAttribute("aria-pressed", String(this.following));
  }

  showList() {
    for (const button of this.filters) button.setAttribute("aria-pressed", String(button.dataset.filter === this.filter));
    this.top.hidden = !this.fights.length;
    const fights = this.fights.filter((fight) => this.filter === "all" || isLost(fight));
    const lost = this.fights.filter((fight) => isLost(fight)).length;
    this.say(this.fights.length ? `${this.fights.length} recorded, ${lost} lost` : "");
    this.list.replaceChildren(...fights.slice(0, SHOWN).map((fight) => el("li", {}, this.item(fight))));
    const older = fights.length > SHOWN ? `${fights.length - SHOWN} older ones are not listed.` : "";
    setText(this.more, !fights.length && this.fights.length ? "None of them was lost." : older);
    this.markShown();
  }

  item(fight) {
    const percent = (share) => `${Math.round(100 * share)} %`;
    const left = isLost(fight) ? `boss at ${percent(fight.boss_hp_share)}` : `${percent(fight.player_hp_share)} health left`;
    const step = fight.step === null || fight.step === undefined ? "" : `step ${Number(fight.step).toLocaleString("en")}`;
    const where = [step, left, fight.engine === "game" ? "in the game" : "", fight.thoughts ? "" : "no thoughts"];
    return el(
      "button",
      {
        type: "button",
        class: "fv-item",
        "data-name": fight.name,
        "data-won": String(!isLost(fight)),
        onclick: () => this.choose(fight.name, true),
      },
      el("b", { text: fight.outcome }),
      el("span", { text: fight.killed_by ? `by ${fight.killed_by}` : "" }),
      el("span", { class: "fv-time", text: `${fight.time_s} s` }),
      el("span", { class: "fv-where", text: where.filter(Boolean).join(" · ") }),
    );
  }

  markShown() {
    for (const item of this.list.querySelectorAll(".fv-item"))
      if (item.dataset.name === this.shown) item.setAttribute("aria-current", "true");
      else item.removeAttribute("aria-current");
  }

  say(text) {
    setText(this.caption, text);
  }

  tell(text) {
    if (this.player) this.say(text);
    else this.place.replaceChildren(el("div", { class: "empty" }, el("p", { text })));
  }

  update(event) {
    if (event?.type !== "run") return;
    const { newest_fight: newest, gone } = event.data;
    const live = !gone && isLive(event.data);
    if (live !== this.live) {
      this.live = live;
      this.showLive();
    }
    if (gone) {
      this.say("The run is gone: its folder was removed or moved.");
      return;
    }
    if (newest && newest !== this.told) {
      this.told = newest;
      if (newest !== this.newest) this.load();
    }
  }

  destroy() {
    this.gone = true;
    clearTimeout(this.resting);
    this.second?.destroy();
    this.player?.destroy();
    this.frame.remove();
  }
}

const isLost = (fight) => fight.outcome !== "won";
const isLive = (entry) => Boolean(entry && (entry.live ?? (entry.state === "running" || entry.state === "paused")));

function style() {
  if (document.querySelector(`link[href="${STYLE}"]`)) return;
  document.head.append(el("link", { rel: "stylesheet", href: STYLE }));
}
