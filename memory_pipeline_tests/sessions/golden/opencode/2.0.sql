-- OpenCode 2.0: one session that was copied from 1.18 and went on, a fork of it, and a sub-agent's.
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, revert text, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE session_v2 (id text PRIMARY KEY, parent_id text, fork_session_id text, fork_boundary text, directory text, title text, revert text, time_created integer, time_updated integer);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text, type text, seq integer, time_created integer, time_updated integer, data text);
CREATE TABLE session_inbox (id text PRIMARY KEY, session_id text, type text, payload text, delivery text, enqueued_seq integer, time_created integer);
INSERT INTO session VALUES ('ses_bb01', NULL, '/home/ada/kiln', 'Glaze list', NULL, 1790000000000, 1790000005000);
INSERT INTO message VALUES
 ('msg_a1', 'ses_bb01', 1790000000000, 1790000000000, '{"role":"user","time":{"created":1790000000000}}'),
 ('msg_a2', 'ses_bb01', 1790000003000, 1790000005000, '{"role":"assistant","parentID":"msg_a1","time":{"created":1790000003000},"finish":"stop"}');
INSERT INTO part VALUES
 ('prt_a1', 'msg_a1', 'ses_bb01', 1790000000000, 1790000000000, '{"type":"text","text":"List the glazes, never the clays."}'),
 ('prt_a2', 'msg_a2', 'ses_bb01', 1790000004000, 1790000005000, '{"type":"text","text":"Celadon and shino.","time":{"start":1790000004000,"end":1790000005000}}');
INSERT INTO session_v2 VALUES
 ('ses_bb01', NULL, NULL, NULL, '/home/ada/kiln', 'Glaze list', '{"messageID":"msg_b7"}', 1790000000000, 1790003700000),
 ('ses_bb02', NULL, 'ses_bb01', '{"type":"before","messageID":"msg_b3"}', '/home/ada/kiln', 'Glaze list (fork #1)', NULL, 1790003800000, 1790003900000),
 ('ses_bb03', 'ses_bb01', NULL, NULL, '/home/ada/kiln', 'Child session - 2026-09-21T15:00:00.000Z', NULL, 1790003400000, 1790003500000);
INSERT INTO session_message VALUES
 ('msg_a1', 'ses_bb01', 'user', 0, 1790000000000, 1790000000000, '{"text":"List the glazes, never the clays.","time":{"created":1790000000000}}'),
 ('msg_a2', 'ses_bb01', 'assistant', 1, 1790000003000, 1790000005000, '{"content":[{"type":"text","text":"Celadon and shino."}],"finish":"stop","time":{"created":1790000003000,"completed":1790000005000}}'),
 ('msg_b3', 'ses_bb01', 'user', 3, 1790003000000, 1790003000000, '{"text":"Fire this one.","files":[{"data":"aGVsbG8=","mime":"image/png","source":{"type":"inline"},"name":"cup.png"}],"time":{"created":1790003000000}}'),
 ('msg_b4', 'ses_bb01', 'assistant', 4, 1790003010000, 1790003020000, '{"agent":"build","content":[{"type":"reasoning","text":"hm"},{"type":"text","text":"I look at the kiln."},{"type":"tool","id":"call_1","name":"shell","state":{"status":"completed","input":{"command":"kiln status"},"content":[{"type":"text","text":"cold"},{"type":"text","text":"Command exited with code 1."}],"metadata":{"exit":1}},"time":{"created":1790003011000,"ran":1790003012000,"completed":1790003013000}},{"type":"tool","id":"call_2","name":"write","state":{"status":"completed","input":{"path":"plan.md","content":"1280 degrees"},"content":[{"type":"text","text":"Wrote plan.md"}]},"time":{"created":1790003014000,"completed":1790003015000}}],"snapshot":{"files":["plan.md"]},"finish":"tool-calls","time":{"created":1790003010000,"completed":1790003020000}}'),
 ('msg_b5', 'ses_bb01', 'idle', 5, 1790003021000, 1790003021000, '{"outcome":"succeeded","time":{"created":1790003021000}}'),
 ('msg_b6', 'ses_bb01', 'compaction', 6, 1790003100000, 1790003110000, '{"status":"completed","reason":"manual","summary":"Glazes were listed, a cup waits.","recent":"","time":{"created":1790003100000}}'),
 ('msg_b7', 'ses_bb01', 'user', 7, 1790003600000, 1790003600000, '{"text":"Fire it at once.","time":{"created":1790003600000}}'),
 ('msg_b8', 'ses_bb01', 'assistant', 8, 1790003610000, 1790003620000, '{"content":[{"type":"text","text":"Too early."}],"time":{"created":1790003610000}}'),
 ('msg_evt9_0', 'ses_bb02', 'user', 0, 1790000000000, 1790000000000, '{"text":"List the glazes, never the clays.","time":{"created":1790000000000}}'),
 ('msg_evt9_1', 'ses_bb02', 'assistant', 1, 1790000003000, 1790000005000, '{"content":[{"type":"text","text":"Celadon and shino."}],"finish":"stop","time":{"created":1790000003000,"completed":1790000005000}}'),
 ('msg_c1', 'ses_bb02', 'user', 3, 1790003850000, 1790003850000, '{"text":"And the prices.","time":{"created":1790003850000}}'),
 ('msg_c2', 'ses_bb02', 'shell', 4, 1790003860000, 1790003861000, '{"shellID":"sh_1","command":"cat prices.csv","status":"exited","exit":0,"output":{"output":"celadon,12","cursor":10,"size":10,"truncated":false},"time":{"created":1790003860000,"completed":1790003861000}}'),
 ('msg_d1', 'ses_bb03', 'user', 0, 1790003400000, 1790003400000, '{"text":"Find the price of shino.","time":{"created":1790003400000}}');
INSERT INTO session_inbox VALUES ('msg_c3', 'ses_bb02', 'user', '{"text":"Then sort them."}', 'queue', 5, 1790003890000);
