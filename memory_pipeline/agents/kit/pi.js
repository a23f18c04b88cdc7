
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

  if (!ACTION) return;

  const about = (event, ctx) => ({
    cwd: ctx.cwd,
    session_id: ctx.sessionManager.getSessionId(),
    tool_name: event.toolName,
    tool_input: event.input,
  });

  pi.on("tool_call", async (event, ctx) => {
    const { stop, ask: question } = await askAboutCall("before", about(event, ctx));
    if (!stop) return undefined;
    if (question && ctx.hasUI && (await ctx.ui.confirm("A rule of your memory", question))) return undefined;
    return { block: true, reason: stop };
  });

  pi.on("tool_result", async (event, ctx) => {
    const tool_response = event.content.map((part) => part.text ?? "").join("\n");
    const payload = { ...about(event, ctx), tool_response, is_error: event.isError };
    const { text } = await askAboutCall("after", payload);
    return text ? { content: [...event.content, { type: "text", text }] } : undefined;
  });
}
