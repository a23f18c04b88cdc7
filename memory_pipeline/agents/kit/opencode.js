
export const MemoryPipeline = async ({ directory }) => {
  const briefs = new Map();
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
  };
};
