// The stream of events, with reconnection. Closed while the page is hidden: a browser has few connections per server.

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 10_000;

export class Events {
  // handlers: onRuns(payload), onRun(payload), onState("open" | "lost")
  constructor(handlers) {
    this.handlers = handlers;
    this.run = null;
    this.wait = FIRST_WAIT_MS;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    window.addEventListener("pagehide", () => this.close());
    window.addEventListener("online", () => this.open());
  }

  follow(run) {
    if (this.run === run && this.source) return;
    this.run = run;
    this.open();
  }

  open() {
    this.close();
    if (document.hidden) return;
    const query = this.run ? `?run=${encodeURIComponent(this.run)}` : "";
    const source = new EventSource(`/api/events${query}`);
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
    source.addEventListener("open", () => {
      this.wait = FIRST_WAIT_MS;
      this.handlers.onState("open");
    });
    source.addEventListener("error", () => this.source === source && this.lost());
  }

  lost() {
    this.close();
    this.handlers.onState("lost");
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT_MS);
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}
