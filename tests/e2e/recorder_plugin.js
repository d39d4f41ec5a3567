// An opencode plugin that tells the hook recorder every event, and throws what it answers.
import { spawnSync } from "node:child_process"

const COMMAND = "@COMMAND@"

function tell(event, told) {
  const text = JSON.stringify(told)
  const command = [...COMMAND, event]
  const ran = spawnSync(command[0], command.slice(1), { input: text, encoding: "utf8", env: process.env })
  if (ran.stdout) throw new Error(ran.stdout)
}

const SESSION = ["session.created", "session.idle", "session.deleted", "session.error"]

function isWanted(event) {
  if (event.type !== "message.part.updated") return SESSION.includes(event.type)
  const part = event.properties.part
  return part.type === "tool" && ["completed", "error"].includes(part.state.status)
}

export const Recorder = async ({ directory }) => ({
  config: async ({ mcp }) => tell("config", { directory, mcp }),
  event: async ({ event }) => isWanted(event) && tell("event", event),
  "chat.message": async (input, output) => tell("chat.message", { input, output }),
  "tool.execute.before": async (input, output) => tell("tool.execute.before", { input, output }),
  "tool.execute.after": async (input, output) => tell("tool.execute.after", { input, output }),
  dispose: async () => tell("dispose", {}),
})
