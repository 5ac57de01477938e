// The stream of events, with reconnection. A browser has six connections per server for all of its windows: only a few
// of them hold a stream, the others ask once a second, and hidden ones do nothing.

import * as api from "./api.js";

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 10_000;
const POLL_MS = 1000;
const SLOTS = 3;

export class Events {
  // handlers: onRuns(payload), onRun(payload), onState("open" | "lost" | "ended")
  constructor(handlers) {
    this.handlers = handlers;
    this.run = null;
    this.wait = FIRST_WAIT_MS;
    this.turn = 0;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    window.addEventListener("pagehide", () => this.close());
    window.addEventListener("online", () => this.open());
  }

  follow(run) {
    if (this.run === run && this.following) return;
    this.run = run;
    this.open();
  }

  get query() {
    return this.run ? `run=${encodeURIComponent(this.run)}` : "";
  }

  async open() {
    this.close();
    if (document.hidden) return;
    this.following = true;
    const { turn } = this;
    if (!navigator.locks) return this.stream(); // over plain HTTP from another machine
    for (let slot = 0; slot < SLOTS; slot++) if (await this.claimed(slot, turn)) return;
    if (turn === this.turn) this.poll(turn);
  }

  // Whether one of the streams that a browser may hold is ours now; it is given back by close().
  claimed(slot, turn) {
    return new Promise((resolve) => {
      navigator.locks.request(`souls.stream.${slot}`, { ifAvailable: true }, (lock) => {
        resolve(Boolean(lock));
        if (!lock || turn !== this.turn) return undefined;
        this.stream();
        return new Promise((release) => (this.release = release));
      });
    });
  }

  stream() {
    const source = new EventSource(`/api/events?${this.query}`);
    this.source = source;
    const hear = (name, handler) =>
      source.addEventListener(name, (event) => {
        if (this.source !== source) return;
        let payload;
        try {
          payload = JSON.parse(event.data);
        } catch {
          return; // cut off: the next one is whole
        }
        handler(payload);
      });
    hear("runs", (payload) => this.handlers.onRuns(payload));
    hear("run", (payload) => this.handlers.onRun(payload));
    hear("end", () => this.lost("ended"));
    source.addEventListener("open", () => this.opened());
    source.addEventListener("error", () => this.source === source && this.lost("lost"));
  }

  async poll(turn) {
    try {
      const news = await api.json(`/api/events?once&${this.query}`);
      if (turn !== this.turn) return;
      this.opened();
      this.handlers.onRuns(news.runs);
      if (news.run) this.handlers.onRun(news.run);
      this.timer = setTimeout(() => this.poll(turn), POLL_MS);
    } catch {
      if (turn === this.turn) this.lost("lost");
    }
  }

  opened() {
    this.wait = FIRST_WAIT_MS;
    this.handlers.onState("open");
  }

  lost(how) {
    this.close();
    this.handlers.onState(how);
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT_MS);
  }

  close() {
    this.turn++;
    this.following = false;
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    this.release?.();
    this.release = null;
  }
}
