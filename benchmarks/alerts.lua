-- Posts alerts, for wrk. KEY is the authorization key, KIND what is sent: repeated, new, batch or "new batch".
local kind, number = os.getenv("KIND"), 0
local run = os.getenv("RUN")
local bodies = {}

local function plain(fingerprint)
  return string.format(
    '{"title":"Disk is almost full","description":"Only 2 %% are left on /var","start_time":"2026-03-04T05:06:07Z",' ..
    '"service":"database","monitoring_tool":"Nagios","hosts":["db1.example.com","db2.example.com"],' ..
    '"severity":"high","fingerprint":"%s","labels":{"team":"storage","rack":"17"}}', fingerprint)
end

local function element(name)
  return string.format(
    '{"status":"firing","labels":{"alertname":"%s","severity":"warning","instance":"db1.example.com:9100"},' ..
    '"annotations":{"summary":"%s is almost full","description":"Only 2 %% are left on /var"},' ..
    '"startsAt":"2026-03-04T05:06:07.123Z","endsAt":"0001-01-01T00:00:00Z",' ..
    '"generatorURL":"http://prometheus.example.com/graph?g0.expr=disk_free+%%3C+2","fingerprint":"c1d2e3f4a5b60718"}',
    name, name)
end

local function batch(first, prefix)
  local alerts = {}
  for i = 1, 64 do alerts[i] = element(prefix .. first + i) end
  return '{"version":"4","groupKey":"{}","status":"firing","receiver":"shop","groupLabels":{},"commonLabels":{},' ..
    '"commonAnnotations":{},"externalURL":"http://alertmanager.example.com","truncatedAlerts":0,"alerts":[' ..
    table.concat(alerts, ",") .. ']}'
end

function init()
  wrk.method = "POST"
  wrk.headers["Authorization"] = "Bearer " .. os.getenv("KEY")
  wrk.headers["Content-Type"] = "application/json"
  if kind == "repeated" then
    for i = 1, 500 do bodies[i] = plain("disk " .. i) end
  elseif kind == "batch" then
    for i = 1, 8 do bodies[i] = batch(i * 64, "disk ") end
  end
end

function request()
  number = number + 1
  local body
  if kind == "new" then body = plain(run .. "/" .. number)
  elseif kind == "new batch" then body = batch(number * 64, run .. "/")
  else body = bodies[number % #bodies + 1] end
  return wrk.format(nil, nil, nil, body)
end
