// An AI SDK agent: prompts come on standard input, one a line, and form one conversation.
// KIND=agent is a ToolLoopAgent; else it is generateText or streamText, with KIND=one-step without stopWhen.
import { createInterface } from "node:readline";
import { createMCPClient } from "@ai-sdk/mcp";
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool, ToolLoopAgent } from "ai";
import { z } from "zod";

const { API, STREAM, MODEL = "gpt-4o-mini", USE_MCP, EVAL_MCP_URL, KIND } = process.env;
const model = API === "chat" ? openai.chat(MODEL) : openai(MODEL);
const system = "You are a helpful assistant.";
const inputSchema = z.object({ city: z.string() });
const ownTools = {
  get_weather: tool({
    description: "Get the weather of a city.",
    inputSchema,
    execute: async ({ city }) => `Sunny in ${city}`,
  }),
  get_time: tool({
    description: "Get the local time of a city.",
    inputSchema,
    execute: async ({ city }) => `Noon in ${city}`,
  }),
};
const mcp = USE_MCP && (await createMCPClient({ transport: { type: "http", url: EVAL_MCP_URL } }));
const tools = mcp ? await mcp.tools() : ownTools;
const agent = new ToolLoopAgent({ model, instructions: system, tools });

async function answer(messages) {
  const settings = { model, system, messages, tools, ...(KIND !== "one-step" && { stopWhen: stepCountIs(20) }) };
  if (!STREAM) return KIND === "agent" ? agent.generate({ messages }) : generateText(settings);
  const stream = KIND === "agent" ? await agent.stream({ messages }) : streamText(settings);
  return { text: await stream.text, response: await stream.response };
}

const messages = [];
for await (const line of createInterface({ input: process.stdin })) {
  messages.push({ role: "user", content: line.trim() });
  const { text, response } = await answer(messages);
  messages.push(...response.messages);
  console.log(text.replaceAll("\n", "\\n"));
}
await mcp?.close();
