CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
    message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0, updated_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL, summary_message_id TEXT, todos TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
    parts TEXT NOT NULL DEFAULT '[]', model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    finished_at INTEGER, provider TEXT, is_summary_message INTEGER NOT NULL DEFAULT 0);
CREATE INDEX idx_messages_session_id ON messages (session_id);
INSERT INTO sessions (id, parent_session_id, title, updated_at, created_at, summary_message_id) VALUES
    ('s1', NULL, 'Parcel prices', 1777636860, 1777636800, 'm6'),
    ('m2$$call_9', 's1', 'New Agent Session', 1777636806, 1777636805, NULL),
    ('s2', NULL, 'Untitled Session', 1777636900, 1777636900, NULL);
INSERT INTO messages (id, session_id, role, parts, created_at, updated_at, is_summary_message) VALUES
    ('m1', 's1', 'user', '[{"type":"text","data":{"text":"Prices are integers in cents from now on."}},{"type":"binary","data":{"Path":"a.png","MIMEType":"image/png","Data":"aGVsbG8="}},{"type":"finish","data":{"reason":"stop","time":0}}]', 1777636800, 1777636800, 0),
    ('m2', 's1', 'assistant', '[{"type":"reasoning","data":{"thinking":"Hm."}},{"type":"text","data":{"text":"I will change the table."}},{"type":"tool_call","data":{"id":"call_1","name":"view","input":"{\"file_path\":\"src/prices.py\"}","finished":true}},{"type":"tool_call","data":{"id":"call_2","name":"edit","input":"{\"file_path\":\"src/prices.py\",\"old_string\":\"1.0\"}","finished":true}},{"type":"tool_call","data":{"id":"call_3","name":"bash","input":"{\"command\":\"rm -rf build\"}","finished":true}},{"type":"finish","data":{"reason":"tool_use","time":1777636803}}]', 1777636801, 1777636803, 0),
    ('m3', 's1', 'tool', '[{"type":"tool_result","data":{"tool_call_id":"call_1","name":"view","content":"PRICE = 1.0","is_error":false}},{"type":"tool_result","data":{"tool_call_id":"call_2","name":"edit","content":"old_string not found in file","is_error":true}},{"type":"tool_result","data":{"tool_call_id":"call_3","name":"bash","content":"User denied permission","is_error":true}}]', 1777636804, 1777636804, 0),
    ('m4', 's1', 'user', '[{"type":"shell_command","data":{"command":"make","output":"no rule\n","exit_code":2}}]', 1777636810, 1777636810, 0),
    ('m5', 's1', 'assistant', '[{"type":"tool_call","data":{"id":"call_4","name":"question","input":"{\"questions\":[{\"type\":\"free_text\",\"question\":\"Which cents?\"},{\"type\":\"yes_no\",\"question\":\"Round?\"}]}","finished":true}}]', 1777636811, 1777636811, 0),
    ('m5r', 's1', 'tool', '[{"type":"tool_result","data":{"tool_call_id":"call_4","name":"question","content":"Q1: Which cents?\nUser provided: Euro cents, always.\n\nQ2: Round?\nUser answered: no","is_error":false}},{"type":"tool_result","data":{"tool_call_id":"call_5","name":"bash","content":"ok\n\n<cwd>/home/ada/shop</cwd>","is_error":false}}]', 1777636815, 1777636815, 0),
    ('m6', 's1', 'assistant', '[{"type":"text","data":{"text":"Summary: prices are euro cents."}},{"type":"finish","data":{"reason":"end_turn","time":1777636820}}]', 1777636820, 1777636820, 1),
    ('m7', 's1', 'user', '[{"type":"text","data":{"text":"Go on."}}]', 1777636850, 1777636850, 0),
    ('m8', 's1', 'assistant', '[{"type":"hologram","data":{}},{"type":"finish","data":{"reason":"error","time":1777636860,"message":"Rate limited","details":"429"}}]', 1777636860, 1777636860, 0),
    ('k1', 'm2$$call_9', 'user', '[{"type":"text","data":{"text":"Find every float."}}]', 1777636805, 1777636805, 0),
    ('k2', 'm2$$call_9', 'assistant', '[{"type":"text","data":{"text":"There is none."}}]', 1777636806, 1777636806, 0);
