/*
An exchange that is open: its conversation, what came of it, and on demand the bytes.

class OpenExchange      show(id), changed()
*/

class OpenExchange {
  constructor(place, failed) {
    this.place = place;
    this.failed = failed;
    this.id = null;
  }

  close() {
    this.id = null;
  }

  show(id) {
    if (this.id === id) return;
    this.id = id;
    this.place.replaceChildren(element("p", { class: "quiet opening" }, "Opening …"));
    this.changed();
  }

  async changed() {
    const id = this.id;
    if (id === null) return;
    try {
      const told = await ask("exchange", { id });
      if (this.id === id) this.draw(told);
    } catch (error) {
      if (this.id === id) this.failed(error, true);
    }
  }

  draw(told) {
    const parts = [exchangeTop(told)];
    if (told.error || told.error_type) parts.push(element("p", { class: "notice wrong" }, foreign(told.error || told.error_type, { limit: 1000 })));
    if (told.omitted) parts.push(element("p", { class: "quiet" }, `${plural(told.omitted, "earlier message")} left out.`));
    parts.push(element("div", { class: "conversation recorded" }, told.messages.map(messagePart)));
    if (!told.messages.length) parts.push(element("p", { class: "quiet" }, "No messages were read from it."));
    if (told.finish_state === "pending") parts.push(element("p", { class: "quiet" }, "The answer is awaited."));
    parts.push(rawExchanges([told.id], { exchanges: ids => ask("raw", ids.map(id => ["id", id])) }));
    this.place.replaceChildren(...parts);
    refreshAges(this.place, serverNow());
  }
}

function exchangeTop(told) {
  const tools = (told.tools || []).filter(Boolean);
  return element(
    "header",
    { class: "content-head" },
    backLink("Back"),
    element("h2", {}, foreign(told.model || told.path, { limit: 120 })),
    exchangeBadge(told),
    told.session ? element("a", { href: linkTo({ session: told.session_id }) }, foreign(told.session)) : null,
    element("span", { class: "quiet small" }, exchangeFacts(told)),
    element("span", { class: "quiet small" }, since(told.started_at)),
    tools.length ? element("p", { class: "quiet small whole" }, "Tools: ", foreign(tools.join(", "), { limit: 600 })) : null,
  );
}

const SPEAKERS = { user: "User", assistant: "Assistant", system: "System", developer: "Developer", tool: "Tool result", function: "Tool result" };

function messagePart(message) {
  const kind = message.role === "user" ? "user" : message.role === "assistant" ? "step" : "aside";
  const made = element("div", { class: `turn ${kind}` }, element("div", { class: "who" }, SPEAKERS[message.role] || foreign(message.role)));
  if (message.reasoning) append(made, disclosure("Reasoning", () => foreignBlock(message.reasoning, { class: "words quiet" })));
  if (message.text) append(made, foreignBlock(message.text, { class: "words", limit: kind === "aside" ? 600 : 3000 }));
  for (const call of message.calls) {
    append(made, element("div", { class: "call" }, element("div", { class: "call-head" }, element("code", { class: "call-name" }, foreign(call.name, { limit: 120 }))), renderArguments({ arguments: call.arguments, expected: null, faults: [] })));
  }
  if (!message.text && !message.calls.length) append(made, element("p", { class: "quiet" }, "empty"));
  return made;
}
