/*
What the page asks of the proxy: one stream that tells what happens, and single questions.

takeToken() -> boolean      the token of the address moves into the session's storage and out of the address bar
keepToken(token)            one that was pasted
ask(path, parameters) -> JSON, rejects with Refused or Error
class Stream                keeps a stream open for a run; says how it stands by `told(state, words)`
states: connecting, live, reconnecting, paused (nobody looks), refused, failed
*/

const TOKEN_KEY = "wildproxy-token";
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10000;
const SILENCE_MS = 30000;

class Refused extends Error {}

let sessionToken = null;

function takeToken() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const given = parts.get("token");
  if (!given) return false;
  keepToken(given);
  parts.delete("token");
  const rest = parts.toString();
  history.replaceState(null, "", location.pathname + (rest ? `#${rest}` : ""));
  return true;
}

function keepToken(token) {
  sessionToken = token;
  try {
    sessionStorage.setItem(TOKEN_KEY, token);
  } catch {
    // Without storage it lasts as long as the page.
  }
}

function keptToken() {
  if (sessionToken !== null) return sessionToken;
  try {
    return sessionStorage.getItem(TOKEN_KEY);
  } catch {
    return null;
  }
}

async function request(path, parameters, signal) {
  const token = keptToken();
  if (!token) throw new Refused("no token");
  const query = new URLSearchParams(parameters).toString();
  const response = await fetch(`/ui/api/${path}${query ? `?${query}` : ""}`, {
    headers: { Authorization: `Bearer ${token}` },
    cache: "no-store",
    credentials: "omit",
    signal,
  });
  if (response.ok) return response;
  const message = await errorMessage(response);
  if (response.status === 401) throw new Refused(message);
  throw Object.assign(new Error(message), { status: response.status });
}

async function errorMessage(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `the proxy answered ${response.status}`;
  }
}

async function ask(path, parameters) {
  return (await request(path, parameters)).json();
}

class Stream {
  constructor(happened, told) {
    this.happened = happened;
    this.told = told;
    this.run = null;
    this.tries = 0;
    this.controller = null;
    this.timer = null;
    document.addEventListener("visibilitychange", () => this.look());
    window.addEventListener("online", () => this.open(this.run));
    window.addEventListener("pagehide", () => this.close());
    window.addEventListener("pageshow", event => event.persisted && this.open(this.run));
  }

  /* A page that nobody sees asks for nothing. */
  look() {
    if (document.visibilityState === "visible") {
      if (!this.controller) this.open(this.run);
    } else {
      this.close();
      this.told("paused");
    }
  }

  open(run) {
    this.close();
    this.run = run;
    if (document.visibilityState !== "visible") return this.told("paused");
    this.controller = new AbortController();
    this.told(this.tries ? "reconnecting" : "connecting");
    return this.listen(this.controller);
  }

  close() {
    clearTimeout(this.timer);
    if (this.controller) this.controller.abort();
    this.controller = null;
  }

  async listen(controller) {
    try {
      const response = await request("events", this.run ? { run: this.run } : {}, controller.signal);
      await this.read(response.body.pipeThrough(new TextDecoderStream()).getReader(), controller);
    } catch (error) {
      if (this.controller !== controller) return;
      if (error instanceof Refused || error.status === 404 || error.status === 421) {
        this.close();
        this.told(error instanceof Refused ? "refused" : "failed", error.message);
        return;
      }
    }
    if (this.controller === controller) this.again();
  }

  async read(reader, controller) {
    let kept = "";
    for (;;) {
      const silence = setTimeout(() => reader.cancel(), SILENCE_MS);
      const { done, value } = await reader.read();
      clearTimeout(silence);
      if (done || this.controller !== controller) return;
      kept += value;
      const whole = kept.split("\n\n");
      kept = whole.pop();
      for (const text of whole) this.event(text);
    }
  }

  event(text) {
    const lines = text.split("\n");
    const name = lines.find(it => it.startsWith("event: "));
    const data = lines.find(it => it.startsWith("data: "));
    if (!name || !data) return;
    if (name !== "event: failed") this.tries = 0;
    this.told("live");
    this.happened(name.slice(7), JSON.parse(data.slice(6)));
  }

  again() {
    this.close();
    const wait = Math.min(FIRST_WAIT_MS * 2 ** this.tries, LONGEST_WAIT_MS) * (0.75 + Math.random() / 2);
    this.tries += 1;
    this.told("reconnecting");
    this.timer = setTimeout(() => this.open(this.run), wait);
  }
}
