// Written by `sub import opencode`; `sub restore opencode` removes it.
// Every tool call is decided by `sub hook` before it runs, and its end is recorded. If `sub hook`
// refuses, fails or takes too long, the call does not run.

import { spawn } from "node:child_process"

const COMMAND = ["sub", "hook", "opencode"]
const TIMEOUT_MS = 10_000

function failed(why) {
  return new Error(`subluminal: \`sub hook\` failed, so the call is refused: ${why}`)
}

// Resolves to the text of a refusal, or to null.
function ask(event, cwd) {
  return new Promise((resolve, reject) => {
    // Without `env`, Bun passes on the environment that opencode itself was started with.
    const options = { cwd, env: process.env, stdio: ["pipe", "pipe", "pipe"] }
    const child = spawn(COMMAND[0], COMMAND.slice(1), options)
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      reject(failed(`no answer within ${TIMEOUT_MS / 1000} s`))
    }, TIMEOUT_MS)
    const out = []
    const err = []
    child.stdout.on("data", (data) => out.push(data))
    child.stderr.on("data", (data) => err.push(data))
    child.stdin.on("error", () => {}) // it may end before it has read everything
    child.on("error", (error) => {
      clearTimeout(timer)
      reject(failed(error.message))
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      const problem = Buffer.concat(err).toString().trim()
      if (code !== 0) return reject(failed(problem || `exit code ${code}`))
      const text = Buffer.concat(out).toString().trim()
      try {
        resolve(text ? (JSON.parse(text).refuse ?? null) : null)
      } catch {
        reject(failed("its answer is not JSON"))
      }
    })
    child.stdin.end(JSON.stringify(event))
  })
}

export const Subluminal = async ({ directory }) => {
  const children = new Set() // sessions of subagents: the turn goes on when they are idle
  const running = new Set() // ids of calls that were allowed
  const event = (name, more) => ({
    session_id: String(process.pid),
    hook_event_name: name,
    cwd: directory,
    ...more,
  })
  const tell = async (name, more) => {
    try {
      await ask(event(name, more), directory)
    } catch {
      return // there is no call to refuse
    }
  }
  return {
    event: async ({ event: { type, properties } }) => {
      const part = properties?.part
      // A call that fails has no event of its own.
      if (part?.type === "tool" && part.state?.status === "error" && running.delete(part.callID)) {
        const more = { tool_name: part.tool, tool_input: part.state.input, call_id: part.callID }
        await tell("tool.execute.after", { ...more, error: String(part.state.error) })
      }
      if (type === "session.created" && properties.info?.parentID) children.add(properties.info.id)
      const isOurs = type === "session.created" || type === "session.idle"
      if (isOurs && !children.has(properties.sessionID ?? properties.info?.id)) await tell(type)
    },
    "chat.message": async (_input, output) => {
      const prompt = (output.parts ?? []).map((part) => part.text ?? "").join("")
      await tell("chat.message", { prompt })
    },
    "tool.execute.before": async (input, output) => {
      const more = { tool_name: input.tool, tool_input: output.args, call_id: input.callID }
      const refusal = await ask(event("tool.execute.before", more), directory)
      if (refusal !== null) throw new Error(refusal)
      running.add(input.callID)
    },
    "tool.execute.after": async (input, output) => {
      running.delete(input.callID)
      const more = { tool_name: input.tool, tool_input: input.args, call_id: input.callID }
      await tell("tool.execute.after", { ...more, tool_response: output })
    },
    dispose: async () => tell("dispose"),
  }
}
