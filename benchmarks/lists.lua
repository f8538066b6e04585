-- Each request names a parameter of its own, so that none has been answered before.
local run, count = os.getenv("RUN") or "", 0

request = function()
  count = count + 1
  return wrk.format("GET", wrk.path .. "?run=" .. run .. "-" .. count)
end
