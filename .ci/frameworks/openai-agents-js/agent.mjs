// An agent of the OpenAI Agents SDK: prompts come on standard input, one a line, and form one conversation.
// TOOL_NOT_FOUND is the SDK's toolNotFoundBehavior.
import { createInterface } from "node:readline";
import { Agent, MCPServerStreamableHttp, MemorySession, run, setOpenAIAPI, tool } from "@openai/agents";
import { z } from "zod";

const { API, STREAM, MODEL = "gpt-4o-mini", USE_MCP, EVAL_MCP_URL, TOOL_NOT_FOUND } = process.env;
if (API === "chat") setOpenAIAPI("chat_completions");

const getWeather = tool({
  name: "get_weather",
  description: "Get the weather of a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `Sunny in ${city}`,
});
const getTime = tool({
  name: "get_time",
  description: "Get the local time of a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `Noon in ${city}`,
});

const servers = USE_MCP ? [new MCPServerStreamableHttp({ url: EVAL_MCP_URL, name: "tools" })] : [];
for (const server of servers) await server.connect();
const agent = new Agent({
  name: "Assistant",
  instructions: "You are a helpful assistant.",
  model: MODEL,
  tools: USE_MCP ? [] : [getWeather, getTime],
  mcpServers: servers,
});
const options = { session: new MemorySession(), ...(TOOL_NOT_FOUND && { toolNotFoundBehavior: TOOL_NOT_FOUND }) };

for await (const line of createInterface({ input: process.stdin })) {
  const result = await run(agent, line.trim(), { ...options, stream: Boolean(STREAM) });
  if (STREAM) await result.completed;
  console.log(result.finalOutput.replaceAll("\n", "\\n"));
}
for (const server of servers) await server.close();
