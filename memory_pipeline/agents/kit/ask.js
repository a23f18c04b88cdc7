import { spawn } from "node:child_process";

const HOOK = "HOOK";
const ACTION = "ACTION";

// What the command answers to the event, or "" when it does not in time. It never throws.
function ask(event, payload, command = HOOK, milliseconds = 1000) {
  return new Promise((resolve) => {
    let text = "";
    let child;
    const end = (answer) => {
      clearTimeout(timer);
      resolve(answer);
    };
    const timer = setTimeout(() => {
      child?.kill("SIGTERM");
      end("");
    }, milliseconds);
    try {
      child = spawn(command[0], [...command.slice(1), event], { stdio: ["pipe", "pipe", "ignore"] });
      child.on("error", () => end(""));
      child.on("close", (code) => end(code === 0 ? text : ""));
      child.stdout.setEncoding("utf8");
      child.stdout.on("data", (piece) => (text += piece));
      child.stdin.on("error", () => {});
      child.stdin.end(JSON.stringify(payload));
    } catch {
      end("");
    }
  });
}

// What the memory says of a tool call: { text } to show, { stop, ask } to stop it, or {}. It never throws.
async function askAboutCall(event, payload) {
  if (!ACTION) return {};
  try {
    return JSON.parse((await ask(event, payload, ACTION, 600)) || "{}");
  } catch {
    return {};
  }
}
