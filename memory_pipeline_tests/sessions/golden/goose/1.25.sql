CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
    user_set_name BOOLEAN DEFAULT FALSE, session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    parent_session_id TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT,
    session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content_json TEXT NOT NULL,
    created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER,
    metadata_json TEXT);
CREATE INDEX idx_messages_session ON messages(session_id);
INSERT INTO sessions VALUES
    ('20260501_1', 'Parcel prices', '', 0, 'user', '/home/ada/shop', '2026-05-01 12:00:00', '2026-05-01 12:01:00', NULL),
    ('20260501_2', 'Look for floats', '', 0, 'sub_agent', '/home/ada/shop', '2026-05-01 12:00:10', '2026-05-01 12:00:12', '20260501_1'),
    ('20260501_3', 'Never used', '', 0, 'user', '/home/ada/shop', '2026-05-01 12:00:10', '2026-05-01 12:00:10', NULL);
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) VALUES
    ('m1', '20260501_1', 'user', '[{"type":"text","text":"Prices are integers in cents from now on."}]', 1777636801, '{"userVisible":true,"agentVisible":false}'),
    ('m2', '20260501_1', 'assistant', '[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"I will change the table."},{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"developer__text_editor","arguments":{"command":"str_replace","path":"src/prices.py"}}}},{"type":"toolRequest","id":"c2","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"rm -rf build"}}}}]', 1777636803, '{"userVisible":true,"agentVisible":false}'),
    ('m3', '20260501_1', 'user', '[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"Replaced."}],"isError":false}}},{"type":"toolResponse","id":"c2","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"The user has declined to run this tool. DO NOT attempt to call this tool again."}],"isError":true}}}]', 1777636804, '{"userVisible":true,"agentVisible":false}'),
    ('m4', '20260501_1', 'user', '[{"type":"text","text":"Then leave the build folder alone."}]', 1777636810, '{"userVisible":false,"agentVisible":false}'),
    ('m5', '20260501_1', 'user', '[{"type":"text","text":"Summary: prices are integers; the user keeps the build folder."}]', 1777636820, '{"userVisible":false,"agentVisible":true}'),
    ('m6', '20260501_1', 'assistant', '[{"type":"text","text":"Your context was compacted. Continue."}]', 1777636820, '{"userVisible":false,"agentVisible":true}'),
    ('m7', '20260501_1', 'user', '[{"type":"text","text":"Then leave the build folder alone."}]', 1777636821, '{"userVisible":true,"agentVisible":true}'),
    ('m8', '20260501_1', 'assistant', '[{"type":"text","text":"I leave it alone."},{"type":"hologram","text":"?"}]', 1777636825, '{"userVisible":true,"agentVisible":true}'),
    ('n1', '20260501_2', 'user', '[{"type":"text","text":"Find every float in src."}]', 1777636811, '{"userVisible":true,"agentVisible":true}'),
    ('n2', '20260501_2', 'assistant', '[{"type":"text","text":"There is none."}]', 1777636812, '{"userVisible":true,"agentVisible":true}');
