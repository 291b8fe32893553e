/*
Raw exchanges, on demand: what went over the wire, request and answer.

rawExchanges(ids, options) -> details     asks `options.exchanges(ids)` when it is opened
renderExchange(exchange, raw) -> section  raw: {messages: [JSON text], tools: [JSON text], exchanges: [...]}
*/

function rawExchanges(ids, options) {
  const label = plural(ids.length, "raw exchange");
  const fill = () => {
    const body = element(
      "div",
      { class: "exchanges" },
      element("p", { class: "quiet", role: "status" }, "Opening …"),
    );
    options.exchanges(ids).then(
      raw => {
        const found = raw.exchanges.filter(it => ids.includes(it.id));
        body.replaceChildren(...found.map(it => renderExchange(it, raw)));
        if (!found.length) append(body, element("p", { class: "quiet" }, "Not in the log."));
      },
      error =>
        body.replaceChildren(element("p", { class: "notice wrong" }, `They cannot be opened: ${error.message}`)),
    );
    return body;
  };
  return disclosure(capital(label), fill, { class: "raw", "data-opened": "raw" });
}

function renderExchange(exchange, raw) {
  const messages = (exchange.messages || []).map(it => raw.messages[it]);
  const request = requestText(exchange, raw, messages);
  const answer = exchange.answer ?? exchange.answer_base64 ?? "";
  const made = element(
    "section",
    { class: "exchange", "aria-label": `Exchange ${exchange.id}` },
    exchangeHead(exchange),
  );
  for (const change of exchange.changes || [])
    append(made, element("p", { class: "quiet small" }, "Changed: ", foreign(change)));
  for (const finding of exchange.findings || [])
    append(made, element("p", { class: "small" }, "Found: ", foreign(finding.detail || finding.what)));
  if (exchange.error)
    append(
      made,
      element(
        "p",
        { class: "notice wrong" },
        foreign(exchange.error_type || "error"),
        ": ",
        foreign(exchange.error, { limit: 2000 }),
      ),
    );
  append(
    made,
    messages.length ? disclosure(capital(plural(messages.length, "message")), () => messageList(messages)) : null,
    isNumber(exchange.tools) ? disclosure("Tools sent", () => jsonOrText(raw.tools[exchange.tools])) : null,
    exchange.body ? disclosure("Rest of the request", () => jsonOrText(exchange.body)) : null,
    exchange.request_headers
      ? disclosure("Headers", () => [
          jsonView(exchange.request_headers),
          exchange.response_headers ? jsonView(exchange.response_headers) : null,
        ])
      : null,
    answer
      ? disclosure(
          exchange.answer_base64 ? "Answer, as received: no UTF-8, so in base64" : "Answer, as received",
          () => foreignBlock(answer, { class: "code" }),
          { open: answer.length < 4000 },
        )
      : element("p", { class: "quiet" }, "No answer was kept."),
    element(
      "div",
      { class: "buttons" },
      copyButton("Copy request", request),
      copyButton("Copy answer", answer),
      saveButton(`${exchange.id}.json`, exchangeFile(request, answer)),
    ),
  );
  return made;
}

function exchangeHead(exchange) {
  const took = isNumber(exchange.finished_at) ? seconds(exchange.finished_at - exchange.started_at) : null;
  return element(
    "div",
    { class: "exchange-head" },
    element("strong", {}, exchange.side === "agent" ? "agent → proxy" : "proxy → provider"),
    element("code", {}, foreign(`${exchange.method} ${exchange.path}`)),
    exchange.finish_state === "pending"
      ? badge("none", "under way")
      : badge(
          exchange.status >= 200 && exchange.status < 300 ? "right" : "wrong",
          exchange.status ? `${exchange.status}` : "no answer",
        ),
    took && element("span", { class: "quiet" }, took),
    element("span", { class: "quiet" }, foreign(exchange.finish_state || "")),
    exchange.stream ? element("span", { class: "quiet" }, "streamed") : null,
  );
}

/* The request put together from its JSON texts as they are: read and written again, large numbers would change. */
function requestText(exchange, raw, messages) {
  const rest = (exchange.body || "").trim();
  const fields = parsedJson(rest) && rest.startsWith("{") ? [rest.slice(1, -1).trim()] : [];
  const text = it => (parsedJson(it) ? it : JSON.stringify(it));
  if (exchange.messages) fields.push(`"messages": [\n${messages.map(text).join(",\n")}\n]`);
  if (isNumber(exchange.tools)) fields.push(`"tools": ${text(raw.tools[exchange.tools])}`);
  return `{${fields.filter(Boolean).join(",\n")}}`;
}

function exchangeFile(request, answer) {
  return `{"request": ${request},\n"answer": ${JSON.stringify(answer)}}\n`;
}

function messageList(messages) {
  const items = messages.map(text => {
    const read = parsedJson(text);
    const message = read && isObject(read.value) ? read.value : { role: "?", content: text };
    return element("li", {}, element("span", { class: "label" }, foreign(message.role)), messageContent(message));
  });
  return element("ol", { class: "messages" }, items);
}

function messageContent(message) {
  const { role, content, ...rest } = message;
  const parts = [];
  if (typeof content === "string") parts.push(foreignBlock(content, { limit: 1200 }));
  else if (content !== null && content !== undefined) parts.push(jsonView(content));
  if (Object.keys(rest).length) parts.push(jsonView(rest));
  return element("div", {}, parts);
}

function jsonOrText(text) {
  const read = parsedJson(text);
  return read ? jsonView(read.value) : foreignBlock(text, { class: "code" });
}

function copyButton(label, text) {
  return button(
    label,
    event => {
      const said = done => {
        event.target.textContent = done ? "Copied" : "Copying is not allowed here";
        announce(event.target.textContent);
      };
      const copied = navigator.clipboard
        ? navigator.clipboard.writeText(text)
        : Promise.reject(new Error("no clipboard"));
      copied.then(
        () => said(true),
        () => said(copiedBySelection(text)),
      );
    },
    { class: "button small" },
  );
}

/* A page opened from a file has no clipboard of its own in some browsers. */
function copiedBySelection(text) {
  const field = element("textarea", { class: "visually-hidden", "aria-hidden": "true", tabindex: "-1" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

function saveButton(name, text) {
  return button(
    "Download",
    () => {
      const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      const link = element("a", { href: address, download: name.replace(/[^\w.-]+/g, "_") });
      document.body.append(link);
      link.click();
      link.remove();
      URL.revokeObjectURL(address);
    },
    { class: "button small" },
  );
}
