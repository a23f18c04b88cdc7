
export default function (pi) {
  let brief = Promise.resolve("");

  pi.on("session_start", (_event, ctx) => {
    brief = ask("start", { cwd: ctx.cwd });
  });

  pi.on("before_agent_start", async (event) => {
    const text = await brief;
    return text ? { systemPrompt: `${event.systemPrompt}\n\n${text}` } : undefined;
  });
}
