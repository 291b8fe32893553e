// A loop around the OpenAI SDK: prompts come on standard input, one a line, and form one conversation.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import OpenAI from "openai";

const { API = "chat", STREAM, MODEL: model = "gpt-4o-mini", USE_MCP, EVAL_MCP_URL } = process.env;
const client = new OpenAI();
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
let tools = ["get_weather", "get_time"].map((name) => ({ name, parameters: city }));
let run = (name, { city }) =>
  ({ get_weather: `Sunny in ${city}`, get_time: `Noon in ${city}` })[name] ?? `There is no tool ${name}`;
if (USE_MCP) {
  const server = new Client({ name: "agent", version: "1.0.0" });
  await server.connect(new StreamableHTTPClientTransport(new URL(EVAL_MCP_URL)));
  const listed = await server.listTools();
  tools = listed.tools.map(({ name, description, inputSchema }) => ({ name, description, parameters: inputSchema }));
  run = async (name, args) => {
    const result = await server.callTool({ name, arguments: args });
    return result.content.map((part) => part.text).join("\n");
  };
}

const instructions = "You are a helpful assistant.";
const messages = [{ role: "system", content: instructions }];
async function chat(prompt) {
  messages.push({ role: "user", content: prompt });
  for (;;) {
    const request = { model, messages, tools: tools.map((tool) => ({ type: "function", function: tool })) };
    const { message } = STREAM
      ? (await client.chat.completions.stream(request).finalChatCompletion()).choices[0]
      : (await client.chat.completions.create(request)).choices[0];
    messages.push(message);
    if (!message.tool_calls?.length) return message.content;
    for (const { id, function: call } of message.tool_calls) {
      const content = await run(call.name, JSON.parse(call.arguments));
      messages.push({ role: "tool", tool_call_id: id, content });
    }
  }
}

let previous_response_id;
async function respond(prompt) {
  let input = [{ role: "user", content: prompt }];
  for (;;) {
    const functions = tools.map((tool) => ({ type: "function", strict: false, ...tool }));
    const request = { model, instructions, input, previous_response_id, tools: functions };
    const response = STREAM
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request);
    previous_response_id = response.id;
    const calls = response.output.filter((item) => item.type === "function_call");
    if (!calls.length) return response.output_text;
    input = [];
    for (const { name, arguments: args, call_id } of calls)
      input.push({ type: "function_call_output", call_id, output: await run(name, JSON.parse(args)) });
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const text = await (API === "responses" ? respond : chat)(line.trim());
  console.log(text.replaceAll("\n", "\\n"));
}
process.exit(0);
