/*
The sessions: filters, how many match, and a line for each. Lines are made as they are scrolled to; arrow keys move
between them, and to the tasks within one; Enter opens.

sessionList() -> section      with `.refresh()` for changed filters or another scorer
*/

const FIRST_ROWS = 60;
const MORE_ROWS = 120;

function sessionList() {
  const list = element("ol", { class: "rows", "aria-label": "Sessions", on: { keydown: moveInList } });
  const end = element("div", { class: "rows-end" });
  const counts = element("p", { class: "list-counts", role: "status" });
  const form = filterBar(() => {
    history.replaceState(history.state, "", listAddress());
    made.refresh();
  });
  const made = element("section", { class: "sessions", id: "sessions", "aria-labelledby": "sessions-title" });
  append(made, element("h2", { id: "sessions-title" }, "Sessions"), form, counts, list, end);
  const state = { matches: [], shown: 0 };
  const more = count => {
    const next = state.matches.slice(state.shown, state.shown + count);
    append(list, next.map(sessionLine));
    state.shown += next.length;
  };
  new IntersectionObserver(entries => entries.some(it => it.isIntersecting) && more(MORE_ROWS), {
    rootMargin: "900px 0px",
  }).observe(end);
  list.more = () => more(MORE_ROWS);
  made.showAll = () => more(Infinity);
  made.refresh = () => {
    showFilters(form);
    state.matches = matchingSessions();
    state.shown = 0;
    page.listed = state.matches.map(it => it.row.key);
    list.replaceChildren();
    more(FIRST_ROWS);
    counts.textContent = countsText(state.matches);
  };
  made.refresh();
  return made;
}

function countsText(matches) {
  const tasks = matches.reduce((sum, it) => sum + it.tasks.size, 0);
  if (!matches.length)
    return page.document.sessions.length ? "No session matches." : "There are no sessions in the log.";
  const all = page.document.sessions.length;
  const of =
    matches.length === all ? plural(all, "session") : `${number(matches.length)} of ${plural(all, "session")}`;
  return `${of}, ${plural(tasks, "task")}`;
}

function sessionLine({ row, tasks }) {
  const run = page.runs.get(row.run);
  const first = row.tasks.find(task => tasks.has(task.number)) || row.tasks[0];
  const link = element(
    "a",
    { class: "row-link", href: sessionAddress(row.key), "data-key": row.key },
    several()
      ? element("span", {
          class: "run-mark",
          style: `background: ${seriesColour(run.index)}`,
          title: visibleText(clipped(run.title, 80)),
        })
      : null,
    foreign(row.session, { limit: 60 }),
    several() ? element("span", { class: "visually-hidden" }, ` of ${visibleText(clipped(run.title, 80))}`) : null,
  );
  const words = element(
    "span",
    { class: "row-words" },
    foreign(first ? first.user.slice(0, 400).replace(/\s+/g, " ") : "", { limit: 150 }),
  );
  const cells = row.tasks.map(task => taskCell(row, task, tasks.has(task.number)));
  return element(
    "li",
    { class: "row" },
    element("div", { class: "row-name" }, link, words),
    element("div", { class: "row-tasks" }, cells),
  );
}

function taskCell(row, task, matches) {
  const score = scoreOf(task);
  const label = score.verdict || score.label;
  const kind = label === null ? "warn" : verdictKind(label);
  const words = label === null ? "not scored" : verdictWords(score);
  const title = score.error_class
    ? (page.document.error_classes[score.error_class] || { title: score.error_class }).title
    : words;
  return element(
    "a",
    {
      class: `cell ${kind} ${matches ? "" : "faded"} ${task.disagrees ? "disagrees" : ""}`,
      href: sessionAddress(row.key, task.number),
      tabindex: "-1",
      title: score.reason ? visibleText(clipped(score.reason, 300)) : null,
    },
    element("span", { class: `dot ${kind}`, "aria-hidden": "true" }, SIGNS[kind]),
    element(
      "span",
      { class: "cell-words" },
      element("span", { class: "visually-hidden" }, `Task ${task.number}, ${words}: `),
      element("span", { class: "cell-label" }, foreign((task.label || "").replace(" Multi-Tool", ""))),
      element("span", { class: "cell-class" }, title),
      task.disagrees ? element("span", { class: "visually-hidden" }, ", scorers disagree") : null,
    ),
  );
}

function moveInList(event) {
  const line = event.target.closest(".row");
  if (!line || event.altKey || event.ctrlKey || event.metaKey) return;
  const links = [...line.querySelectorAll("a")];
  const at = links.indexOf(event.target);
  const list = event.currentTarget;
  if (event.key === "ArrowDown" && !line.nextElementSibling) list.more();
  const target = {
    ArrowDown: () =>
      line.nextElementSibling &&
      (line.nextElementSibling.querySelectorAll("a")[at] || line.nextElementSibling.querySelector("a")),
    ArrowUp: () =>
      line.previousElementSibling &&
      (line.previousElementSibling.querySelectorAll("a")[at] || line.previousElementSibling.querySelector("a")),
    ArrowRight: () => links[at + 1],
    ArrowLeft: () => links[at - 1],
    Home: () => list.querySelector("a"),
    End: () => list.lastElementChild.querySelector("a"),
  }[event.key];
  const found = target && target();
  if (!found) return;
  event.preventDefault();
  found.focus();
}
