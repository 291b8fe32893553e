/*
The session that is open: asked for once, then only for its tasks in which something has changed.

class OpenSession       show(id), changed(row), and `followed` tells if its end is to be kept in view
*/

const NEAR_END_PX = 160;

class OpenSession {
  static words = null;

  constructor(place, failed) {
    this.place = place;
    this.failed = failed;
    this.close();
  }

  close() {
    this.id = null;
    this.detail = null;
    this.part = null;
    this.busy = false;
    this.missed = false;
  }

  show(id) {
    if (this.id === id) return;
    this.close();
    this.id = id;
    this.place.replaceChildren(element("p", { class: "quiet opening" }, "Opening …"));
    this.ask();
  }

  /* Something of it has happened. One question at a time: what happens meanwhile is asked for afterwards. */
  changed() {
    if (this.id === null) return;
    if (this.busy) this.missed = true;
    else this.ask();
  }

  async ask() {
    const id = this.id;
    this.busy = true;
    this.missed = false;
    try {
      if (!OpenSession.words) OpenSession.words = await ask("words");
      const told = await ask("session", { id, after: this.detail ? this.detail.seq : 0 });
      if (this.id === id) this.take(told);
    } catch (error) {
      if (this.id === id) this.failed(error, this.detail === null);
    }
    if (this.id !== id) return;
    this.busy = false;
    if (this.missed) this.ask();
  }

  take(told) {
    const known = this.detail ? this.detail.tasks : [];
    const changed = new Map(told.tasks.map(task => [task.number, task]));
    const kept = known.map(task => changed.get(task.number) || task);
    this.detail = { ...(this.detail || {}), ...told, tasks: kept.length ? kept : told.tasks };
    this.draw();
  }

  draw() {
    const atEnd = isAtEnd(this.place);
    const begun = this.detail.tasks.filter(task => task.turns.length || task.steps.length || task.ending !== null);
    const shown = { ...this.detail, tasks: begun };
    if (this.part) {
      updateSession(this.part, shown);
      this.head.replaceWith((this.head = sessionHead(this.detail)));
    } else {
      this.head = sessionHead(this.detail);
      this.part = renderSession(shown, { scorers: ["strict", "wildtoolbench"], ...OpenSession.words, exchanges: ids => ask("raw", ids.map(id => ["id", id])), headingLevel: 3 });
      this.place.replaceChildren(this.head, this.part);
    }
    refreshAges(this.place, serverNow());
    if (this.detail.state === "playing" && page.follow && (atEnd || !this.drawn)) toEnd(this.place);
    this.drawn = true;
  }
}

function sessionHead(detail) {
  const row = detail.row;
  const state = { over: ["none", "over"], playing: ["info", "playing"], replaced: ["unjudged", "another attempt took over"], unfinished: ["unjudged", "not finished"] };
  const facts = [
    `epoch ${detail.epoch}`,
    detail.attempt > 1 && `attempt ${detail.attempt}`,
    `${number(row.input_tokens)} → ${number(row.output_tokens)} tokens`,
    row.errors && plural(row.errors, "error"),
  ].filter(Boolean);
  return element(
    "header",
    { class: "content-head" },
    backLink("Sessions"),
    element("h2", {}, foreign(detail.session, { limit: 200 })),
    element("span", { class: `badge ${state[detail.state][0]}` }, state[detail.state][1]),
    detail.too_long ? element("p", { class: "quiet small whole" }, "Too long to be judged while it is looked at, or broken: score says what it comes to.") : null,
    detail.state === "playing" ? element("span", { class: "doing" }, row.task ? [`task ${row.task} of ${row.tasks.length}, `, doing(row)] : "not begun") : null,
    element("span", { class: "quiet small" }, join(facts)),
  );
}

function backLink(words) {
  return element("a", { class: "back", href: linkTo({}) }, `‹ ${words}`);
}

function scrollerOf(place) {
  return getComputedStyle(place).overflowY === "auto" ? place : document.scrollingElement;
}

function isAtEnd(place) {
  const it = scrollerOf(place);
  return it.scrollHeight - it.scrollTop - it.clientHeight < NEAR_END_PX;
}

function toEnd(place) {
  const it = scrollerOf(place);
  it.scrollTop = it.scrollHeight;
}
