
export default function (pi) {
  let brief = Promise.resolve("");

  pi.on("session_start", (_event, ctx) => {
    brief = ask("start", { cwd: ctx.cwd });
  });

  pi.on("before_agent_start", async (event) => {
    const text = await brief;
    return text ? { systemPrompt: `${event.systemPrompt}\n\n${text}` } : undefined;
  });

  // without an answer pi makes its own summary
  pi.on("session_before_compact", async (event, ctx) => {
    const { firstKeptEntryId, tokensBefore } = event.preparation;
    const transcript_path = ctx.sessionManager.getSessionFile();
    const payload = { transcript_path, first_kept: firstKeptEntryId, tokens_before: tokensBefore };
    const text = await ask("compaction", payload);
    if (!text) return undefined;
    const { summary, details } = JSON.parse(text);
    return { compaction: { summary, firstKeptEntryId, tokensBefore, details } };
  });
}
