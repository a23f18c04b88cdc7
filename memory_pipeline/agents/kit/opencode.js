
export const MemoryPipeline = async ({ directory }) => {
  const briefs = new Map();
  const about = (input, args) => ({
    cwd: directory,
    session_id: input.sessionID,
    tool_name: input.tool,
    tool_input: args,
  });
  return {
    "experimental.chat.system.transform": async (input, output) => {
      const session = input.sessionID ?? "";
      if (!briefs.has(session)) briefs.set(session, ask("start", { cwd: directory, session_id: session }));
      const text = await briefs.get(session);
      if (text) output.system.push(text);
    },
    "experimental.session.compacting": async (input, output) => {
      const text = await ask("compaction", { session_id: input.sessionID });
      if (text) output.context.push(text);
    },
    "tool.execute.before": async (input, output) => {
      const { stop } = await askAboutCall("before", about(input, output.args));
      if (stop) throw new Error(stop);
    },
    "tool.execute.after": async (input, output) => {
      const exit = output.metadata?.exit;
      const failed = typeof exit === "number" ? exit !== 0 : undefined;
      const payload = { ...about(input, input.args), tool_response: output.output, is_error: failed };
      const { text } = await askAboutCall("after", payload);
      if (text && typeof output.output === "string") output.output += `\n\n${text}`;
    },
  };
};
