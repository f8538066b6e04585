-- Posts the alerts of alerts.lua's kind "repeated" to Alerta, for wrk, as the same tool would tell it of them.
local number, bodies = 0, {}

function init()
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  for i = 1, 500 do
    bodies[i] = string.format(
      '{"event":"Disk is almost full","resource":"disk %d","environment":"Production","severity":"major",' ..
      '"service":["database"],"origin":"Nagios","text":"Only 2 %% are left on /var",' ..
      '"createTime":"2026-03-04T05:06:07.000Z","tags":["storage"],' ..
      '"attributes":{"hosts":"db1.example.com, db2.example.com","team":"storage","rack":"17"}}', i)
  end
end

function request()
  number = number + 1
  return wrk.format(nil, nil, nil, bodies[number % #bodies + 1])
end
